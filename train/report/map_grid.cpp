// Small multiples of heat maps: attention weights of all heads.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/tensor/error.h"
#include "train/report/axis.h"
#include "train/report/chart.h"
#include "train/report/escape.h"
#include "train/report/svg.h"

namespace waymark::train {

namespace {

constexpr int kLevels = 40;  // colours each side of white

// -kLevels ... kLevels for -1 ... 1, by the root.
int level_of(double share) {
  const int level = static_cast<int>(std::lround(std::sqrt(std::min(1.0, std::abs(share))) * kLevels));
  return share < 0 ? -level : level;
}
std::string level_color(int level) {
  const double t = std::abs(static_cast<double>(level)) / kLevels;
  const double end[3] = {level < 0 ? 190.0 : 0.0, 70.0, level < 0 ? 0.0 : 140.0};
  const auto part = [&](int i) { return static_cast<int>(std::lround(255 + t * (end[i] - 255))); };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(1), part(2));
}

// Runs of one colour in a row are one piece of that colour's path: "M3 0h2v1h-2z".
void draw_cells(SvgWriter& svg, const SmallMap& map, double most) {
  constexpr int kGrey = kLevels + 1;
  std::map<int, std::string> paths;
  for (i64 r = 0; r < map.rows; ++r)
    for (i64 c = 0; c < map.cols;) {
      const auto level = [&](i64 at) {
        const double v = map.values[static_cast<std::size_t>(r * map.cols + at)];
        return std::isfinite(v) ? level_of(v / most) : kGrey;
      };
      const int here = level(c);
      i64 end = c + 1;
      while (end < map.cols && level(end) == here) ++end;
      if (here != 0) paths[here] += fmt::format("M{} {}h{}v1h-{}z", c, r, end - c, end - c);
      c = end;
    }
  for (const auto& [level, d] : paths) svg.leaf("path", {{"d", d}, {"fill", level == kGrey ? "#c8c8c8" : level_color(level)}});
}

}  // namespace

std::string draw(const MapGrid& grid) {
  if (grid.maps.empty()) fail("map grid", "there are no maps");
  if (grid.columns < 1 || grid.step < 1 || !(grid.size >= 40 && grid.size <= 4000))
    fail("map grid", "columns {}, step {}, size {}", grid.columns, grid.step, grid.size);
  double low = 0, high = 0;
  for (const SmallMap& m : grid.maps) {
    if (m.rows != grid.maps[0].rows || m.cols != grid.maps[0].cols || m.rows < 1 || m.cols < 1 ||
        static_cast<i64>(m.values.size()) != m.rows * m.cols)
      fail("map grid", "a map of {} x {} with {} values beside one of {} x {}", m.rows, m.cols, m.values.size(),
           grid.maps[0].rows, grid.maps[0].cols);
    for (const double v : m.values)
      if (std::isfinite(v)) {
        low = std::min(low, v);
        high = std::max(high, v);
      }
  }
  const double most = std::max(high, -low) > 0 ? std::max(high, -low) : 1;
  const i64 rows = grid.maps[0].rows, cols = grid.maps[0].cols;
  const double cell = std::max(0.01, std::floor(100 * grid.size / static_cast<double>(std::max(rows, cols))) / 100);
  const double wide = cell * static_cast<double>(cols), tall = cell * static_cast<double>(rows);
  const i64 count = static_cast<i64>(grid.maps.size()), columns = std::min(grid.columns, count);
  const double step_x = std::max(wide, 90.0) + 34, step_y = tall + 50, left = 56, top = 44;
  const double width = left + step_x * static_cast<double>(columns) + 70;
  const double height = top + step_y * static_cast<double>((count + columns - 1) / columns) + 4;
  std::string description = grid.description;
  if (grid.step > 1)
    description += fmt::format("{}A cell is the mean over {} x {} pairs.", description.empty() ? "" : " ", grid.step, grid.step);
  SvgWriter svg(width, height, grid.title, description);
  svg.label((width - 70) / 2, 22, shorten(grid.title, 100), "middle", 15, {{"fill", "#222222"}});
  for (i64 i = 0; i < count; ++i) {
    const SmallMap& map = grid.maps[static_cast<std::size_t>(i)];
    const double x = left + step_x * static_cast<double>(i % columns), y = top + step_y * static_cast<double>(i / columns);
    svg.open("g");
    svg.text_element("title", {}, shorten(map.title, 100));
    svg.label(x + wide / 2, y + 8, shorten(map.title, 40), "middle", 11, {{"fill", "#222222"}});
    svg.open("g", {{"shape-rendering", "crispEdges"},
                   {"transform", fmt::format("translate({} {}) scale({})", svg_number(x), svg_number(y + 14), svg_number(cell))}});
    draw_cells(svg, map, most);
    svg.close();
    svg.leaf("rect", {{"fill", "none"}, {"height", tall}, {"stroke", "#222222"}, {"stroke-width", 0.7}, {"width", wide}, {"x", x}, {"y", y + 14}});
    const std::string last_col = fmt::to_string(cols * grid.step - 1), last_row = fmt::to_string(rows * grid.step - 1);
    svg.label(x, y + tall + 26, "0", "start", 10, {{"fill", "#444444"}});
    svg.label(x + wide, y + tall + 26, grid.step > 1 ? "…" + last_col : last_col, "end", 10, {{"fill", "#444444"}});
    svg.label(x + wide / 2, y + tall + 38, grid.x_label, "middle", 10, {{"fill", "#444444"}});
    if (i % columns == 0) {
      svg.label(x - 4, y + 23, "0", "end", 10, {{"fill", "#444444"}});
      svg.label(x - 4, y + 14 + tall, last_row, "end", 10, {{"fill", "#444444"}});
      svg.vertical_label(x - 34, y + 14 + tall / 2, grid.y_label, 10);
    }
    svg.close();
  }
  // The scale: ticks stand at the roots of their values.
  const double bar_x = left + step_x * static_cast<double>(columns) - 4, bar_top = top + 14, bar_height = std::max(tall, 100.0);
  const bool signed_values = low < 0;
  const double zero = signed_values ? bar_top + bar_height / 2 : bar_top + bar_height, span = signed_values ? bar_height / 2 : bar_height;
  for (int level = signed_values ? -kLevels : 0; level <= kLevels; ++level)
    svg.leaf("rect", {{"fill", level_color(level)},
                      {"height", span / kLevels + 0.2},
                      {"width", 12.0},
                      {"x", bar_x},
                      {"y", zero - span * (level + 1) / (kLevels + 1)}});
  std::vector<double> marks = {0, most * 0.01, most * 0.1, most * 0.4, most};
  if (signed_values)
    for (const double m : {most * 0.1, most}) marks.push_back(-m);
  for (const double mark : marks) {
    const double at = std::sqrt(std::abs(mark) / most) * span;
    svg.label(bar_x + 17, zero - (mark < 0 ? -at : at) + 4, fmt::format("{:.2g}", mark), "start", 10, {{"fill", "#444444"}});
  }
  return svg.finish();
}

}  // namespace waymark::train
