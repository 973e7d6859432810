#include "train/report/result.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::TemporaryFolder;

namespace {

RunResult sample() {
  RunResult r;
  r.id = "3f9a1c07d2e4";
  r.name = "char-mlm-<learned>";
  r.config = {{"model.position", "learned(max_len=256)"}, {"seed", "2"}, {"task", "char-mlm(mask_rate=0.15)"}};
  r.config_short = {{"task", "char-mlm"}};
  r.seed = 2;
  r.data.fingerprints = {{"test", "aa"}, {"train", "bb"}};
  r.data.sizes = {{"test", 100}};
  r.data.overlap = 0;
  r.data.masking = "15 % of the positions";
  r.trained_length = 64;
  r.steps = 900;
  r.tokens = 921600;
  r.stopped_by = "steps";
  r.parameters = 123456;
  r.seconds = 11.25;
  r.cpu = {"Some CPU", 2, 2.5e11, "Haswell"};
  r.version = "0.1.0";
  r.main_metric = "loss";
  r.baselines = {{"majority", "test", "accuracy", 0.17}};
  Evaluation last;
  last.step = 900;
  SplitResult test, far;
  test.metrics = {{"loss", metric_value("loss", 2.98, 960)}, {"accuracy", metric_value("accuracy", 0.25, 960)}};
  far.length = 128;
  far.untrained = true;
  far.metrics = {{"loss", metric_value("loss", std::numeric_limits<double>::infinity(), 960)}};
  last.splits = {{"test", test}, {"test@128", far}};
  r.last = last;
  r.selection = "last";
  r.warnings = {"one\nwarning"};
  return r;
}

std::string without(std::string text, const std::string& part) {
  text.erase(text.find(part), part.size());
  return text;
}

}  // namespace

TEST_CASE("result: direction and kind of a metric") {
  CHECK(lower_is_better("test.loss"));
  CHECK(lower_is_better("nats"));
  CHECK(lower_is_better("bits_per_byte"));
  CHECK_FALSE(lower_is_better("receiver.accuracy"));
  CHECK_FALSE(lower_is_better("em"));
  CHECK(is_share("test@128.accuracy"));
  CHECK(is_share("receiver_accuracy"));
  CHECK_FALSE(is_share("loss"));
}

TEST_CASE("result: file and back") {
  TemporaryFolder folder;
  const RunResult r = sample();
  save_result(folder.path(), r);
  const RunResult back = load_result(folder / "result.json");
  CHECK(result_to_json(back) == result_to_json(r));
  CHECK(back.config.at("model.position") == "learned(max_len=256)");
  CHECK(back.shown("task").value() == "char-mlm");
  CHECK(back.shown("model.position").value() == "learned(max_len=256)");
  CHECK_FALSE(back.shown("zz").has_value());
  CHECK(back.seed == 2);
  CHECK(back.parameters.value() == 123456);
  CHECK_FALSE(back.peak_memory.has_value());
  CHECK_FALSE(back.best.has_value());
  CHECK(back.tokens_per_second().value() == doctest::Approx(81920));
  CHECK(back.data.overlap.value() == 0);
  const SplitResult* far = back.last->find("test@128");
  REQUIRE(far);
  CHECK(far->untrained);
  CHECK(far->length == 128);
  CHECK(std::isinf(far->find("loss")->value));
  CHECK(back.last->find("test")->find("accuracy")->error.value() == doctest::Approx(std::sqrt(0.25 * 0.75 / 960)));
  CHECK_FALSE(back.last->find("test")->find("loss")->error.has_value());
  CHECK(back.warnings.at(0) == "one\nwarning");
}

TEST_CASE("result: what was not computed is absent") {
  RunResult r;
  r.id = "0";
  r.status = RunStatus::failed;
  r.error = "no space left";
  const std::string text = result_to_json(r);
  for (const char* absent : {"\"last\"", "\"best\"", "\"parameters\"", "\"seconds\"", "\"peak_memory\"", "null"})
    CHECK_FALSE(has(text, absent));
  const RunResult back = result_from_json(text, "t");
  CHECK(back.status == RunStatus::failed);
  CHECK(back.error == "no space left");
  CHECK_FALSE(back.tokens_per_second().has_value());
}

TEST_CASE("result: the reader is strict") {
  const std::string text = result_to_json(sample());
  const auto message = [](const std::string& t) { return error_text([&] { result_from_json(t, "r.json"); }); };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    REQUIRE(changed.find(from) != std::string::npos);
    return changed.replace(changed.find(from), from.size(), to);
  };
  CHECK(message(text) == "(no error)");
  CHECK(has(message(replaced("waymark-result-1", "waymark-result-9")), "r.json: format: is \"waymark-result-9\""));
  CHECK(has(message(replaced("\"finished\"", "\"done\"")), "r.json: status: must be"));
  CHECK(has(message(replaced("\"seed\": 2,", "\"seed\": \"2\",")), "r.json: seed: expected an integer"));
  CHECK(has(message(replaced("\"seed\": 2,", "\"seed\": 2, \"sede\": 2,")), "r.json: sede: unknown member"));
  CHECK(has(message(without(text, "\"seed\": 2,")), "r.json: seed: is missing"));
  CHECK(has(message(replaced("\"value\": 2.98", "\"value\": null")), "last.test.loss.value: expected a number"));
  CHECK(has(message(replaced("\"inf\"", "\"big\"")), "last.test@128.loss.nonfinite: must be"));
  CHECK(has(message(replaced("\"test\": \"aa\"", "\"test\": 1")), "data.fingerprints: test is an integer"));
  CHECK(has(message(text.substr(0, text.size() / 2)), "r.json: no JSON"));
}

TEST_CASE("result: names that would collide in the file are refused") {
  RunResult r = sample();
  r.last->splits[0].first = "step";
  CHECK(has(error_text([&] { result_to_json(r); }), "\"step\" cannot be the name of a split"));
  r = sample();
  r.last->splits[0].second.metrics[0].first = "length";
  CHECK(has(error_text([&] { result_to_json(r); }), "\"length\" cannot be the name of a metric"));
}
