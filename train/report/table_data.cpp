// Tables for programs: CSV with one line per row and column, JSON with the raw value of each seed.
#include <fmt/format.h>

#include "train/report/escape.h"
#include "train/report/json.h"
#include "train/report/table_parts.h"

namespace waymark::train::table {

namespace {

std::string line_of(const std::vector<std::string>& fields) {
  std::string out;
  for (std::size_t i = 0; i < fields.size(); ++i) out += (i == 0 ? "" : ",") + csv_field(fields[i]);
  return out + "\n";
}

std::string maybe(const std::optional<double>& value) { return value ? shortest(*value) : ""; }
std::string yes(bool value) { return value ? "yes" : ""; }

std::string comparison_csv(const Table& table, const TableOptions& options) {
  std::vector<std::string> header = options.group_by;
  header.insert(header.end(), {"a", "b", "column", "metric", "n", "mean", "sd", "ci_low", "ci_high", "positive",
                               "negative", "zero", "seeds"});
  std::string out = line_of(header);
  for (const TableGroup& group : table.groups)
    for (const Comparison& c : group.comparisons) {
      std::vector<std::string> fields;
      for (const auto& [key, value] : group.keys) fields.push_back(value);
      fields.insert(fields.end(), {options.compare->first, options.compare->second, c.column, c.metric});
      const Paired p = c.paired.value_or(Paired{});
      const auto count = [&](i64 n) { return c.paired ? fmt::format("{}", n) : std::string(); };
      fields.insert(fields.end(), {fmt::format("{}", p.difference.n), c.paired ? shortest(p.difference.mean) : "",
                                   maybe(p.difference.sd), p.interval ? shortest(p.interval->low) : "",
                                   p.interval ? shortest(p.interval->high) : "", count(p.positive),
                                   count(p.negative), count(p.zero), fmt::format("{}", fmt::join(c.seeds, " "))});
      out += line_of(fields);
    }
  return out;
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json interval_json(const Interval& interval) { return Json::Array{interval.low, interval.high}; }

Json cell_json(const TableColumn& column, const TableRow& row, const TableCell& cell) {
  Json out;
  out.set("column", column.label).set("metric", column.metric);
  if (cell.summary.n > 0) out.set("mean", cell.summary.mean);
  if (cell.summary.sd) out.set("sd", *cell.summary.sd);
  out.set("n", row.baseline ? 0 : cell.summary.n);
  if (row.baseline) return out;
  out.set("planned", cell.runs.size() > 0 ? static_cast<i64>(cell.runs.size()) : i64{0});
  if (cell.interval) out.set("interval", interval_json(*cell.interval));
  if (cell.best) out.set("best", true);
  if (cell.indistinguishable) out.set("indistinguishable", true);
  if (cell.untrained) out.set("untrained", true);
  if (cell.approximate) out.set("approximate", true);
  if (!cell.states().empty()) out.set("states", cell.states());
  Json::Array runs;
  for (const CellRun& run : cell.runs) {
    Json entry;
    if (!run.id.empty()) entry.set("id", run.id).set("name", run.name);
    entry.set("seed", run.seed).set("state", run.state);
    if (run.value) entry.set("value", *run.value);
    runs.push_back(std::move(entry));
  }
  return out.set("runs", std::move(runs));
}

}  // namespace

std::string write_csv(const Table& table, const TableOptions& options) {
  if (options.compare) return comparison_csv(table, options);
  std::vector<std::string> header = options.group_by;
  header.insert(header.end(), options.rows.begin(), options.rows.end());
  header.insert(header.end(), {"kind", "column", "metric", "checkpoint", "mean", "sd", "n", "planned", "ci_low",
                               "ci_high", "best", "indistinguishable", "untrained", "states", "seeds", "ids"});
  for (const std::string& name : options.extra) header.push_back(name);
  std::string out = line_of(header);
  for (const TableGroup& group : table.groups)
    for (const TableRow& row : group.rows)
      for (std::size_t c = 0; c < group.columns.size(); ++c) {
        const TableCell& cell = row.cells[c];
        if (row.baseline && cell.summary.n == 0) continue;
        std::vector<std::string> fields, seeds, ids;
        for (const CellRun& run : cell.runs) {
          seeds.push_back(fmt::format("{}", run.seed));
          if (!run.id.empty()) ids.push_back(run.id);
        }
        for (const auto& [key, value] : group.keys) fields.push_back(value);
        fields.insert(fields.end(), row.labels.begin(), row.labels.end());
        fields.insert(fields.end(),
                      {row.baseline ? "baseline" : group.columns[c].is_average ? "average" : "runs",
                       group.columns[c].label, group.columns[c].metric,
                       row.baseline ? "" : options.best ? "best" : "last",
                       cell.summary.n > 0 ? shortest(cell.summary.mean) : "", maybe(cell.summary.sd),
                       row.baseline ? "" : fmt::format("{}", cell.summary.n),
                       row.baseline ? "" : fmt::format("{}", cell.runs.size()),
                       cell.interval ? shortest(cell.interval->low) : "",
                       cell.interval ? shortest(cell.interval->high) : "", yes(cell.best),
                       yes(cell.indistinguishable), yes(cell.untrained), row.baseline ? "" : cell.states(),
                       fmt::format("{}", fmt::join(seeds, " ")), fmt::format("{}", fmt::join(ids, " "))});
        for (std::size_t k = 0; k < options.extra.size(); ++k) fields.push_back(maybe(row.extra[k]));
        out += line_of(fields);
      }
  return out;
}

std::string write_json_table(const Table& table, const TableOptions& options) {
  Json out;
  out.set("format", "waymark-table-1").set("checkpoint", options.best ? "best" : "last");
  Json::Array groups;
  for (const TableGroup& group : table.groups) {
    Json g, keys{Json::Object()};
    for (const auto& [key, value] : group.keys) keys.set(key, value);
    g.set("group", std::move(keys));
    Json::Array rows;
    for (const TableRow& row : group.rows) {
      Json r, labels{Json::Object()};
      for (std::size_t k = 0; k < options.rows.size(); ++k) labels.set(options.rows[k], row.labels[k]);
      r.set("labels", std::move(labels));
      if (row.baseline) r.set("baseline", true);
      if (row.more_parameters) r.set("more_parameters", *row.more_parameters);
      if (!row.baseline)
        for (std::size_t k = 0; k < options.extra.size(); ++k)
          r.set(options.extra[k], optional_json(row.extra[k]));
      Json::Array cells;
      for (std::size_t c = 0; c < group.columns.size(); ++c)
        cells.push_back(cell_json(group.columns[c], row, row.cells[c]));
      r.set("cells", std::move(cells));
      rows.push_back(std::move(r));
    }
    g.set("rows", std::move(rows));
    if (options.pooled) {
      Json::Array pooled;
      for (const TableColumn& column : group.columns) {
        Json p;
        p.set("column", column.label).set("metric", column.metric);
        if (column.pooled) p.set("sd", column.pooled->sd).set("df", column.pooled->df);
        pooled.push_back(std::move(p));
      }
      g.set("pooled", std::move(pooled));
    }
    if (options.compare) {
      Json compare;
      compare.set("a", options.compare->first).set("b", options.compare->second);
      Json::Array lines;
      for (const Comparison& c : group.comparisons) {
        Json line;
        line.set("column", c.column).set("metric", c.metric);
        line.set("seeds", Json::Array(c.seeds.begin(), c.seeds.end()));
        if (c.paired) {
          line.set("mean", c.paired->difference.mean);
          if (c.paired->difference.sd) line.set("sd", *c.paired->difference.sd);
          if (c.paired->interval) line.set("interval", interval_json(*c.paired->interval));
          line.set("positive", c.paired->positive).set("negative", c.paired->negative).set("zero", c.paired->zero);
        }
        lines.push_back(std::move(line));
      }
      compare.set("columns", std::move(lines));
      g.set("compare", std::move(compare));
    }
    g.set("caption", group.caption);
    g.set("warnings", Json::Array(group.warnings.begin(), group.warnings.end()));
    groups.push_back(std::move(g));
  }
  out.set("groups", std::move(groups));
  return write_json(out, 2) + "\n";
}

}  // namespace waymark::train::table
