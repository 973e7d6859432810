#include "train/report/table.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/tensor/error.h"
#include "nn/spec/glob.h"
#include "nn/spec/suggest.h"
#include "train/report/table_parts.h"

namespace waymark::train {

namespace {

using table::Runs;

constexpr std::array<std::string_view, 6> kExtra = {"parameters",   "seconds", "cpu_seconds",
                                                    "tokens_per_s", "flops",   "peak_memory"};

std::vector<std::string> sorted(const std::set<std::string>& names) { return {names.begin(), names.end()}; }

// ---- Which runs

bool passes(const LoadedRun& run, const std::vector<std::pair<std::string, std::string>>& filters) {
  std::map<std::string, bool> matched;
  for (const auto& [key, glob] : filters) {
    const auto canonical = run.result.config.find(key);
    const bool found = canonical != run.result.config.end() &&
                       (nn::glob_match(glob, canonical->second) || nn::glob_match(glob, *run.result.shown(key)));
    matched[key] = matched[key] || found;
  }
  return std::all_of(matched.begin(), matched.end(), [](const auto& entry) { return entry.second; });
}

// The same run found twice counts once.
Runs select(const std::vector<LoadedRun>& all, const TableOptions& options) {
  Runs runs;
  std::set<std::string> seen;
  for (const LoadedRun& run : all)
    if (passes(run, options.filters) && (run.result.id.empty() || seen.insert(run.result.id).second))
      runs.push_back(&run);
  if (runs.empty()) fail("table", "the filters leave none of {} run{}", all.size(), all.size() == 1 ? "" : "s");
  return runs;
}

void check_keys(const std::vector<LoadedRun>& runs, const TableOptions& options) {
  std::set<std::string> known;
  for (const LoadedRun& run : runs)
    for (const auto& [key, value] : run.result.config) known.insert(key);
  const auto check = [&](const char* option, const std::string& key) {
    if (!known.count(key))
      fail("table", "{} {}: no run has this config key.{}", option, nn::printable(key),
           nn::did_you_mean(key, sorted(known)));
  };
  for (const std::string& key : options.rows) check("--rows", key);
  for (const std::string& key : options.cols) check("--cols", key);
  for (const std::string& key : options.group_by) check("--group-by", key);
  for (const auto& [key, glob] : options.filters) check("--filter", key);
  if (options.rows.empty()) fail("table", "--rows needs at least one config key");
  for (const std::string& name : options.extra)
    if (std::find(kExtra.begin(), kExtra.end(), name) == kExtra.end())
      fail("table", "unknown extra column {}; there are parameters, seconds, cpu_seconds, tokens_per_s, flops and "
           "peak_memory", nn::printable(name));
}

// The metrics that the names and globs of the options mean, in the order of the evaluations.
std::vector<std::string> expand_metrics(const Runs& runs, const TableOptions& options) {
  std::vector<std::string> known, chosen, globs = options.metrics;
  const auto add = [](std::vector<std::string>& to, const std::string& name) {
    if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
  };
  for (const LoadedRun* run : runs)
    for (const auto* e : {&run->result.last, &run->result.best})
      if (*e)
        for (const auto& [split, result] : (*e)->splits)
          for (const auto& [metric, value] : result.metrics) add(known, split + "." + metric);
  if (globs.empty())
    for (const LoadedRun* run : runs)
      if (!run->result.main_metric.empty()) add(globs, "test." + run->result.main_metric);
  if (globs.empty()) globs = {"test.*"};
  for (const std::string& glob : globs) {
    const std::size_t before = chosen.size();
    bool found = false;
    for (const std::string& name : known)
      if (nn::glob_match(glob, name)) {
        found = true;
        add(chosen, name);
      }
    if (found || chosen.size() > before) continue;
    // A table of runs that are all still to come is no mistake.
    if (known.empty() && glob.find_first_of("*?") == std::string::npos && glob.find('.') != std::string::npos) {
      add(chosen, glob);
    } else if (known.empty()) {
      fail("table", "no run has a result yet, so --metric {} means nothing; name the metric, as test.accuracy",
           nn::printable(glob));
    } else {
      fail("table", "--metric {}: no run has it. There {}: {}", nn::printable(glob), known.size() == 1 ? "is" : "are",
           nn::printable(fmt::format("{}", fmt::join(known, ", ")), 400));
    }
  }
  return chosen;
}

}  // namespace

TableFormat table_format(std::string_view word) {
  constexpr std::array<std::string_view, 4> kWords = {"md", "csv", "latex", "json"};
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (word == kWords[i]) return static_cast<TableFormat>(i);
  fail("table", "unknown format {}; there are md, csv, latex and json", nn::printable(word));
}

std::vector<double> TableCell::values() const {
  std::vector<double> result;
  for (const CellRun& run : runs)
    if (run.value) result.push_back(*run.value);
  return result;
}

std::string TableCell::states() const {
  std::vector<std::pair<std::string, i64>> counts;
  for (const CellRun& run : runs) {
    if (run.value) continue;
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == run.state; });
    if (found == counts.end()) {
      counts.emplace_back(run.state, 1);
    } else {
      ++found->second;
    }
  }
  if (runs.empty()) return "missing";
  std::string text;
  const i64 all = static_cast<i64>(runs.size());
  for (const auto& [state, count] : counts) {
    if (!text.empty()) text += ", ";
    text += state;
    // "failed 3/3" counts what was tried; of what has not happened the word alone says it all.
    const bool plain = count == all && state != "failed" && state != "interrupted" && state != "nonfinite";
    if (!plain && all > 1) text += fmt::format(" {}/{}", count, all);
    if (state == "refused" && !refused.empty()) text += ": " + refused;
  }
  return text;
}

std::string TableRow::label() const { return fmt::format("{}", fmt::join(labels, " / ")); }

Table build_table(const std::vector<LoadedRun>& all, const TableOptions& options) {
  if (all.empty()) fail("table", "there are no runs");
  check_keys(all, options);
  const Runs runs = select(all, options);
  const std::vector<std::string> metrics = expand_metrics(runs, options);
  const table::AxisValues groups = table::axis_values(runs, options.group_by);
  Table result;
  for (std::size_t g = 0; g < groups.keys.size(); ++g) {
    Runs members;
    for (const LoadedRun* run : runs)
      if (table::key_of(*run, options.group_by) == groups.keys[g]) members.push_back(run);
    TableGroup group = table::build_group(members, metrics, options);
    for (std::size_t k = 0; k < options.group_by.size(); ++k)
      group.keys.emplace_back(options.group_by[k], groups.labels[g][k]);
    result.groups.push_back(std::move(group));
  }
  return result;
}

std::string write_table(const Table& table, const TableOptions& options) {
  switch (options.format) {
    case TableFormat::markdown: return table::write_markdown(table, options);
    case TableFormat::csv: return table::write_csv(table, options);
    case TableFormat::latex: return table::write_latex(table, options);
    case TableFormat::json: return table::write_json_table(table, options);
  }
  fail("table", "unknown format");
}

std::string make_table(const std::vector<LoadedRun>& runs, const TableOptions& options) {
  return write_table(build_table(runs, options), options);
}

}  // namespace waymark::train
