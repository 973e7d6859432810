#include "train/report/plots.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/train/report/xml_check.h"
#include "train/report/metrics_log.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::TemporaryFolder;
using waymark::test::xml_problem;

namespace {

LoadedRun run_of(const std::string& position, i64 seed, const std::filesystem::path& folder = {}) {
  LoadedRun r;
  r.state = RunState::finished;
  r.folder = folder;
  r.result.id = fmt::format("{}{}", position, seed);
  r.result.seed = seed;
  r.result.config = {{"model.position", position}};
  r.result.trained_length = 64;
  return r;
}

}  // namespace

TEST_CASE("plots: learning curves of runs") {
  TemporaryFolder folder;
  std::vector<LoadedRun> runs;
  for (const char* position : {"rope", "<none>"})
    for (i64 seed = 0; seed < 2; ++seed) {
      const auto path = folder / fmt::format("{}{}", position[0] == 'r' ? "r" : "n", seed);
      std::filesystem::create_directory(path);
      MetricsLog log = MetricsLog::create(path / "metrics.jsonl", {"id", seed, ""});
      for (i64 step : {0, 10, 20}) {
        log.write(MetricsRecord{MetricsKind::train, step, {}}.set("loss", 9.0).set("time", 0.1));
        log.write(eval_record(step, "val", 5, {{"loss", 1.0 + static_cast<double>(seed)}, {"accuracy", 0.25}},
                              2 * static_cast<double>(step)));
      }
      runs.push_back(run_of(position, seed, path));
    }
  runs.push_back(run_of("shaw", 0));                    // no folder
  runs.push_back(run_of("shaw", 1, folder / "nowhere"));  // no file
  LineChart chart = curves_chart(runs);
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].name == "rope");
  CHECK(chart.series[0].curve.x == std::vector<double>{0, 10, 20});
  CHECK(chart.series[0].curve.y == std::vector<double>{1.5, 1.5, 1.5});
  CHECK(chart.series[0].low[0] == doctest::Approx(1.5 - std::sqrt(0.5)));
  CHECK(chart.series[0].raw.size() == 2);
  CHECK(chart.y_label == "val loss");
  CHECK(chart.description == "Mean and one sample s.d. over up to 2 runs. 2 of 6 runs have no such curve.");
  CHECK(xml_problem(draw(chart)) == "");

  CurvesOptions options;
  options.field = "accuracy";
  options.against_seconds = true;
  chart = curves_chart(runs, options);
  CHECK(chart.series[1].curve.x == std::vector<double>{0, 20, 40});
  CHECK(chart.series[1].curve.y[0] == 25);
  CHECK(chart.y_label == "val accuracy %");
  options = {};
  options.split = "";
  CHECK(curves_chart(runs, options).series[0].curve.y[0] == 9);
}

TEST_CASE("plots: metric against test length") {
  std::vector<LoadedRun> runs;
  for (i64 seed = 0; seed < 3; ++seed) {
    LoadedRun r = run_of("rope", seed);
    Evaluation e;
    const std::pair<const char*, i64> splits[] = {{"val", 0}, {"test@256", 256}, {"test", 0}, {"test@128", 0}};
    for (const auto& [name, length] : splits) {
      SplitResult s;
      s.length = length;
      s.metrics = {{"accuracy", metric_value("accuracy", 0.5 + 0.1 * static_cast<double>(seed), 10)}};
      e.splits.emplace_back(name, s);
    }
    r.result.last = e;
    r.result.baselines = {{"majority", "test", "accuracy", 0.2}, {"majority", "test", "loss", 3}};
    runs.push_back(r);
  }
  runs.push_back(run_of("none", 0));
  runs.back().state = RunState::failed;
  const LineChart chart = length_chart(runs, "accuracy");
  REQUIRE(chart.series.size() == 1);
  CHECK(chart.series[0].curve.x == std::vector<double>{64, 128, 256});
  CHECK(chart.series[0].curve.y[1] == doctest::Approx(60));
  CHECK(chart.x_ticks == std::vector<double>{64, 128, 256});
  REQUIRE(chart.vertical.size() == 1);
  CHECK(chart.vertical[0].at == 64);
  REQUIRE(chart.horizontal.size() == 1);
  CHECK(chart.horizontal[0].at == doctest::Approx(20));
  CHECK(xml_problem(draw(chart)) == "");
  CHECK(length_chart(runs, "accuracy", {"model.position"}, true).series.empty());
}

TEST_CASE("plots: distance, a panel per layer") {
  std::vector<DistanceCurve> curves;
  for (i64 layer = 0; layer < 2; ++layer)
    for (int seed = 0; seed < 2; ++seed) {
      curves.push_back({"shaw", layer, {{-1, 0, 1}, {1, 2.0 + seed, 3}}});
      if (layer == 0) curves.push_back({"m4", layer, {{-1, 0, 1}, {1, 1, 1}}});
    }
  const PanelChart chart = distance_chart("Attention mass by distance", "mean weight", curves);
  REQUIRE(chart.panels.size() == 2);
  CHECK(chart.panels[0].series.size() == 2);
  CHECK(chart.panels[1].series.size() == 2);
  CHECK(chart.panels[1].series[1].curve.x.empty());
  CHECK(chart.panels[0].series[0].curve.y == std::vector<double>{1, 2.5, 3});
  CHECK(chart.panels[1].title == "layer 1");
  CHECK(chart.description == "Mean and one sample s.d. over up to 2 runs.");
  CHECK(xml_problem(draw(chart)) == "");
  CHECK(has(error_text([] { distance_chart("t", "y", {}); }), "there are no curves"));
}
