// Charts as SVG text: lines with bands (learning curves, metric against length, attention mass and table norm against
// distance), several of them as panels, and heat maps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

// Points (x[i], y[i]) in the order in which they are joined. A y that cannot be drawn (NaN) is a gap.
struct Curve {
  std::vector<double> x = {}, y = {};
};

struct Series {
  std::string name = {};
  Curve curve = {};
  std::vector<double> low = {}, high = {};  // ends of the band at each point; both empty: no band
  std::vector<Curve> raw = {};         // the runs behind a mean: thin lines
  // Its place in the palette, the dashes and the markers; by default its place in the chart. Two series of one group
  // share a colour and differ in dash.
  std::optional<i64> color = {}, dash = {};
};

// Mean over runs with a band of one sample s.d. each side (none for one run). Only the x that all runs have are
// averaged: a mean whose runs change from point to point would jump.
WAYMARK_API Series mean_series(std::string name, const std::vector<Curve>& runs);

struct ReferenceLine {
  double at = 0;
  std::string text = {};
};

struct LineChart {
  std::string title = {}, description = {}, x_label = {}, y_label = {};
  std::vector<Series> series = {};
  bool log_x = false, log_y = false;
  bool markers = false;                    // a marker at each point: for few points
  std::vector<double> x_ticks = {};             // empty: nice places
  std::vector<ReferenceLine> vertical = {};     // the trained length
  std::vector<ReferenceLine> horizontal = {};   // chance
  double width = 760, height = 440;
};

// At most 2,000 points of each line are drawn (axis.h thin). A chart without anything to draw says "no data".
// Error if the sizes of a series do not fit.
WAYMARK_API std::string draw(const LineChart& chart);

// Panels side by side, `columns` of them in a row, with one legend if all have the same series. The panels' own width
// and height are those of a panel.
struct PanelChart {
  std::string title = {}, description = {};
  std::vector<LineChart> panels = {};
  i64 columns = 2;
};
WAYMARK_API std::string draw(const PanelChart& chart);

// values[r * cols + c], row 0 at the top; NaN is grey. More than 128 rows or columns are averaged in blocks, and the
// description says so.
struct HeatMap {
  std::string title = {}, description = {}, x_label = {}, y_label = {};
  i64 rows = 0, cols = 0;
  std::vector<double> values = {};
  double x_first = 0, y_first = 0;  // what the first column and row stand for (a clip of 16: -16); steps are 1
  double width = 520;
};
WAYMARK_API std::string draw(const HeatMap& map);

// Small heat maps of one colour scale side by side: the heads of a layer. Row 0 at the top; NaN is grey. Colours grow
// with the root of the value, so that weak and strong weights are seen in one drawing; below 0 they are orange.
struct SmallMap {
  std::string title = {};
  i64 rows = 0, cols = 0;
  std::vector<double> values = {};
};
struct MapGrid {
  std::string title = {}, description = {}, x_label = {}, y_label = {};
  std::vector<SmallMap> maps = {};  // all of one size
  i64 columns = 4;
  i64 step = 1;                // what a cell stands for: `step` neighbours
  double size = 170;           // of the longer side of a map
};
WAYMARK_API std::string draw(const MapGrid& grid);

}  // namespace waymark::train
