#include "train/report/plots.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/tensor/error.h"
#include "train/report/metrics_log.h"
#include "train/report/table_parts.h"

namespace waymark::train {

namespace {

using table::AxisValues;
using table::Runs;

// Curves by line, the lines in the order of the runs.
struct Lines {
  AxisValues axis;
  std::vector<std::vector<Curve>> curves;
};

Lines lines_for(const std::vector<LoadedRun>& runs, const std::vector<std::string>& rows) {
  Runs all;
  for (const LoadedRun& run : runs) all.push_back(&run);
  Lines lines{table::axis_values(all, rows), {}};
  lines.curves.resize(lines.axis.keys.size());
  return lines;
}

void add_curve(Lines& lines, const LoadedRun& run, const std::vector<std::string>& rows, Curve curve) {
  lines.curves[lines.axis.place(table::key_of(run, rows))].push_back(std::move(curve));
}

std::vector<Series> series_of(const Lines& lines) {
  std::vector<Series> series;
  for (std::size_t i = 0; i < lines.curves.size(); ++i) {
    if (lines.curves[i].empty()) continue;
    series.push_back(mean_series(lines.axis.label(i), lines.curves[i]));
    // The colour belongs to the row, so it is the same in every plot of these runs.
    series.back().color = series.back().dash = static_cast<i64>(i);
  }
  return series;
}

std::string over_seeds(const std::vector<Series>& series) {
  std::size_t most = 1;
  for (const Series& s : series) most = std::max(most, s.raw.size());
  return most > 1 ? fmt::format("Mean and one sample s.d. over up to {} runs.", most) : "Single runs.";
}

// "test" -> the trained length, "test@128" -> 128, anything else -> nothing.
std::optional<i64> length_of(std::string_view split, const SplitResult& result, i64 trained) {
  if (split == "test") return trained > 0 ? std::optional(trained) : std::nullopt;
  if (split.substr(0, 5) != "test@") return std::nullopt;
  if (result.length > 0) return result.length;
  i64 length = 0;
  const auto [end, error] = std::from_chars(split.data() + 5, split.data() + split.size(), length);
  const bool whole = error == std::errc() && end == split.data() + split.size();
  return whole && length > 0 ? std::optional(length) : std::nullopt;
}

double unit_of(std::string_view metric) { return is_share(metric) ? 100 : 1; }

}  // namespace

LineChart curves_chart(const std::vector<LoadedRun>& runs, const CurvesOptions& options) {
  Lines lines = lines_for(runs, options.rows);
  i64 without = 0;
  for (const LoadedRun& run : runs) {
    const auto path = run.folder / "metrics.jsonl";
    std::error_code ignored;
    MetricsSeries measured;
    if (!run.folder.empty() && std::filesystem::exists(path, ignored))
      measured = series(read_metrics(path), options.split.empty() ? MetricsKind::train : MetricsKind::eval,
                        options.field, options.split);
    if (measured.value.empty()) {
      ++without;
      continue;
    }
    for (double& value : measured.value) value *= unit_of(options.field);
    add_curve(lines, run, options.rows,
        {options.against_seconds ? std::move(measured.time) : std::move(measured.step), std::move(measured.value)});
  }
  LineChart chart;
  chart.series = series_of(lines);
  const std::string where = options.split.empty() ? "train" : options.split;
  chart.x_label = options.against_seconds ? "training seconds" : "step";
  chart.y_label = where + " " + options.field + (is_share(options.field) ? " %" : "");
  chart.title = chart.y_label + " against " + (options.against_seconds ? "time" : "steps");
  chart.description = over_seeds(chart.series);
  if (without > 0) chart.description += fmt::format(" {} of {} runs have no such curve.", without, runs.size());
  return chart;
}

LineChart length_chart(const std::vector<LoadedRun>& runs, std::string_view metric,
                       const std::vector<std::string>& rows, bool best) {
  Lines lines = lines_for(runs, rows);
  std::set<double> lengths, trained;
  std::map<std::string, double> baselines;
  for (const LoadedRun& run : runs) {
    const auto& evaluation = best ? run.result.best : run.result.last;
    if (run.state != RunState::finished || !evaluation) continue;
    std::map<i64, double> points;
    for (const auto& [split, result] : evaluation->splits)
      if (const auto length = length_of(split, result, run.result.trained_length))
        if (const MetricValue* value = result.find(metric)) points.emplace(*length, value->value * unit_of(metric));
    if (points.empty()) continue;
    Curve curve;
    for (const auto& [length, value] : points) {
      curve.x.push_back(static_cast<double>(length));
      curve.y.push_back(value);
      lengths.insert(static_cast<double>(length));
    }
    add_curve(lines, run, rows, std::move(curve));
    if (run.result.trained_length > 0) trained.insert(static_cast<double>(run.result.trained_length));
    for (const Baseline& b : run.result.baselines)
      if (b.split == "test" && b.metric == metric && std::isfinite(b.value))
        baselines.emplace(b.name, b.value * unit_of(metric));
  }
  LineChart chart;
  chart.series = series_of(lines);
  chart.log_x = chart.markers = true;
  chart.x_ticks.assign(lengths.begin(), lengths.end());
  for (double length : trained) chart.vertical.push_back({length, "trained length"});
  for (const auto& [name, value] : baselines) chart.horizontal.push_back({value, name});
  chart.x_label = "test length (tokens)";
  chart.y_label = fmt::format("test {}{}", metric, is_share(metric) ? " %" : "");
  chart.title = chart.y_label + " against length";
  chart.description = over_seeds(chart.series);
  return chart;
}

PanelChart distance_chart(std::string title, std::string y_label, const std::vector<DistanceCurve>& curves) {
  if (curves.empty()) fail("distance_chart", "there are no curves");
  std::vector<std::string> labels;
  std::map<i64, std::map<std::string, std::vector<Curve>>> layers;
  for (const DistanceCurve& c : curves) {
    if (std::find(labels.begin(), labels.end(), c.label) == labels.end()) labels.push_back(c.label);
    layers[c.layer][c.label].push_back(c.curve);
  }
  PanelChart chart;
  chart.title = std::move(title);
  chart.columns = std::min<i64>(static_cast<i64>(layers.size()), 3);
  for (const auto& [layer, lines] : layers) {
    LineChart panel;
    panel.title = fmt::format("layer {}", layer);
    panel.x_label = "key position - query position";
    panel.y_label = y_label;
    panel.width = 440;
    panel.height = 320;
    // Every label in every panel, so that all panels share one legend; a layer without it draws nothing.
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto found = lines.find(labels[i]);
      Series s = mean_series(labels[i], found == lines.end() ? std::vector<Curve>() : found->second);
      s.raw.clear();  // many lines lie close together here
      s.color = s.dash = static_cast<i64>(i);
      panel.series.push_back(std::move(s));
    }
    chart.panels.push_back(std::move(panel));
  }
  std::size_t most = 1;
  for (const auto& [layer, lines] : layers)
    for (const auto& [label, runs] : lines) most = std::max(most, runs.size());
  if (most > 1) chart.description = fmt::format("Mean and one sample s.d. over up to {} runs.", most);
  return chart;
}

}  // namespace waymark::train
