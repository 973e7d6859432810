#include "train/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/tensor/error.h"
#include "train/report/axis.h"
#include "train/report/escape.h"
#include "train/report/statistics.h"
#include "train/report/svg.h"

namespace waymark::train {

namespace {

constexpr double kLegendRow = 18, kTitleSize = 15, kTextSize = 12, kTickSize = 11;
constexpr std::string_view kInk = "#222222", kGrid = "#e4e4e4", kFaint = "#666666";

struct Box {
  double left, top, right, bottom;
};

void check_series(const Series& s) {
  const std::size_t n = s.curve.x.size();
  if (s.curve.y.size() != n) fail("chart", "{}: {} x and {} y", shorten(s.name, 40), n, s.curve.y.size());
  if (s.low.size() != s.high.size() || (!s.low.empty() && s.low.size() != n))
    fail("chart", "{}: {} points, a band of {} low and {} high ends", shorten(s.name, 40), n, s.low.size(),
         s.high.size());
  for (const Curve& run : s.raw)
    if (run.x.size() != run.y.size())
      fail("chart", "{}: a run with {} x and {} y", shorten(s.name, 40), run.x.size(), run.y.size());
}

// The least and the largest of what an axis can show.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v, bool logarithmic) {
    if (!(std::abs(v) <= 1e300) || (logarithmic && !(v > 1e-290))) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  bool empty() const { return low > high; }
};

std::string shown_name(const Series& s) { return shorten(s.name, 36); }

// ---- Lines

struct Style {
  std::string_view color, dash;
  i64 marker;
};
Style style_of(const Series& s, std::size_t place) {
  const i64 i = static_cast<i64>(place);
  return {palette_color(s.color.value_or(i)), dash_pattern(s.dash.value_or(i)), s.color.value_or(i)};
}

void draw_curve(SvgWriter& svg, const Curve& curve, const Axis& x, const Axis& y, std::string_view color, double width,
                std::string_view dash, double opacity) {
  std::string points;
  i64 count = 0;
  std::pair<double, double> lone{};
  const auto flush = [&] {
    if (count == 1) {
      svg.marker(lone.first, lone.second, 0, color, width);  // a point between two gaps
    } else if (count > 1) {
      SvgWriter::Attributes a = {{"points", points}, {"fill", "none"}, {"stroke", color}, {"stroke-width", width}};
      if (!dash.empty()) a.emplace_back("stroke-dasharray", dash);
      if (opacity < 1) a.emplace_back("stroke-opacity", opacity);
      svg.leaf("polyline", std::move(a));
    }
    points.clear();
    count = 0;
  };
  for (std::size_t i : thin(curve.y)) {
    if (!x.drawable(curve.x[i]) || !y.drawable(curve.y[i])) {
      flush();
      continue;
    }
    lone = {x(curve.x[i]), y(curve.y[i])};
    points += fmt::format("{}{},{}", count++ == 0 ? "" : " ", svg_number(lone.first), svg_number(lone.second));
  }
  flush();
}

void draw_band(SvgWriter& svg, const Series& s, const Axis& x, const Axis& y, std::string_view color) {
  if (s.low.empty()) return;
  std::vector<std::pair<double, double>> upper, lower;
  const auto flush = [&] {
    if (upper.size() > 1) {
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      std::string points;
      for (const auto& [px, py] : upper)
        points += fmt::format("{}{},{}", points.empty() ? "" : " ", svg_number(px), svg_number(py));
      svg.leaf("polygon", {{"points", points}, {"fill", color}, {"fill-opacity", 0.15}, {"stroke", "none"}});
    }
    upper.clear();
    lower.clear();
  };
  for (std::size_t i : thin(s.curve.y)) {
    // On a logarithmic axis the lower end of a wide band may be below 0: the band then ends at the axis.
    const double low = y.drawable(s.low[i]) ? std::max(s.low[i], y.low()) : y.low();
    if (!x.drawable(s.curve.x[i]) || !y.drawable(s.high[i]) || std::isnan(s.low[i])) {
      flush();
      continue;
    }
    upper.emplace_back(x(s.curve.x[i]), y(s.high[i]));
    lower.emplace_back(x(s.curve.x[i]), y(low));
  }
  flush();
}

void draw_axes(SvgWriter& svg, const LineChart& chart, const Box& box, const Axis& x, const Axis& y) {
  for (const Tick& tick : y.ticks()) {
    svg.line(box.left, y(tick.value), box.right, y(tick.value), kGrid);
    svg.label(box.left - 6, y(tick.value) + 4, tick.text, "end", kTickSize, {{"fill", kInk}});
  }
  for (const Tick& tick : x.ticks()) {
    svg.line(x(tick.value), box.top, x(tick.value), box.bottom, kGrid);
    svg.label(x(tick.value), box.bottom + 16, tick.text, "middle", kTickSize, {{"fill", kInk}});
  }
  svg.line(box.left, box.bottom, box.right, box.bottom, kInk);
  svg.line(box.left, box.top, box.left, box.bottom, kInk);
  svg.label((box.left + box.right) / 2, box.bottom + 36, chart.x_label, "middle", kTextSize, {{"fill", kInk}});
  svg.vertical_label(box.left - 48, (box.top + box.bottom) / 2, chart.y_label, kTextSize);
  for (const ReferenceLine& line : chart.vertical) {
    if (!x.drawable(line.at) || line.at < x.low() || line.at > x.high()) continue;
    svg.line(x(line.at), box.top, x(line.at), box.bottom, kFaint, 1.5, "4 4");
    const bool right = x(line.at) > (box.left + box.right) / 2;
    svg.label(x(line.at) + (right ? -4 : 4), box.top + 12, line.text, right ? "end" : "start", kTickSize,
              {{"fill", kFaint}});
  }
  for (const ReferenceLine& line : chart.horizontal) {
    if (!y.drawable(line.at) || line.at < y.low() || line.at > y.high()) continue;
    svg.line(box.left, y(line.at), box.right, y(line.at), kFaint, 1.5, "4 4");
    svg.label(box.right - 4, y(line.at) - 4, line.text, "end", kTickSize, {{"fill", kFaint}});
  }
}

void draw_plot(SvgWriter& svg, const LineChart& chart, const Box& box) {
  Range xs, ys;
  for (const Series& s : chart.series) {
    const auto add = [&](const Curve& curve, const std::vector<double>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) continue;
        xs.add(curve.x[i], chart.log_x);
        ys.add(values[i], chart.log_y);
      }
    };
    add(s.curve, s.curve.y);
    add(s.curve, s.low);
    add(s.curve, s.high);
    for (const Curve& run : s.raw) add(run, run.y);
  }
  if (xs.empty() || ys.empty()) {
    svg.label((box.left + box.right) / 2, (box.top + box.bottom) / 2, "no data", "middle", kTextSize,
              {{"fill", kFaint}});
    return;
  }
  for (const ReferenceLine& line : chart.vertical) xs.add(line.at, chart.log_x);
  for (const ReferenceLine& line : chart.horizontal) ys.add(line.at, chart.log_y);
  // Markers at the very edge would be cut in half by the frame.
  const double inset = chart.markers ? 12 : 0;
  const i64 wanted = std::clamp<i64>(static_cast<i64>((box.right - box.left) / 80), 3, 10);
  const Axis x(xs.low, xs.high, box.left + inset, box.right - inset, chart.log_x, true, wanted, chart.x_ticks);
  const Axis y(ys.low, ys.high, box.bottom, box.top, chart.log_y, false);
  draw_axes(svg, chart, box, x, y);
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    draw_band(svg, chart.series[i], x, y, style_of(chart.series[i], i).color);
  for (std::size_t i = 0; i < chart.series.size(); ++i)
    for (const Curve& run : chart.series[i].raw)
      draw_curve(svg, run, x, y, style_of(chart.series[i], i).color, 0.6, {}, 0.45);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& s = chart.series[i];
    const Style style = style_of(s, i);
    svg.open("g");
    svg.text_element("title", {}, shown_name(s));
    draw_curve(svg, s.curve, x, y, style.color, 1.8, style.dash, 1);
    if (chart.markers)
      for (std::size_t k : thin(s.curve.y))
        if (x.drawable(s.curve.x[k]) && y.drawable(s.curve.y[k]))
          svg.marker(x(s.curve.x[k]), y(s.curve.y[k]), style.marker, style.color);
    svg.close();
  }
}

double legend_width(const std::vector<Series>& series) {
  if (series.empty() || (series.size() == 1 && series[0].name.empty())) return 0;
  double widest = 0;
  for (const Series& s : series) widest = std::max(widest, text_width(shown_name(s), kTextSize));
  return widest + 60;
}

void draw_legend(SvgWriter& svg, const std::vector<Series>& series, bool markers, double left, double top) {
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Style style = style_of(series[i], i);
    const double y = top + kLegendRow * (static_cast<double>(i) + 0.5);
    svg.line(left + 12, y, left + 44, y, style.color, 1.8, style.dash);
    if (markers) svg.marker(left + 28, y, style.marker, style.color);
    svg.label(left + 50, y + 4, shown_name(series[i]), "start", kTextSize, {{"fill", kInk}});
  }
}

std::string line_description(const std::string& text, const std::vector<Series>& series) {
  std::string out = text;
  if (series.empty()) return out;
  if (!out.empty()) out += ' ';
  out += fmt::format("{} {}: ", series.size(), series.size() == 1 ? "line" : "lines");
  for (std::size_t i = 0; i < series.size() && i < 20; ++i) out += (i == 0 ? "" : ", ") + shown_name(series[i]);
  return out + (series.size() > 20 ? ", ..." : ".");
}

void check_size(const char* what, double width, double height) {
  if (!(width >= 200 && width <= 10000 && height >= 120 && height <= 10000))
    fail("chart", "{} of {} x {}; width 200 to 10000, height 120 to 10000", what, width, height);
}

bool same_legend(const std::vector<LineChart>& panels) {
  return std::all_of(panels.begin(), panels.end(), [&](const LineChart& panel) {
    return panel.markers == panels[0].markers &&
           std::equal(panel.series.begin(), panel.series.end(), panels[0].series.begin(), panels[0].series.end(),
                      [](const Series& a, const Series& b) {
                        return a.name == b.name && a.color == b.color && a.dash == b.dash;
                      });
  });
}

}  // namespace

Series mean_series(std::string name, const std::vector<Curve>& runs) {
  Series s;
  s.name = std::move(name);
  std::map<double, std::vector<double>> at;
  for (const Curve& run : runs) {
    if (run.x.size() != run.y.size()) fail("chart", "a run with {} x and {} y", run.x.size(), run.y.size());
    for (std::size_t i = 0; i < run.x.size(); ++i)
      if (std::isfinite(run.x[i])) at[run.x[i]].push_back(run.y[i]);
  }
  for (const auto& [x, values] : at) {
    if (values.size() != runs.size()) continue;
    const bool finite = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    const double middle = finite ? mean(values) : std::numeric_limits<double>::quiet_NaN();
    s.curve.x.push_back(x);
    s.curve.y.push_back(middle);
    if (runs.size() < 2) continue;
    const double sd = finite ? sample_sd(values) : std::numeric_limits<double>::quiet_NaN();
    s.low.push_back(middle - sd);
    s.high.push_back(middle + sd);
  }
  if (runs.size() > 1) s.raw = runs;
  return s;
}

std::string draw(const LineChart& chart) {
  for (const Series& s : chart.series) check_series(s);
  const double legend = legend_width(chart.series);
  check_size("a chart", chart.width - legend, chart.height);
  const double rows = kLegendRow * static_cast<double>(chart.series.size());
  const double height = std::max(chart.height, legend > 0 ? rows + 60 : 0);
  SvgWriter svg(chart.width, height, chart.title, line_description(chart.description, chart.series));
  svg.label(chart.width / 2, 24, shorten(chart.title, 100), "middle", kTitleSize, {{"fill", kInk}});
  const Box box{66, 40, chart.width - std::max(legend, 20.0), height - 50};
  draw_plot(svg, chart, box);
  if (legend > 0) draw_legend(svg, chart.series, chart.markers, box.right, box.top);
  return svg.finish();
}

std::string draw(const PanelChart& chart) {
  if (chart.panels.empty()) fail("chart", "no panels");
  if (chart.columns < 1) fail("chart", "columns must be at least 1, got {}", chart.columns);
  double width = 0, height = 0;
  for (const LineChart& panel : chart.panels) {
    for (const Series& s : panel.series) check_series(s);
    width = std::max(width, panel.width);
    height = std::max(height, panel.height);
  }
  const bool shared = same_legend(chart.panels);
  const double legend = shared ? legend_width(chart.panels[0].series) : 0;
  const i64 count = static_cast<i64>(chart.panels.size());
  const double columns = static_cast<double>(std::min(chart.columns, count));
  const double rows = static_cast<double>((count + chart.columns - 1) / chart.columns);
  const double legend_height = kLegendRow * static_cast<double>(chart.panels[0].series.size()) + 60;
  const double all = std::max(36 + rows * height, legend > 0 ? legend_height : 0);
  SvgWriter svg(columns * width + legend, all, chart.title,
                line_description(chart.description, shared ? chart.panels[0].series : std::vector<Series>()));
  svg.label((columns * width + legend) / 2, 24, shorten(chart.title, 100), "middle", kTitleSize, {{"fill", kInk}});
  for (i64 i = 0; i < count; ++i) {
    const LineChart& panel = chart.panels[static_cast<std::size_t>(i)];
    const double left = static_cast<double>(i % chart.columns) * width;
    const double top = 36 + static_cast<double>(i / chart.columns) * height;
    const double own_legend = shared ? 0 : legend_width(panel.series);
    check_size("a panel", width - own_legend, height);
    svg.open("g");
    svg.text_element("title", {}, shorten(panel.title, 100));
    svg.label(left + width / 2, top + 18, shorten(panel.title, 60), "middle", kTextSize + 1, {{"fill", kInk}});
    const Box box{left + 66, top + 28, left + width - std::max(own_legend, 16.0), top + height - 50};
    draw_plot(svg, panel, box);
    if (own_legend > 0) draw_legend(svg, panel.series, panel.markers, box.right, box.top);
    svg.close();
  }
  if (legend > 0) draw_legend(svg, chart.panels[0].series, chart.panels[0].markers, columns * width, 64);
  return svg.finish();
}

}  // namespace waymark::train
