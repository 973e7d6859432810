// Internal: what the files of the table share: numbers as they are shown, and the texts about a group.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/report/table.h"

namespace waymark::train::table {

// The runs behind one column value, for captions and warnings.
struct ColumnRuns {
  std::string label = {};
  std::vector<std::string> metrics = {};
  std::vector<const LoadedRun*> finished = {};
};

using Runs = std::vector<const LoadedRun*>;
using Key = std::vector<std::string>;  // canonical values, one for each config key of an axis

// Values of some config keys in order of appearance, with labels: the short form, the canonical one where two values
// would look the same.
struct AxisValues {
  std::vector<Key> keys = {};
  std::vector<std::vector<std::string>> labels = {};

  std::size_t place(const Key& key) const;
  std::string label(std::size_t i) const;  // joined by " / "
};
Key key_of(const LoadedRun& run, const std::vector<std::string>& names);
AxisValues axis_values(const Runs& runs, const std::vector<std::string>& names);

const std::optional<Evaluation>& evaluation(const RunResult& result, const TableOptions& options);
TableGroup build_group(const Runs& runs, const std::vector<std::string>& metrics, const TableOptions& options);

// "test@128.loss" -> {"test@128", "loss"}.
std::pair<std::string, std::string> split_metric(const std::string& metric);

// Decimals for a column: s.d. with two significant digits at most; where there is none, means with four.
int decimals_of(const TableGroup& group, std::size_t column);
// The value in the column's unit and decimals: "61.2".
std::string shown_value(const TableColumn& column, double value);
// A s.d.: the same decimals, and never more than two significant digits.
std::string shown_sd(const TableColumn& column, double sd);
// "test.accuracy %".
std::string metric_title(const TableColumn& column);
// "1,234,567".
std::string with_thousands(i64 value);
// The row's entry in extra column `name`: "173,954", "73.0 G", "71 MiB"; "-" if unknown; a range where runs differ.
std::string shown_extra(const std::string& name, std::optional<double> mean, std::pair<double, double> range);
std::string extra_title(const std::string& name);

std::string caption_of(const TableGroup& group, const std::vector<ColumnRuns>& runs, const TableOptions& options);
std::vector<std::string> warnings_of(const std::vector<ColumnRuns>& runs, const TableOptions& options);

std::string write_markdown(const Table& table, const TableOptions& options);
std::string write_latex(const Table& table, const TableOptions& options);
std::string write_csv(const Table& table, const TableOptions& options);
std::string write_json_table(const Table& table, const TableOptions& options);

}  // namespace waymark::train::table
