// What a table says about itself: the caption, and the warnings about runs that cannot be compared.
#include <algorithm>
#include <map>
#include <set>

#include "core/tensor/error.h"
#include "train/config/keys.h"
#include "train/report/escape.h"
#include "train/report/table_parts.h"

namespace waymark::train::table {

namespace {

constexpr std::size_t kMostNames = 6;

std::string name_of_run(const LoadedRun& run) {
  return shorten(run.result.name.empty() ? run.result.id : run.result.name, 60);
}

// "0-2, 5" for {0, 1, 2, 5}.
std::string ranges(const std::set<i64>& numbers) {
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const i64 first = *it;
    i64 last = first;
    while (++it != numbers.end() && *it == last + 1) last = *it;
    if (!out.empty()) out += ", ";
    out += first == last ? fmt::format("{}", first)
                         : fmt::format("{}{}{}", first, last == first + 1 ? ", " : "–", last);
  }
  return out;
}

// A property in which the runs of one column must agree, as text; empty where a run has none.
struct Fact {
  const char* name;
  std::string (*of)(const LoadedRun& run, const ColumnRuns& column);
};

std::string config_value(const LoadedRun& run, const std::string& key) {
  return run.result.shown(key).value_or("");
}

std::string data_of(const LoadedRun& run, const ColumnRuns& column) {
  std::set<std::string> splits = {"train"};
  for (const std::string& metric : column.metrics) splits.insert(split_metric(metric).first);
  std::string text;
  for (const auto& [split, hash] : run.result.data.fingerprints)
    // An endless training stream is drawn from the run's seed: it differs between seeds on purpose, and has no size.
    if (splits.count(split) && (split != "train" || run.result.data.sizes.count(split)))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", shorten(split, 20), shorten(hash.substr(0, 8), 8));
  return text;
}

const std::vector<Fact>& facts() {
  static const std::vector<Fact> kFacts = {
      {"data", data_of},
      {"preset", [](const LoadedRun& r, const ColumnRuns&) { return config_value(r, "preset"); }},
      {"split", [](const LoadedRun& r, const ColumnRuns&) { return config_value(r, "data.split"); }},
      {"masking", [](const LoadedRun& r, const ColumnRuns&) { return r.result.data.masking; }},
      {"trained length",
       [](const LoadedRun& r, const ColumnRuns&) {
         return r.result.trained_length > 0 ? fmt::format("{}", r.result.trained_length) : std::string();
       }},
      {"steps", [](const LoadedRun& r, const ColumnRuns&) { return with_thousands(r.result.steps); }},
  };
  return kFacts;
}

using ByValue = std::vector<std::pair<std::string, std::vector<std::string>>>;  // value -> names of runs

void note(ByValue& values, const std::string& value, const std::string& name) {
  auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == value; });
  if (found == values.end()) found = values.insert(values.end(), {value, {}});
  found->second.push_back(name);
}

// Runs by canonical value; what is shown is the short form, unless two values would look the same.
ByValue values_of_key(const ColumnRuns& column, const std::string& key) {
  ByValue values;
  std::map<std::string, std::string> shown;
  std::set<std::string> short_forms;
  for (const LoadedRun* run : column.finished) {
    const auto found = run->result.config.find(key);
    const std::string canonical = found == run->result.config.end() ? "" : found->second;
    note(values, canonical, name_of_run(*run));
    shown[canonical] = config_value(*run, key);
  }
  for (const auto& [canonical, text] : shown) short_forms.insert(text);
  if (short_forms.size() == shown.size())
    for (auto& [value, names] : values) value = shown[value];
  return values;
}

std::string names(const std::vector<std::string>& all) {
  if (all.size() <= kMostNames) return fmt::format("{}", fmt::join(all, ", "));
  const std::vector<std::string> first(all.begin(), all.begin() + kMostNames);
  return fmt::format("{} and {} more", fmt::join(first, ", "), all.size() - kMostNames);
}

std::string mix(const std::string& column, const std::string& what, const ByValue& values) {
  std::string text = column.empty() ? "" : fmt::format("column {}: ", shorten(column, 60));
  text += fmt::format("the runs differ in {}: ", shorten(what, 60));
  for (std::size_t i = 0; i < values.size() && i < kMostNames; ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : "; ",
                        values[i].first.empty() ? "none" : shorten(values[i].first, 80), names(values[i].second));
  if (values.size() > kMostNames) text += fmt::format("; and {} more values", values.size() - kMostNames);
  return text;
}

// Unique values of a text over all runs, in order of appearance, joined.
template <class F> std::string joined(const std::vector<ColumnRuns>& columns, F text_of) {
  std::vector<std::string> values;
  for (const ColumnRuns& column : columns)
    for (const LoadedRun* run : column.finished) {
      const std::string text = text_of(*run, column);
      if (!text.empty() && std::find(values.begin(), values.end(), text) == values.end()) values.push_back(text);
    }
  if (values.size() > 4) {
    const std::size_t more = values.size() - 4;
    values.resize(4);
    values.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(values, " / "));
}

std::string significance(const TableGroup& group, const TableOptions& options) {
  if (!options.pooled)
    return "† = not distinguishable from the best: the 95 % t interval of the differences paired over common seeds "
           "contains 0 (n ≥ 3).";
  std::set<i64> freedoms;
  i64 rows = 0;
  for (const TableColumn& column : group.columns)
    if (column.pooled) freedoms.insert(static_cast<i64>(column.pooled->df));
  for (const TableRow& row : group.rows) rows += !row.baseline;
  if (freedoms.empty()) return "No column has two values in a row, so there is no pooled s.d. and no †.";
  const i64 least = *freedoms.begin(), most = *freedoms.rbegin();
  const auto t = [](i64 df) { return fmt::format("{:.2f}", student_t_quantile(0.975, static_cast<double>(df))); };
  return fmt::format(
      "† = not distinguishable from the best: the 95 % interval of the difference, from the s.d. pooled over the {} "
      "rows of the column ({} degrees of freedom, t = {}), contains 0 (n ≥ 3).",
      rows, least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most),
      least == most ? t(most) : t(least) + " to " + t(most));
}

}  // namespace

std::vector<std::string> warnings_of(const std::vector<ColumnRuns>& columns, const TableOptions& options) {
  std::vector<std::string> warnings;
  std::set<std::string> settled = {"seed", "preset", "data.split"};  // the last two are among the facts
  for (const auto* keys : {&options.rows, &options.cols, &options.group_by}) settled.insert(keys->begin(), keys->end());
  for (const KeyInfo& key : config_keys())
    if (!key.in_id) settled.insert(key.name);
  for (const ColumnRuns& column : columns) {
    const std::string label = columns.size() > 1 ? column.label : "";
    for (const Fact& fact : facts()) {
      ByValue values;
      for (const LoadedRun* run : column.finished) note(values, fact.of(*run, column), name_of_run(*run));
      if (values.size() > 1) warnings.push_back(mix(label, fact.name, values));
    }
    if (options.best) {
      ByValue values;
      for (const LoadedRun* run : column.finished) note(values, run->result.selection, name_of_run(*run));
      if (values.size() > 1) warnings.push_back(mix(label, "what the best checkpoint was selected on", values));
    }
    std::set<std::string> keys;
    for (const LoadedRun* run : column.finished)
      for (const auto& [key, value] : run->result.config)
        if (!settled.count(key)) keys.insert(key);
    for (const std::string& key : keys) {
      const ByValue values = values_of_key(column, key);
      if (values.size() > 1) warnings.push_back(mix(label, key, values));
    }
    std::vector<std::string> by_time;
    for (const LoadedRun* run : column.finished)
      if (run->result.stopped_by == "minutes") by_time.push_back(name_of_run(*run));
    if (!by_time.empty())
      warnings.push_back((label.empty() ? "" : fmt::format("column {}: ", shorten(label, 60))) +
                         fmt::format("stopped by time, not by steps, so not comparable by steps: {}", names(by_time)));
  }
  return warnings;
}

std::string caption_of(const TableGroup& group, const std::vector<ColumnRuns>& columns, const TableOptions& options) {
  std::set<i64> seeds, counts;
  bool spread = false, untrained = false, partial = false, approximate = false, share = false, dagger = false;
  bool marked = false, baseline = false, best = false;
  for (const TableRow& row : group.rows) {
    baseline = baseline || row.baseline;
    marked = marked || row.more_parameters;
    for (const TableCell& cell : row.cells) {
      if (row.baseline || cell.summary.n == 0) continue;
      for (const CellRun& run : cell.runs)
        if (run.value) seeds.insert(run.seed);
      counts.insert(cell.summary.n);
      spread = spread || cell.summary.sd;
      untrained = untrained || cell.untrained;
      approximate = approximate || cell.approximate;
      partial = partial || cell.summary.n < static_cast<i64>(cell.runs.size());
      best = best || cell.best;
      dagger = dagger || (cell.best && cell.summary.n >= 3);
    }
  }
  for (const TableColumn& column : group.columns) share = share || column.share;

  std::vector<std::string> parts;
  if (counts.empty()) {
    parts.emplace_back("No run is finished.");
  } else {
    const std::string n = counts.size() == 1 ? fmt::format("n = {}", *counts.begin()) : "n in brackets";
    parts.push_back(fmt::format("{} over {} {} ({}).", spread ? "Mean ± sample s.d." : "Mean",
                                seeds.size() == 1 ? "seed" : "seeds", ranges(seeds), n));
  }
  if (columns.size() == 1 && !options.cols.empty() && !columns[0].label.empty())
    parts.push_back(fmt::format("{}: {}.", fmt::join(options.cols, " / "), shorten(columns[0].label, 120)));
  if (share) parts.emplace_back("Columns with % are in per cent.");
  if (options.best) {
    const std::string on = joined(columns, [](const LoadedRun& r, const ColumnRuns&) { return r.result.selection; });
    parts.push_back(fmt::format("Checkpoint with the best {}, chosen for each seed.", on.empty() ? "validation" : on));
  } else {
    parts.emplace_back("Last checkpoint; nothing was selected.");
  }
  bool test = false;
  for (const TableColumn& column : group.columns)
    test = test || split_metric(column.metric).first.rfind("test", 0) == 0;
  if (test) parts.emplace_back("Test evaluated once, at the end of training.");
  std::vector<std::string> known;
  for (const Fact& fact : facts())
    if (const std::string text = joined(columns, fact.of); !text.empty())
      known.push_back(fmt::format("{} {}", fact.name, shorten(text, 200)));
  if (!known.empty()) {
    known[0][0] = static_cast<char>(known[0][0] - 'a' + 'A');
    parts.push_back(fmt::format("{}.", fmt::join(known, "; ")));
  }
  if (best) parts.emplace_back("Bold = best mean of the column.");
  if (dagger) parts.push_back(significance(group, options));
  if (options.ci)
    parts.push_back(options.pooled ? "[ ] = 95 % t interval of the mean, from the pooled s.d."
                                   : "[ ] = 95 % t interval of the mean.");
  if (options.average) {
    std::vector<std::string> over;
    for (const TableColumn& column : group.columns)
      if (!column.is_average && std::find(over.begin(), over.end(), column.label) == over.end())
        over.push_back(column.label);
    parts.push_back(fmt::format("Average over {}, only for rows and seeds that have them all.",
                                shorten(fmt::format("{}", fmt::join(over, ", ")), 200)));
  }
  if (untrained)
    parts.emplace_back(
        "untrained = uses rows of a position table beyond the trained length, which no step has changed.");
  if (partial) parts.emplace_back("(k of n): only k of n runs have a value.");
  if (approximate) parts.emplace_back("~ = measured on part of the split.");
  if (marked) {
    std::string reference = options.reference;
    for (const TableRow& row : group.rows)
      if (reference.empty() && !row.baseline) reference = row.label();
    parts.push_back(fmt::format("Marked: rows with over 10 % more parameters than {}.", shorten(reference, 80)));
  }
  if (baseline) parts.emplace_back("Baselines are shortcuts, computed on the same split.");
  if (!options.extra.empty() && columns.size() > 1)
    parts.emplace_back("Times and rates are means over the runs of all columns.");
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace waymark::train::table
