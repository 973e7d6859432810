// waymark table DIR...
#include "train/report/table.h"

#include <fmt/format.h>

#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/console.h"
#include "train/config/keys.h"
#include "train/config/source.h"
#include "train/report/run_plots.h"

namespace waymark::train::cli {

namespace {

// "task,seed", checked against the keys; "none" is the empty list.
std::vector<std::string> keys_of(const Arguments& arguments, const char* option, Problems& problems) {
  std::vector<std::string> keys;
  const std::string text = arguments.text(option);
  if (text == "none") return keys;
  for (const std::string& key : split_top_level(text)) {
    if (find_key(key))
      keys.push_back(key);
    else
      problems.push_back({option, fmt::format("{} is no config key.{}", nn::printable(key), suggest_key(key))});
  }
  return keys;
}

TableOptions options_of(const Arguments& arguments, Problems& problems) {
  TableOptions options;
  if (arguments.has("--rows")) options.rows = keys_of(arguments, "--rows", problems);
  if (arguments.text("--rows") == "none") problems.push_back({"--rows", "must name a config key"});
  if (arguments.has("--cols")) options.cols = keys_of(arguments, "--cols", problems);
  if (arguments.has("--group-by")) options.group_by = keys_of(arguments, "--group-by", problems);
  for (const std::string& text : arguments.all("--metric"))
    for (const std::string& metric : split_top_level(text)) options.metrics.push_back(metric);
  options.best = arguments.text("--from") == "best";
  if (arguments.has("--format") && !arguments.is_bad("--format")) options.format = table_format(arguments.text("--format"));
  for (const std::string& filter : arguments.all("--filter")) {
    Override o;
    if (!split_setting(filter, "--filter", o, problems)) continue;
    if (!find_key(o.key))
      problems.push_back({"--filter", fmt::format("{} is no config key.{}", nn::printable(o.key), suggest_key(o.key))});
    options.filters.emplace_back(o.key, o.text);
  }
  options.ci = arguments.has("--ci");
  options.pooled = arguments.has("--pooled");
  options.average = arguments.has("--average");
  options.baselines = !arguments.has("--no-baselines");
  options.reference = arguments.text("--reference");
  if (const auto rows = arguments.all("--compare"); rows.size() == 2) options.compare = {rows[0], rows[1]};
  for (const std::string& text : arguments.all("--extra"))
    for (const std::string& extra : split_top_level(text)) options.extra.push_back(extra);
  return options;
}

int run_table(const Arguments& arguments) {
  Problems problems = arguments.problems;
  const TableOptions options = options_of(arguments, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  std::string text;
  try {
    const RunSet set = load_runs({arguments.positionals().begin(), arguments.positionals().end()});
    for (const std::string& warning : set.warnings) print_warning(warning);
    if (set.runs.empty()) {
      std::string folders;
      for (const std::string& folder : arguments.positionals())
        folders += (folders.empty() ? "" : ", ") + nn::printable(folder, 200);
      throw ConfigError(Problems{{"", fmt::format("there are no runs in {}", folders)}});
    }
    text = make_table(set.runs, options);
    if (arguments.has("--plots"))
      for (const std::string& file : write_plots(set.runs, options.rows, arguments.text("--plots")))
        if (!arguments.has("--quiet")) note("{}\n", file);
  } catch (const Error& e) {  // no such folder, row or metric: the request was wrong
    throw ConfigError(Problems{{"", std::string(e.what())}});
  }
  fmt::print("{}", text);
  return 0;
}

}  // namespace

Command table_command() {
  Command command;
  command.name = "table";
  command.summary = "compare finished runs: mean and s.d. over seeds";
  command.positionals = {{"DIR", "folders of sweeps or runs", 1, -1}};
  command.options = {
      {"--rows", "KEYS", "config keys whose values are the rows", "model.position"},
      {"--cols", "KEYS", "config keys whose values are the columns, or none", "task"},
      {"--group-by", "KEYS", "one table for each value of these keys", ""},
      {"--metric",
       "NAMES",
       "test.accuracy, test@128.loss; * and ? stand for letters",
       "the task's own",
       ArgumentType::text,
       {},
       true},
      {"--from", "WHICH", "the checkpoint: last, or best on validation", "last", ArgumentType::text, {"best", "last"}},
      {"--filter", "KEY=GLOB", "only runs whose value matches", "", ArgumentType::text, {}, true},
      {"--format", "NAME", "of the text", "md", ArgumentType::text, {"md", "csv", "latex", "json"}},
      {"--ci", "", "with the 95 % interval of the mean", ""},
      {"--pooled", "", "intervals from the s.d. pooled over the rows of a column", ""},
      {"--compare",
       "A B",
       "paired differences of two rows over common seeds",
       "",
       ArgumentType::text,
       {},
       false,
       false,
       2},
      {"--average", "", "with the mean over the columns, for rows that have them all", ""},
      {"--extra",
       "NAMES",
       "further columns: parameters, seconds, cpu_seconds, tokens_per_s, flops, peak_memory",
       "",
       ArgumentType::text,
       {},
       true},
      {"--reference", "ROW", "row that parameter counts are compared with", "the first"},
      {"--plots", "DIR", "also draw learning curves, loss by length, attention and tables by distance, as SVG", ""},
      {"--no-baselines", "", "without the task's baselines", ""},
  };
  command.examples = {"waymark table sweeps/a --metric 'test*.loss' --pooled",
                      "waymark table sweeps/a --rows model.position --cols none --format csv > a.csv"};
  command.joins_problems = true;
  command.run = run_table;
  return command;
}

}  // namespace waymark::train::cli
