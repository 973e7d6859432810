// Numbers of a table as they are shown.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/tensor/error.h"
#include "train/report/table_parts.h"

namespace waymark::train::table {

namespace {

double unit(const TableColumn& column) { return column.share ? 100 : 1; }

// floor(log10(x)) of the number as it looks with two significant digits: 0.0996 is 0.10, so -1.
int exponent_of(double x) {
  const std::string text = fmt::format("{:.1e}", x);
  return std::stoi(text.substr(text.find('e') + 1));
}

std::string si(double value, const char* unit_name) {
  constexpr std::array<std::pair<double, const char*>, 4> kScales = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, prefix] : kScales)
    if (std::abs(value) >= scale) return fmt::format("{:.1f} {}{}", value / scale, prefix, unit_name);
  return fmt::format("{:.0f} {}", value, unit_name);
}

std::string one_extra(const std::string& name, double value) {
  if (name == "parameters") return with_thousands(std::llround(value));
  if (name == "seconds" || name == "cpu_seconds") return fmt::format("{:.1f}", value);
  if (name == "tokens_per_s") return with_thousands(std::llround(value));
  if (name == "flops") {
    std::string text = si(value, "");
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
  }
  return fmt::format("{:.0f}", value / (1024.0 * 1024.0));
}

}  // namespace

std::pair<std::string, std::string> split_metric(const std::string& metric) {
  const std::size_t dot = metric.find('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == metric.size())
    fail("table", "metric {}: expected split.metric, as test.accuracy or test@128.loss", metric);
  return {metric.substr(0, dot), metric.substr(dot + 1)};
}

int decimals_of(const TableGroup& group, std::size_t c) {
  const TableColumn& column = group.columns[c];
  double largest_sd = 0, largest_mean = 0;
  for (const TableRow& row : group.rows) {
    const TableCell& cell = row.cells[c];
    if (cell.summary.n == 0) continue;
    largest_mean = std::max(largest_mean, std::abs(cell.summary.mean) * unit(column));
    if (cell.summary.sd) largest_sd = std::max(largest_sd, *cell.summary.sd * unit(column));
  }
  // Never more than six digits of a mean: beyond that f32 has nothing to say.
  const int most = largest_mean > 0 ? std::clamp(5 - exponent_of(largest_mean), 0, 12) : 4;
  if (largest_sd > 0) return std::clamp(1 - exponent_of(largest_sd), 0, most);
  if (column.share) return 1;
  return largest_mean > 0 ? std::clamp(3 - exponent_of(largest_mean), 0, 12) : 1;
}

std::string shown_value(const TableColumn& column, double value) {
  const std::string text = fmt::format("{:.{}f}", value * unit(column), column.decimals);
  // "-0.00" says no more than "0.00".
  return text[0] == '-' && text.find_first_not_of("-0.") == std::string::npos ? text.substr(1) : text;
}

std::string shown_sd(const TableColumn& column, double sd) {
  const double shown = sd * unit(column);
  if (column.decimals > 0 || shown < 99.5) return fmt::format("{:.{}f}", shown, column.decimals);
  const double step = std::pow(10, exponent_of(shown) - 1);
  return fmt::format("{:.0f}", std::round(shown / step) * step);
}

std::string metric_title(const TableColumn& column) { return column.metric + (column.share ? " %" : ""); }

std::string with_thousands(i64 value) {
  std::string text = fmt::format("{}", value);
  for (i64 at = static_cast<i64>(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string shown_extra(const std::string& name, std::optional<double> mean, std::pair<double, double> range) {
  if (!mean) return "-";
  // Counts are exact, so a difference is shown; times are means.
  const bool exact = name == "parameters" || name == "flops";
  const std::string low = one_extra(name, range.first), high = one_extra(name, range.second);
  return exact && low != high ? low + "–" + high : one_extra(name, *mean);
}

std::string extra_title(const std::string& name) {
  if (name == "tokens_per_s") return "tokens/s";
  if (name == "flops") return "flops per step";
  if (name == "peak_memory") return "peak memory MiB";
  if (name == "cpu_seconds") return "CPU seconds";
  return name;
}

}  // namespace waymark::train::table
