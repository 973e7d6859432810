#include "train/report/run_plots.h"

#include <cmath>
#include <set>

#include "core/io/files.h"
#include "core/io/npz.h"
#include "train/report/plots.h"

namespace waymark::train {
namespace fs = std::filesystem;
namespace {

std::string label_of(const LoadedRun& run, const std::vector<std::string>& rows) {
  std::string label;
  for (const std::string& key : rows)
    if (const auto shown = run.result.shown(key)) label += (label.empty() ? "" : " / ") + *shown;
  return label.empty() ? run.result.name : label;
}

// Mean over the heads of [H, D], where enough pairs stand behind the number (the ends of the range are noise).
Curve mean_over_heads(const Tensor& delta, const Tensor& value, const Tensor& count, i64 reach) {
  const auto d = delta.to_vector<double>(), v = value.to_vector<double>(), n = count.to_vector<double>();
  const size_t heads = d.empty() ? 0 : v.size() / d.size();
  Curve out;
  for (size_t i = 0; i < d.size(); ++i) {
    if (std::abs(d[i]) > static_cast<double>(reach) || n[i] <= 0) continue;
    double mean = 0;
    for (size_t h = 0; h < heads; ++h) mean += v[h * d.size() + i] / static_cast<double>(heads);
    out.x.push_back(d[i]);
    out.y.push_back(mean);
  }
  return out;
}

}  // namespace

std::vector<std::string> write_plots(const std::vector<LoadedRun>& runs, const std::vector<std::string>& rows, const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<std::string> files;
  const auto save = [&](const char* name, const std::string& svg) {
    write_file_atomic(folder / name, svg);
    files.push_back((folder / name).string());
  };
  CurvesOptions curves;
  curves.rows = rows;
  save("curves.svg", draw(curves_chart(runs, curves)));

  bool lengths = false;
  std::vector<DistanceCurve> attention, tables;
  std::set<i64> layers;
  for (const LoadedRun& run : runs) {
    if (run.state != RunState::finished) continue;
    if (run.result.last)
      for (const auto& [split, result] : run.result.last->splits) lengths |= split.starts_with("test@");
    const std::string label = label_of(run, rows);
    for (i64 layer = 0; fs::exists(run.folder / "position" / fmt::format("{}.npz", layer)); ++layer) {
      const Npz file = load_npz(run.folder / "position" / fmt::format("{}.npz", layer));
      layers.insert(layer);
      if (file.contains("attention_mean"))
        attention.push_back({label, layer, mean_over_heads(file.get("delta"), file.get("attention_mean"), file.get("count"), 16)});
      if (file.contains("norm")) {
        const auto x = file.get(file.contains("table_delta") ? "table_delta" : "bias_delta").to_vector<double>(), y = file.get("norm").to_vector<double>();
        tables.push_back({label, layer, Curve{x, y}});
      }
    }
  }
  if (lengths) save("length.svg", draw(length_chart(runs, "loss", rows)));
  if (!attention.empty())
    save("attention.svg", draw(distance_chart("Attention by distance", "mean attention weight", attention)));
  if (!tables.empty()) save("tables.svg", draw(distance_chart("Relative tables by distance", "norm of the row", tables)));
  return files;
}

}  // namespace waymark::train
