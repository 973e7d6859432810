#include "train/report/svg.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "tests/error_text.h"
#include "tests/train/report/xml_check.h"
#include "train/report/axis.h"
#include "train/report/chart.h"
#include "core/io/files.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::xml_problem;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Compares with tests/golden/svg/<name>.svg; WAYMARK_UPDATE_GOLDEN=1 writes it anew (look at the picture then).
void check_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/svg/" + name + ".svg";
  if (std::getenv("WAYMARK_UPDATE_GOLDEN")) write_file_atomic(path, text);
  const std::string golden = read_file(path);
  CHECK_MESSAGE(text == golden, "drawing differs from ", path);
}

i64 count(const std::string& text, const std::string& part) {
  i64 n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::vector<std::string> texts(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks()) result.push_back(tick.text);
  return result;
}
using Texts = std::vector<std::string>;

// Loss curves of two methods with three seeds each.
LineChart curves() {
  LineChart chart;
  chart.title = "Loss against steps";
  chart.description = "Validation loss, mean and one s.d. over seeds 0 to 2.";
  chart.x_label = "step";
  chart.y_label = "val loss (nats)";
  for (int m = 0; m < 2; ++m) {
    std::vector<Curve> runs(3);
    for (int seed = 0; seed < 3; ++seed)
      for (int k = 0; k <= 6; ++k) {
        runs[static_cast<std::size_t>(seed)].x.push_back(150 * k);
        runs[static_cast<std::size_t>(seed)].y.push_back(1.5 + m + 2.0 / (k + 1) + 0.05 * seed * (k % 2 ? 1 : -1));
      }
    chart.series.push_back(mean_series(m == 0 ? "rope" : "none", runs));
  }
  return chart;
}

}  // namespace

TEST_CASE("svg: the check of well-formed XML finds faults") {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  CHECK(xml_problem(head + "<a b=\"1\" c=\"&lt;\"><d/>x &amp; y</a>\n").empty());
  CHECK(has(xml_problem("<a/>"), "no declaration"));
  CHECK(has(xml_problem(head + "<a><b></a></b>"), "closes nothing"));
  CHECK(has(xml_problem(head + "<a>"), "is open"));
  CHECK(has(xml_problem(head + "<a/><b/>"), "second root"));
  CHECK(has(xml_problem(head + "<a b=\"1\" b=\"2\"/>"), "twice"));
  CHECK(has(xml_problem(head + "<a c=\"1\" b=\"2\"/>"), "out of order"));
  CHECK(has(xml_problem(head + "<a b=\"<\"/>"), "forbidden"));
  CHECK(has(xml_problem(head + "<a>x & y</a>"), "unknown entity"));
  CHECK(has(xml_problem(head + "<a>\x01</a>"), "forbidden"));
  CHECK(has(xml_problem(head), "no element"));
}

TEST_CASE("svg: numbers have two decimals at most") {
  CHECK(svg_number(12) == "12");
  CHECK(svg_number(0.5) == "0.5");
  CHECK(svg_number(-3.14159) == "-3.14");
  CHECK(svg_number(-0.001) == "0");
  CHECK(svg_number(100) == "100");
  CHECK(has(error_text([] { svg_number(kNan); }), "svg: a coordinate is nan"));
}

TEST_CASE("svg: hostile text is only text") {
  SvgWriter svg(200, 100, "<script>alert(1)</script>", "a & b\n\x01");
  svg.label(1, 2, "\"/><script href='javascript:x'>");
  svg.leaf("rect", {{"fill", "\"/><script>"}});
  const std::string text = svg.finish();
  CHECK(xml_problem(text).empty());
  CHECK_FALSE(has(text, "<script"));
  CHECK(has(text, "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>"));
}

TEST_CASE("axis: ticks are 1, 2, 5 times a power of ten") {
  CHECK(texts(Axis(0, 1, 0, 100, false, false)) == Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(texts(Axis(1.53, 3.02, 0, 100, false, false)) == Texts{"1.5", "2.0", "2.5", "3.0", "3.5"});
  CHECK(texts(Axis(0, 900, 0, 100, false, true)) == Texts{"0", "200", "400", "600", "800"});
  CHECK(texts(Axis(-16, 16, 0, 100, false, true)) == Texts{"-10", "0", "10"});
  CHECK(texts(Axis(0, 60000, 0, 100, false, true)) == Texts{"0", "10k", "20k", "30k", "40k", "50k", "60k"});
  CHECK(texts(Axis(1, 100, 0, 100, true, true)) == Texts{"1", "2", "5", "10", "20", "50", "100"});
  CHECK(texts(Axis(1e-5, 1e-2, 0, 100, true, true, 3)) == Texts{"1e-5", "0.0001", "0.001", "0.01"});
  CHECK(texts(Axis(64, 256, 0, 100, true, true, 6, {64, 128, 256})) == Texts{"64", "128", "256"});
  const Axis one(64, 256, 0, 100, true, true);
  CHECK(one(64) == doctest::Approx(0));
  CHECK(one(128) == doctest::Approx(50));
  CHECK(one(256) == doctest::Approx(100));
  CHECK_FALSE(one.drawable(0));
  CHECK_FALSE(one.drawable(kNan));
  // No range, and ranges at the ends of f64, are still axes.
  for (double v : {0.0, 1.0, -2.5, 1e300, 1e-300, -1e300}) {
    const Axis axis(v, v, 0, 100, false, false);
    CHECK(axis.low() < axis.high());
    CHECK(std::isfinite(axis(v)));
    CHECK(axis.ticks().size() >= 1);
  }
  CHECK(std::isfinite(Axis(-1e300, 1e300, 0, 1, false, false)(0)));
  CHECK_THROWS_AS(Axis(0, 1, 0, 1, true, true), Error);
  CHECK_THROWS_AS(Axis(0, kNan, 0, 1, false, true), Error);
}

TEST_CASE("axis: thinning keeps peaks and order") {
  std::vector<double> y(100000, 0.0);
  y[77777] = 5;
  y[33333] = -7;
  y[50000] = kNan;
  const auto kept = thin(y);
  CHECK(kept.size() <= 2000);
  CHECK(kept.front() == 0);
  CHECK(kept.back() == y.size() - 1);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
  CHECK(std::find(kept.begin(), kept.end(), std::size_t{77777}) != kept.end());
  CHECK(std::find(kept.begin(), kept.end(), std::size_t{33333}) != kept.end());
  CHECK(thin(std::vector<double>(2000, 1.0)).size() == 2000);
  CHECK(thin({}).empty());
  CHECK(thin(std::vector<double>(50000, kNan), 4).size() <= 4);
}

TEST_CASE("chart: mean over runs uses the common points") {
  const Series s = mean_series("a", {{{1, 2, 3}, {1, 2, 3}}, {{1, 3, 4}, {3, 5, 9}}});
  CHECK(s.curve.x == std::vector<double>{1, 3});
  CHECK(s.curve.y == std::vector<double>{2, 4});
  CHECK(s.low[0] == doctest::Approx(2 - std::sqrt(2.0)));
  CHECK(s.high[1] == doctest::Approx(4 + std::sqrt(2.0)));
  CHECK(s.raw.size() == 2);
  const Series one = mean_series("a", {{{1, 2}, {5, kNan}}});
  CHECK(one.low.empty());
  CHECK(one.raw.empty());
  CHECK(one.curve.y[0] == 5);
  CHECK(std::isnan(one.curve.y[1]));
}

TEST_CASE("chart: golden drawings") {
  check_golden("curves", draw(curves()));

  LineChart length;
  length.title = "Loss against test length";
  length.x_label = "length (characters)";
  length.y_label = "test loss (nats)";
  length.log_x = length.markers = true;
  length.x_ticks = {64, 128, 256};
  length.vertical = {{64, "trained length"}};
  length.horizontal = {{3.1, "majority"}};
  length.series = {mean_series("rope", {{{64, 128, 256}, {1.70, 1.72, 1.84}}, {{64, 128, 256}, {1.76, 1.75, 1.90}}}),
                   mean_series("learned(max_len=256)", {{{64, 128, 256}, {2.98, 2.99, 3.02}}})};
  check_golden("length", draw(length));

  PanelChart panels;
  panels.title = "Attention mass by distance";
  for (int layer = 0; layer < 2; ++layer) {
    LineChart panel;
    panel.title = "layer " + std::to_string(layer);
    panel.x_label = "key position - query position";
    panel.y_label = "mean weight";
    panel.width = 420;
    panel.height = 300;
    panel.log_y = true;
    for (int m = 0; m < 3; ++m) {
      Curve curve;
      for (int d = -8; d <= 8; ++d) {
        curve.x.push_back(d);
        curve.y.push_back(m == 2 && d == 0 ? kNan : std::exp(-0.3 * std::abs(d) * m * (layer + 1)) / 10);
      }
      panel.series.push_back({m == 0 ? "none" : m == 1 ? "shaw" : "huang-m4", curve, {}, {}, {}, {}, {}});
    }
    panels.panels.push_back(panel);
  }
  check_golden("panels", draw(panels));

  HeatMap map;
  map.title = "Layer 0, head 1";
  map.x_label = "key";
  map.y_label = "query";
  map.rows = map.cols = 6;
  for (int i = 0; i < 36; ++i) map.values.push_back(i % 6 > i / 6 ? kNan : 1.0 / (1 + i / 6));
  check_golden("heat_map", draw(map));
}

TEST_CASE("chart: every drawing is well-formed, self-contained and finite") {
  std::vector<std::string> drawings;
  LineChart chart = curves();
  chart.series[0].name = "</title><script>x</script>";
  chart.series[1].name = std::string(10000, 'y');
  chart.title = "\"><svg onload=\"x\n";
  drawings.push_back(draw(chart));
  chart.log_y = true;
  chart.series[0].low[0] = -5;  // a band below 0 on a logarithmic axis
  drawings.push_back(draw(chart));
  LineChart nothing;
  nothing.title = "empty";
  drawings.push_back(draw(nothing));
  CHECK(has(drawings.back(), "no data"));
  nothing.series = {{"gap", {{1, 2}, {kNan, kNan}}, {}, {}, {}, {}, {}}};
  drawings.push_back(draw(nothing));
  CHECK(has(drawings.back(), "no data"));
  LineChart wild;
  wild.series = {{"w", {{1, 2, 3, 4, 5}, {1e308, 1, kNan, 2, -1e308}}, {}, {}, {}, {}, {}}};
  drawings.push_back(draw(wild));
  PanelChart different;
  different.panels = {curves(), wild};
  drawings.push_back(draw(different));
  HeatMap map;
  map.rows = 300;
  map.cols = 2;
  for (int i = 0; i < 600; ++i) map.values.push_back(i % 7 - 3.0);
  map.y_first = -150;
  drawings.push_back(draw(map));
  CHECK(has(drawings.back(), "Means over blocks of 3 x 1 values."));
  map.values.assign(600, kNan);
  drawings.push_back(draw(map));
  for (const std::string& text : drawings) {
    CHECK(xml_problem(text) == "");
    for (const char* forbidden : {"<script", "href", "url(", "@import", "nan", "inf\""}) {
      CAPTURE(forbidden);
      CHECK_FALSE(has(text, forbidden));
    }
    CHECK(has(text, "<title>"));
  }
  CHECK(draw(curves()) == draw(curves()));
}

TEST_CASE("chart: long curves stay small") {
  LineChart chart;
  Curve curve;
  for (int i = 0; i < 200000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(std::sin(i * 0.7));
  }
  chart.series = {{"a", curve, {}, {}, {}, {}, {}}};
  const std::string text = draw(chart);
  const std::size_t from = text.find("<polyline"), end = text.find("/>", from);
  CHECK(count(text.substr(from, end - from), ",") <= 2000);
}

TEST_CASE("chart: sizes that do not fit are errors") {
  LineChart chart;
  chart.series = {{"a", {{1, 2}, {1}}, {}, {}, {}, {}, {}}};
  CHECK(error_text([&] { draw(chart); }) == "chart: a: 2 x and 1 y");
  chart.series = {{"a", {{1, 2}, {1, 2}}, {1}, {1}, {}, {}, {}}};
  CHECK(has(error_text([&] { draw(chart); }), "a band of 1 low and 1 high"));
  HeatMap map;
  CHECK(has(error_text([&] { draw(map); }), "must be at least 1"));
  map.rows = map.cols = 2;
  CHECK(has(error_text([&] { draw(map); }), "0 values for 2 rows and 2 columns"));
  CHECK(has(error_text([] { draw(PanelChart{}); }), "no panels"));
}
