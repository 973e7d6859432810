// Heat maps: implied weights of a head, tables by row and channel.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/tensor/error.h"
#include "train/report/axis.h"
#include "train/report/chart.h"
#include "train/report/escape.h"
#include "train/report/svg.h"

namespace waymark::train {

namespace {

constexpr i64 kMostCells = 128;  // a side

// Means over blocks, so that no side has more than kMostCells; values that cannot be drawn do not take part.
struct Cells {
  i64 rows, cols, block_rows, block_cols;
  std::vector<double> values;
};

Cells reduce(const HeatMap& map) {
  const auto blocks = [](i64 n) { return (n + kMostCells - 1) / kMostCells; };
  Cells cells{0, 0, blocks(map.rows), blocks(map.cols), {}};
  cells.rows = (map.rows + cells.block_rows - 1) / cells.block_rows;
  cells.cols = (map.cols + cells.block_cols - 1) / cells.block_cols;
  for (i64 r = 0; r < cells.rows; ++r)
    for (i64 c = 0; c < cells.cols; ++c) {
      double sum = 0;
      i64 count = 0;
      for (i64 i = r * cells.block_rows; i < std::min(map.rows, (r + 1) * cells.block_rows); ++i)
        for (i64 j = c * cells.block_cols; j < std::min(map.cols, (c + 1) * cells.block_cols); ++j) {
          const double v = map.values[static_cast<std::size_t>(i * map.cols + j)];
          if (!(std::abs(v) <= 1e300)) continue;
          sum += v;
          ++count;
        }
      cells.values.push_back(count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN());
    }
  return cells;
}

using Rgb = std::array<double, 3>;
constexpr Rgb kWhite = {255, 255, 255}, kBlue = {0, 70, 140}, kOrange = {190, 70, 0};

// White to blue for 0..1, white to orange for 0..-1: lightness alone tells the size, so it also works in grey.
std::string color_of(double share) {
  if (std::isnan(share)) return "#c8c8c8";
  const Rgb& end = share < 0 ? kOrange : kBlue;
  const double t = std::min(std::abs(share), 1.0);
  const auto part = [&](std::size_t i) { return static_cast<int>(std::lround(kWhite[i] + t * (end[i] - kWhite[i]))); };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(1), part(2));
}

}  // namespace

std::string draw(const HeatMap& map) {
  if (map.rows < 1 || map.cols < 1)
    fail("heat map", "{} rows and {} columns; both must be at least 1", map.rows, map.cols);
  if (map.rows > (i64{1} << 40) / map.cols || static_cast<i64>(map.values.size()) != map.rows * map.cols)
    fail("heat map", "{} values for {} rows and {} columns", map.values.size(), map.rows, map.cols);
  if (!(map.width >= 240 && map.width <= 10000)) fail("heat map", "width {}; 240 to 10000", map.width);
  const Cells cells = reduce(map);
  double low = 0, high = 0;
  for (double v : cells.values)
    if (!std::isnan(v)) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  const bool signed_values = low < 0;
  const double most = std::max(high, -low) > 0 ? std::max(high, -low) : 1;

  std::string description = map.description;
  if (cells.block_rows > 1 || cells.block_cols > 1)
    description += fmt::format("{}Means over blocks of {} x {} values.", description.empty() ? "" : " ",
                               cells.block_rows, cells.block_cols);
  const double left = 66, top = 40, right = map.width - 90;
  const double step = std::max(1.0, (right - left) / static_cast<double>(std::max(cells.cols, cells.rows)));
  const double wide = step * static_cast<double>(cells.cols), tall = step * static_cast<double>(cells.rows);
  const double bar_top = top, bar_height = std::max(tall, 80.0), bottom = top + std::max(tall, 80.0);
  SvgWriter svg(left + wide + 90, bottom + 50, map.title, description);
  svg.label((left + wide + 90) / 2, 24, shorten(map.title, 80), "middle", 15, {{"fill", "#222222"}});

  svg.open("g", {{"shape-rendering", "crispEdges"}});
  for (i64 r = 0; r < cells.rows; ++r) {
    // Neighbours of one colour are one rectangle.
    for (i64 c = 0; c < cells.cols;) {
      const auto color = [&](i64 at) {
        return color_of(cells.values[static_cast<std::size_t>(r * cells.cols + at)] / most);
      };
      const std::string fill = color(c);
      i64 end = c + 1;
      while (end < cells.cols && color(end) == fill) ++end;
      svg.leaf("rect", {{"x", left + step * static_cast<double>(c)},
                        {"y", top + step * static_cast<double>(r)},
                        {"width", step * static_cast<double>(end - c)},
                        {"height", step},
                        {"fill", fill}});
      c = end;
    }
  }
  svg.close();
  svg.leaf("rect",
           {{"x", left}, {"y", top}, {"width", wide}, {"height", tall}, {"fill", "none"}, {"stroke", "#222222"}});

  // Column (row) k of the map stands for first + k, drawn at its middle; only whole k are marked.
  const auto ticks = [](double first, i64 count, i64 block) {
    std::vector<std::pair<double, std::string>> places;
    if (count < 2) return places;
    const double last = first + static_cast<double>(count - 1);
    const Axis axis(first, last, 0, 1, false, true, std::min<i64>(count, 6));
    for (const Tick& tick : axis.ticks())
      if (std::abs(std::remainder(tick.value - first, 1)) < 1e-6)
        places.emplace_back((tick.value - first + 0.5) / static_cast<double>(block), tick.text);
    return places;
  };
  for (const auto& [place, text] : ticks(map.x_first, map.cols, cells.block_cols))
    svg.label(left + step * place, top + tall + 16, text, "middle", 11, {{"fill", "#222222"}});
  for (const auto& [place, text] : ticks(map.y_first, map.rows, cells.block_rows))
    svg.label(left - 6, top + step * place + 4, text, "end", 11, {{"fill", "#222222"}});
  svg.label(left + wide / 2, top + tall + 36, map.x_label, "middle", 12, {{"fill", "#222222"}});
  svg.vertical_label(left - 48, top + tall / 2, map.y_label, 12);

  // The colour scale.
  constexpr int kSteps = 32;
  const double bar_left = left + wide + 20, from = signed_values ? -most : 0;
  for (int k = 0; k < kSteps; ++k) {
    const double value = from + (most - from) * (k + 0.5) / kSteps;
    svg.leaf("rect", {{"x", bar_left},
                      {"y", bar_top + bar_height * (1 - (k + 1.0) / kSteps)},
                      {"width", 14.0},
                      {"height", bar_height / kSteps + 0.2},
                      {"fill", color_of(value / most)}});
  }
  const Axis scale(from, most, bar_top + bar_height, bar_top, false, true, 5);
  for (const Tick& tick : scale.ticks())
    svg.label(bar_left + 20, scale(tick.value) + 4, tick.text, "start", 11, {{"fill", "#222222"}});
  return svg.finish();
}

}  // namespace waymark::train
