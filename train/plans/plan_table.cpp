// The result of a plan beside the numbers that were measured before.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "core/io/npz.h"
#include "train/config/resolve.h"
#include "train/plans/plan.h"
#include "train/report/escape.h"
#include "train/report/statistics.h"

namespace waymark::train {

namespace {

namespace fs = std::filesystem;

// Share of the attention within a distance in the last layer, mean over heads.
std::optional<double> within_of(const LoadedRun& run, i64 reach) {
  fs::path last;
  for (i64 layer = 0;; ++layer) {
    const fs::path file = run.folder / "position" / fmt::format("{}.npz", layer);
    std::error_code ignored;
    if (!fs::exists(file, ignored)) break;
    last = file;
  }
  if (last.empty()) return std::nullopt;
  const Npz file = load_npz(last);
  if (!file.contains("within") || !file.contains("within_distance")) return std::nullopt;
  const auto reaches = file.get("within_distance").to_vector<i64>();
  const auto found = std::find(reaches.begin(), reaches.end(), reach);
  if (found == reaches.end()) return std::nullopt;
  const auto shares = file.get("within").to_vector<double>();
  std::vector<double> heads;
  for (size_t at = static_cast<size_t>(found - reaches.begin()); at < shares.size(); at += reaches.size()) heads.push_back(shares[at]);
  return heads.empty() ? std::nullopt : std::optional(mean(heads));
}

std::optional<double> value_of(const LoadedRun& run, const std::string& metric) {
  if (run.state != RunState::finished) return std::nullopt;
  const size_t dot = metric.find('.');
  if (metric.rfind("within.", 0) == 0) return within_of(run, std::stoll(metric.substr(dot + 1)));
  if (!run.result.last) return std::nullopt;
  const SplitResult* split = run.result.last->find(metric.substr(0, dot));
  const MetricValue* value = split ? split->find(metric.substr(dot + 1)) : nullptr;
  if (!value || !std::isfinite(value->value)) return std::nullopt;
  return value->value * (is_share(metric) ? 100 : 1);
}

// Decimals that a column is shown with.
int decimals_of(const std::string& metric) { return metric.rfind("within.", 0) == 0 ? 2 : is_share(metric) ? 1 : 3; }

// What decides a run of the plan, without its seed.
std::map<std::string, std::string> lines_of(const Plan& plan, const PlanRow& row) {
  Problems problems;
  const Source recipe = read_toml_text(plan.recipe, plan.name, problems);
  const Source axis = command_line_source({{"model.position", row.position, plan.name, true},
                                           {"model.attention", row.attention, plan.name, true}},
                                          problems);
  const auto config = resolve_config({recipe, axis}, problems);
  if (!config) return {};
  auto lines = config->id_lines();
  lines.erase("seed");
  return lines;
}

bool belongs(const LoadedRun& run, const std::map<std::string, std::string>& lines) {
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](const auto& line) {
           // A result leaves out keys that were not set.
           const auto found = run.result.config.find(line.first);
           return (found == run.result.config.end() ? std::string() : found->second) == line.second;
         });
}

struct Row {
  std::string label;
  std::vector<const LoadedRun*> runs;
  const PlanRow* expected = nullptr;
};

std::vector<Row> rows_of(const Plan& plan, const std::vector<LoadedRun>& runs) {
  std::vector<std::pair<const PlanRow*, std::map<std::string, std::string>>> known;
  for (const PlanRow& row : plan.rows) known.emplace_back(&row, lines_of(plan, row));
  std::vector<Row> rows;
  for (const LoadedRun& run : runs) {
    const auto shown = [&](const char* key) { return run.result.shown(key).value_or("?"); };
    std::string label = shown("model.position");
    if (shown("model.attention") != "dense") label += " / " + shown("model.attention");
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.label == label; });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), Row{label, {}, nullptr});
      for (const auto& [expected, lines] : known)
        if (belongs(run, lines)) row->expected = expected;
    }
    row->runs.push_back(&run);
  }
  return rows;
}

std::string cell_of(const Row& row, const Plan& plan, size_t column) {
  const int decimals = decimals_of(plan.columns[column].metric);
  std::vector<double> values;
  for (const LoadedRun* run : row.runs)
    if (const auto value = value_of(*run, plan.columns[column].metric)) values.push_back(*value);
  std::string text;
  if (values.empty()) {
    text = row.runs.front()->state == RunState::finished ? "not measured" : std::string(name_of(row.runs.front()->state));
  } else {
    const Summary s = summarize(values);
    text = fmt::format("{:.{}f}", s.mean, decimals);
    if (s.sd) text += fmt::format(" ± {:.{}f}", *s.sd, decimals);
    if (values.size() < row.runs.size()) text += fmt::format(" ({} of {})", values.size(), row.runs.size());
  }
  if (row.expected && column < row.expected->expected.size() && std::isfinite(row.expected->expected[column])) {
    const double known = row.expected->expected[column];
    text += fmt::format(" [{:.{}f}{}]", known, is_share(plan.columns[column].metric) ? 0 : decimals, row.expected->one_seed ? "¹" : "");
  }
  return text;
}

}  // namespace

std::string plan_table(const Plan& plan, const std::vector<LoadedRun>& runs) {
  const std::vector<Row> rows = rows_of(plan, runs);
  std::string text = "| model.position |", rule = "|---|";
  for (const PlanColumn& column : plan.columns) {
    text += " " + escape_markdown(column.label) + " |";
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  bool any_expected = false, one_seed = false;
  size_t most = 0;
  double seconds = 0;
  i64 timed = 0;
  for (const Row& row : rows) {
    text += "| " + escape_markdown(row.label) + " |";
    for (size_t c = 0; c < plan.columns.size(); ++c) text += " " + cell_of(row, plan, c) + " |";
    text += "\n";
    any_expected |= row.expected && !row.expected->expected.empty();
    one_seed |= row.expected && row.expected->one_seed && !row.expected->expected.empty();
    most = std::max(most, row.runs.size());
    for (const LoadedRun* run : row.runs)
      if (run->result.cpu_seconds) {
        seconds += *run->result.cpu_seconds;
        ++timed;
      }
  }
  text += most > 1 ? fmt::format("\nLast state of each run; mean ± sample s.d. over up to {} seeds.", most)
                   : std::string("\nLast state of each run; one seed.");
  if (timed > 0) text += fmt::format(" {:.1f} CPU seconds a run on average.", seconds / static_cast<double>(timed));
  if (any_expected)
    text += fmt::format(" In brackets: what an independent prototype reached{}.", one_seed ? " (¹ on one seed)" : "");
  else
    text += " No row has the settings of the plan, so there is nothing to compare with.";
  return text + "\n" + (plan.reads.empty() ? "" : plan.reads + "\n");
}

}  // namespace waymark::train
