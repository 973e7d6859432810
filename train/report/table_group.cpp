// One group of a table: its rows, columns and cells, and what is said about them.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/tensor/error.h"
#include "nn/spec/suggest.h"
#include "train/report/table_parts.h"

namespace waymark::train::table {

// ---- Axes

Key key_of(const LoadedRun& run, const std::vector<std::string>& names) {
  Key key;
  for (const std::string& name : names) {
    const auto found = run.result.config.find(name);
    key.push_back(found == run.result.config.end() ? "-" : found->second);
  }
  return key;
}

std::size_t AxisValues::place(const Key& key) const {
  return static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
}

std::string AxisValues::label(std::size_t i) const { return fmt::format("{}", fmt::join(labels[i], " / ")); }

AxisValues axis_values(const Runs& runs, const std::vector<std::string>& names) {
  AxisValues axis;
  for (const LoadedRun* run : runs) {
    Key key = key_of(*run, names);
    if (axis.place(key) < axis.keys.size()) continue;
    axis.keys.push_back(std::move(key));
    std::vector<std::string> labels;
    for (const std::string& name : names) labels.push_back(run->result.shown(name).value_or("-"));
    axis.labels.push_back(std::move(labels));
  }
  const auto short_forms = axis.labels;
  for (std::size_t i = 0; i < axis.keys.size(); ++i)
    if (std::count(short_forms.begin(), short_forms.end(), short_forms[i]) > 1) axis.labels[i] = axis.keys[i];
  return axis;
}

const std::optional<Evaluation>& evaluation(const RunResult& result, const TableOptions& options) {
  return options.best ? result.best : result.last;
}

namespace {

// ---- Cells

void add_run(TableCell& cell, const LoadedRun& run, const std::string& metric, const TableOptions& options) {
  CellRun entry{run.result.id, run.result.name.empty() ? run.result.id : run.result.name,
                std::string(name_of(run.state)), run.result.seed, {}};
  if (run.state == RunState::refused) cell.refused = run.reason;
  if (run.state == RunState::finished) {
    const auto [split_name, metric_name] = split_metric(metric);
    const auto& e = evaluation(run.result, options);
    const SplitResult* split = e ? e->find(split_name) : nullptr;
    const MetricValue* value = split ? split->find(metric_name) : nullptr;
    if (options.best && !e) {
      entry.state = "no best checkpoint";
    } else if (!value) {
      entry.state = "not measured";
    } else if (!std::isfinite(value->value)) {
      entry.state = "nonfinite";
    } else {
      entry.value = value->value;
      cell.approximate = cell.approximate || value->approximate;
      cell.untrained = cell.untrained || split->untrained;
    }
  }
  cell.runs.push_back(std::move(entry));
}

// Values by seed; empty if a seed stands there twice: then nothing can be paired.
std::map<i64, double> by_seed(const TableCell& cell) {
  std::map<i64, double> values;
  for (const CellRun& run : cell.runs)
    if (run.value && !values.emplace(run.seed, *run.value).second) return {};
  return values;
}

struct Common {
  std::vector<i64> seeds;
  std::vector<double> a, b;
};
Common common_seeds(const TableCell& a, const TableCell& b) {
  const auto values_a = by_seed(a), values_b = by_seed(b);
  Common common;
  for (const auto& [seed, value] : values_a)
    if (const auto other = values_b.find(seed); other != values_b.end()) {
      common.seeds.push_back(seed);
      common.a.push_back(value);
      common.b.push_back(other->second);
    }
  return common;
}

// The mean over columns for each seed that has them all; a row with a column that has no value gets none.
TableCell average_cell(const TableRow& row, const std::vector<std::size_t>& columns) {
  TableCell cell;
  std::map<i64, std::vector<double>> at_seed;
  std::set<i64> seeds;
  for (std::size_t c : columns) {
    const TableCell& part = row.cells[c];
    for (const CellRun& run : part.runs) seeds.insert(run.seed);
    for (const auto& [seed, value] : by_seed(part)) at_seed[seed].push_back(value);
    cell.untrained = cell.untrained || part.untrained;
    cell.approximate = cell.approximate || part.approximate;
  }
  for (i64 seed : seeds) {
    CellRun run{"", "", "incomplete", seed, {}};
    if (at_seed[seed].size() == columns.size()) {
      run.state = "finished";
      run.value = mean(at_seed[seed]);
    }
    cell.runs.push_back(std::move(run));
  }
  if (cell.runs.empty()) cell.runs.push_back({"", "", "incomplete", 0, {}});
  return cell;
}

// ---- Columns: pooled s.d., intervals, bold and dagger

void judge_column(TableGroup& group, std::size_t c, const TableOptions& options) {
  TableColumn& column = group.columns[c];
  std::vector<std::vector<double>> groups;
  const TableCell* best = nullptr;
  for (TableRow& row : group.rows) {
    if (row.baseline) continue;
    TableCell& cell = row.cells[c];
    cell.summary = summarize(cell.values());
    groups.push_back(cell.values());
    if (cell.summary.n == 0) continue;
    const bool better = !best || (column.lower_is_better ? cell.summary.mean < best->summary.mean
                                                         : cell.summary.mean > best->summary.mean);
    if (better) best = &cell;
  }
  if (options.pooled) column.pooled = pooled_sd(groups);
  i64 rows_with_value = 0;
  for (TableRow& row : group.rows) rows_with_value += !row.baseline && row.cells[c].summary.n > 0;
  for (TableRow& row : group.rows) {
    if (row.baseline) continue;
    TableCell& cell = row.cells[c];
    if (options.ci && column.pooled && cell.summary.n > 0) {
      cell.interval = mean_interval(cell.summary.mean, cell.summary.n, column.pooled->sd, column.pooled->df);
    } else if (options.ci && !options.pooled && cell.summary.n >= 2) {
      cell.interval = mean_interval(cell.values());
    }
    if (!best || rows_with_value < 2 || cell.summary.n == 0) continue;
    if (&cell == best || cell.summary.mean == best->summary.mean) {
      cell.best = true;
    } else if (options.pooled) {
      cell.indistinguishable =
          column.pooled && cell.summary.n >= 3 && best->summary.n >= 3 &&
          difference_interval(cell.summary.mean, cell.summary.n, best->summary.mean, best->summary.n, *column.pooled)
              .contains(0);
    } else if (const Common common = common_seeds(cell, *best); common.seeds.size() >= 3) {
      cell.indistinguishable = paired_difference(common.a, common.b).interval->contains(0);
    }
  }
}

// ---- Rows

std::optional<double> extra_of(const RunResult& r, const std::string& name) {
  const auto as_double = [](const std::optional<i64>& v) {
    return v ? std::optional(static_cast<double>(*v)) : std::nullopt;
  };
  if (name == "parameters") return as_double(r.parameters);
  if (name == "seconds") return r.seconds;
  if (name == "cpu_seconds") return r.cpu_seconds;
  if (name == "tokens_per_s") return r.tokens_per_second();
  if (name == "flops") return r.flops_per_step;
  return as_double(r.peak_memory);
}

void add_extra(TableRow& row, const Runs& runs, const TableOptions& options) {
  for (const std::string& name : options.extra) {
    std::vector<double> values;
    for (const LoadedRun* run : runs)
      if (const auto value = extra_of(run->result, name); value && run->state == RunState::finished)
        values.push_back(*value);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    row.extra.push_back(values.empty() ? std::nullopt : std::optional(mean(values)));
    row.extra_range.emplace_back(values.empty() ? 0 : *least, values.empty() ? 0 : *most);
  }
}

std::size_t find_row(const TableGroup& group, const std::string& label, const char* option) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    if (group.rows[i].baseline) continue;
    if (group.rows[i].label() == label) return i;
    labels.push_back(group.rows[i].label());
  }
  fail("table", "{} {}: no row has this label. Rows: {}", option, nn::printable(label),
       nn::printable(fmt::format("{}", fmt::join(labels, ", ")), 400));
}

// ---- Groups

class GroupBuilder {
 public:
  GroupBuilder(const Runs& runs, std::vector<std::string> metrics, const TableOptions& options)
      : runs_(runs), metrics_(std::move(metrics)), options_(options) {
    row_axis_ = axis_values(runs_, options_.rows);
    col_axis_ = axis_values(runs_, options_.cols);
  }

  TableGroup build() {
    make_columns();
    make_rows();
    if (options_.average) add_averages();
    for (std::size_t c = 0; c < group_.columns.size(); ++c) judge_column(group_, c, options_);
    compare_parameters();
    if (options_.baselines) add_baselines();
    for (std::size_t c = 0; c < group_.columns.size(); ++c) group_.columns[c].decimals = decimals_of(group_, c);
    if (options_.compare) compare();
    const std::vector<ColumnRuns> finished = column_runs();
    group_.warnings = warnings_of(finished, options_);
    group_.caption = caption_of(group_, finished, options_);
    return std::move(group_);
  }

 private:
  void make_columns() {
    for (std::size_t k = 0; k < col_axis_.keys.size(); ++k)
      for (const std::string& metric : metrics_) {
        // A task without this metric makes no column; a task without any finished run makes all of them.
        const Runs here = runs_at(nullptr, &col_axis_.keys[k]);
        if (!measured(here, metric) && any_measured(here)) continue;
        TableColumn column;
        column.label = options_.cols.empty() ? std::string() : col_axis_.label(k);
        column.metric = metric;
        column.share = is_share(metric);
        column.lower_is_better = lower_is_better(metric);
        group_.columns.push_back(std::move(column));
        column_key_.push_back(k);
      }
  }

  Runs runs_at(const Key* row, const Key* col) const {
    Runs found;
    for (const LoadedRun* run : runs_)
      if ((!row || key_of(*run, options_.rows) == *row) && (!col || key_of(*run, options_.cols) == *col))
        found.push_back(run);
    return found;
  }
  bool measured(const Runs& runs, const std::string& metric) const {
    const auto [split_name, metric_name] = split_metric(metric);
    return std::any_of(runs.begin(), runs.end(), [&, &split = split_name, &name = metric_name](const LoadedRun* run) {
      const auto& e = evaluation(run->result, options_);
      return e && e->find(split) && e->find(split)->find(name);
    });
  }
  bool any_measured(const Runs& runs) const {
    return std::any_of(metrics_.begin(), metrics_.end(), [&](const std::string& m) { return measured(runs, m); });
  }

  void make_rows() {
    for (std::size_t r = 0; r < row_axis_.keys.size(); ++r) {
      TableRow row;
      row.labels = row_axis_.labels[r];
      for (std::size_t c = 0; c < group_.columns.size(); ++c) {
        TableCell cell;
        for (const LoadedRun* run : runs_at(&row_axis_.keys[r], &col_axis_.keys[column_key_[c]]))
          add_run(cell, *run, group_.columns[c].metric, options_);
        row.cells.push_back(std::move(cell));
      }
      add_extra(row, runs_at(&row_axis_.keys[r], nullptr), options_);
      group_.rows.push_back(std::move(row));
    }
  }

  void add_averages() {
    if (col_axis_.keys.size() < 2)
      fail("table", "--average needs at least two columns; --cols {} has one value",
           fmt::join(options_.cols, ", "));
    for (TableRow& row : group_.rows)
      for (TableCell& cell : row.cells) cell.summary = summarize(cell.values());
    const std::size_t plain = group_.columns.size();
    for (const std::string& metric : metrics_) {
      std::vector<std::size_t> columns;
      for (std::size_t c = 0; c < plain; ++c)
        if (group_.columns[c].metric == metric) columns.push_back(c);
      if (columns.size() < 2) continue;
      TableColumn average = group_.columns[columns[0]];
      average.label = "average";
      average.is_average = true;
      group_.columns.push_back(std::move(average));
      for (TableRow& row : group_.rows) row.cells.push_back(average_cell(row, columns));
    }
  }

  // Per column, because another task has other embeddings and another head.
  void compare_parameters() {
    if (!options_.reference.empty()) find_row(group_, options_.reference, "--reference");
    for (std::size_t r = 0; r < group_.rows.size(); ++r) {
      double most = 0;
      for (const Key& col : col_axis_.keys) {
        const auto own = parameters(row_axis_.keys[r], col), other = reference_parameters(col);
        if (own && other && *other > 0) most = std::max(most, *own / *other - 1);
      }
      if (most > 0.1) group_.rows[r].more_parameters = most;
    }
  }
  std::optional<double> parameters(const Key& row, const Key& col) const {
    std::optional<double> most;
    for (const LoadedRun* run : runs_at(&row, &col))
      if (run->result.parameters) most = std::max(most.value_or(0), static_cast<double>(*run->result.parameters));
    return most;
  }
  std::optional<double> reference_parameters(const Key& col) const {
    for (std::size_t r = 0; r < row_axis_.keys.size(); ++r) {
      if (!options_.reference.empty() && row_axis_.label(r) != options_.reference) continue;
      if (const auto count = parameters(row_axis_.keys[r], col)) return count;
    }
    return std::nullopt;
  }

  void add_baselines() {
    std::vector<TableRow> rows;
    for (std::size_t c = 0; c < group_.columns.size(); ++c) {
      if (group_.columns[c].is_average) continue;
      const auto [split, metric] = split_metric(group_.columns[c].metric);
      for (const LoadedRun* run : runs_at(nullptr, &col_axis_.keys[column_key_[c]]))
        for (const Baseline& b : run->result.baselines) {
          if (b.split != split || b.metric != metric || !std::isfinite(b.value)) continue;
          auto row = std::find_if(rows.begin(), rows.end(), [&](const TableRow& r) { return r.labels[0] == b.name; });
          if (row == rows.end()) {
            TableRow fresh;
            fresh.baseline = true;
            fresh.labels.assign(options_.rows.size(), "");
            fresh.labels[0] = b.name;
            fresh.cells.resize(group_.columns.size());
            fresh.extra.resize(options_.extra.size());
            fresh.extra_range.resize(options_.extra.size());
            row = rows.insert(rows.end(), std::move(fresh));
          }
          if (row->cells[c].summary.n == 0) row->cells[c].summary = {1, b.value, {}};
        }
    }
    group_.rows.insert(group_.rows.begin(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  }

  void compare() {
    const TableRow& a = group_.rows[find_row(group_, options_.compare->first, "--compare")];
    const TableRow& b = group_.rows[find_row(group_, options_.compare->second, "--compare")];
    for (std::size_t c = 0; c < group_.columns.size(); ++c) {
      Comparison comparison{group_.columns[c].label, group_.columns[c].metric, {}, {}};
      const Common common = common_seeds(a.cells[c], b.cells[c]);
      comparison.seeds = common.seeds;
      if (!common.seeds.empty()) comparison.paired = paired_difference(common.a, common.b);
      group_.comparisons.push_back(std::move(comparison));
    }
  }

  std::vector<ColumnRuns> column_runs() const {
    std::vector<ColumnRuns> result;
    for (std::size_t k = 0; k < col_axis_.keys.size(); ++k) {
      ColumnRuns entry;
      entry.label = options_.cols.empty() ? std::string() : col_axis_.label(k);
      for (std::size_t c = 0; c < column_key_.size(); ++c)
        if (column_key_[c] == k) entry.metrics.push_back(group_.columns[c].metric);
      for (const LoadedRun* run : runs_at(nullptr, &col_axis_.keys[k]))
        if (run->state == RunState::finished) entry.finished.push_back(run);
      result.push_back(std::move(entry));
    }
    return result;
  }

  const Runs& runs_;
  std::vector<std::string> metrics_;
  const TableOptions& options_;
  AxisValues row_axis_, col_axis_;
  std::vector<std::size_t> column_key_;  // column -> place in col_axis_; averages have none
  TableGroup group_;
};

}  // namespace

TableGroup build_group(const Runs& runs, const std::vector<std::string>& metrics, const TableOptions& options) {
  return GroupBuilder(runs, metrics, options).build();
}

}  // namespace waymark::train::table
