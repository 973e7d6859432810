// Tables of runs: rows and columns by config keys, a cell = mean ± sample s.d. (n) over seeds.
//
//   RunSet set = load_runs({"sweeps/a"});
//   TableOptions options;
//   options.metrics = {"test.loss", "test@*.loss"};
//   fmt::print("{}", make_table(set.runs, options));
//
// build_table makes the numbers and everything that is said about them, write_table the text. Rules:
// * A state is a word, never a number: a cell without a finished run says failed 3/3, missing, running or
//   refused: reason; the mean of a cell with others besides carries (1 of 3, failed 2/3). Nothing missing enters it.
// * The checkpoint is the last one, or the one chosen on validation, for each seed anew. Nothing is chosen on test.
// * Bold = best mean of the column. † = not distinguishable from it: n >= 3 and the 95 % interval of the difference
//   contains 0; differences are paired over common seeds, or (pooled) the s.d. is that over the rows of the column.
// * What makes runs of a column incomparable (other data, steps, preset, masking, length, or any other key that decides
//   a result and is no row or column) is a warning that names the runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/report/loaded_run.h"
#include "train/report/statistics.h"

namespace waymark::train {

enum class TableFormat { markdown, csv, latex, json };
// "md", "csv", "latex", "json"; Error with these names for another word.
WAYMARK_API TableFormat table_format(std::string_view word);

struct TableOptions {
  std::vector<std::string> rows = {"model.position"};  // config keys; one column of labels for each
  std::vector<std::string> cols = {"task"};            // config keys; empty: one column per metric
  std::vector<std::string> group_by = {};                   // config keys; one table for each combination of values
  // "test.accuracy", "test@128.loss"; * and ? stand for characters ("test*.loss"). Empty: the main metric on test.
  std::vector<std::string> metrics = {};
  bool best = false;  // the checkpoint with the best validation value instead of the last one
  TableFormat format = TableFormat::markdown;
  // key and glob on the short or the canonical value. Globs of one key are alternatives, keys must all match.
  std::vector<std::pair<std::string, std::string>> filters = {};
  bool ci = false;       // with the 95 % t interval of the mean
  bool pooled = false;   // † and ci from the s.d. pooled over the rows of the column
  bool average = false;  // with the mean over the columns of each metric, for rows that have them all
  std::optional<std::pair<std::string, std::string>> compare = {};  // labels of two rows: paired differences
  std::vector<std::string> extra = {};  // parameters, seconds, cpu_seconds, tokens_per_s, flops, peak_memory
  std::string reference = {};           // label of the row for parameter counts; empty: the first one
  bool baselines = true;           // the task's baselines as the first rows
};

struct CellRun {
  std::string id = {}, name = {};
  std::string state = {};  // finished, failed, ...; of a finished run without a value "not measured" or "nonfinite"
  i64 seed = 0;
  std::optional<double> value = {};
};

struct TableCell {
  std::vector<CellRun> runs = {};
  std::string refused = {};  // reason, if all runs were refused
  Summary summary = {};      // over the runs with a value
  std::optional<Interval> interval = {};
  bool best = false, indistinguishable = false, untrained = false, approximate = false;

  std::vector<double> values() const;
  // Words for what has no value: "failed 2/3", "missing", "refused: no pairwise score"; empty if every run has one.
  std::string states() const;
};

struct TableColumn {
  std::string label = {};           // value of `cols`, "average" for means over columns
  std::string metric = {};          // "test.accuracy"
  bool share = false;          // shown in per cent
  bool lower_is_better = false;
  bool is_average = false;
  std::optional<PooledSd> pooled = {};
  int decimals = 0;            // of what is shown
};

struct TableRow {
  std::vector<std::string> labels = {};  // one for each key of `rows`
  bool baseline = false;            // labels[0] is its name; cells hold one value without runs
  std::vector<TableCell> cells = {};     // one for each column
  std::vector<std::optional<double>> extra = {};        // means over the finished runs of the row
  std::vector<std::pair<double, double>> extra_range = {};  // least and largest
  std::optional<double> more_parameters = {};  // 0.23 = 23 % more than the reference row, if above 0.1

  std::string label() const;  // all labels, joined by " / "
};

struct Comparison {
  std::string column = {}, metric = {};
  std::vector<i64> seeds = {};  // common to both rows
  std::optional<Paired> paired = {};  // of a - b; empty without common seeds
};

struct TableGroup {
  std::vector<std::pair<std::string, std::string>> keys = {};  // of group_by, with the values
  std::vector<TableColumn> columns = {};
  std::vector<TableRow> rows = {};
  std::vector<Comparison> comparisons = {};
  std::string caption = {};
  std::vector<std::string> warnings = {};
};

struct Table {
  std::vector<TableGroup> groups = {};
};

// Errors: no run, no run left by the filters, a key, metric, row or extra that no run has (with what there is).
WAYMARK_API Table build_table(const std::vector<LoadedRun>& runs, const TableOptions& options);
// csv has one line per row and column, or the comparison if one is asked for; values are unrounded, shares not in per
// cent; it has no place for captions and warnings. Ends with a line break.
WAYMARK_API std::string write_table(const Table& table, const TableOptions& options);
WAYMARK_API std::string make_table(const std::vector<LoadedRun>& runs, const TableOptions& options);

}  // namespace waymark::train
