// Runs with masks and attention patterns: what they print, what they log, and that they resume.
#include <doctest/doctest.h>

#include "tests/error_text.h"
#include "tests/train/trainer/fixture.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

struct StartSink : RunSink {
  void on_start(const RunStart& start) override { text = start.attention; }
  std::string text;
};

}  // namespace

TEST_CASE("attentions 11.3 no. 28: every run prints the full option list of its attentions, and the report of the mask") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const auto printed = [&](const Settings& more) {
    Settings settings = more;
    settings.emplace_back("train.steps", "1");
    Trainer trainer(small_config(text, settings));
    StartSink sink;
    trainer.sink(sink);
    (void)trainer.run();
    return sink.text;
  };
  CHECK(printed({}) == "attention dense(qk_norm=none) in 1 of 1 layers\n");
  const std::string local = printed({{"model.num_layers", "3"}, {"model.attention", "[local(window=2)]*2, routing(clusters=2)"}});
  CHECK(has(local, "attention local(window=2, block=none, before=0, after=0, qk_norm=none) in 2 of 3 layers\n  pairs: window(2, 2)\n"));
  CHECK(has(local, "  16 tokens: 148 pairs in 2 heads"));
  CHECK(has(local, "all pairs are joined after 8"));
  CHECK(has(local, "attention routing(clusters=2, window=auto, decay=0.999, commitment=0.0001) in 1 of 3 layers\n  which pairs"));
  CHECK(has(printed({{"model.mask", "causal()"}}), "pairs: causal()\n"));
  const auto path = folder / "run";
  Trainer trainer(small_config(text, {{"train.steps", "1"}, {"model.attention", "fixed(stride=4, c=1)"}}));
  (void)trainer.folder(path).run();
  CHECK(has(read_file(path / "log.txt"), "attention fixed(stride=4, c=1, heads=merged, qk_norm=none) in 1 of 1 layers\n  pairs: blocks(4) | summary(4, 1)\n"));
}

TEST_CASE("a run with routing: its loss is added and logged, its centroids move, and it resumes to the bit") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const Settings settings = {{"model.attention", "routing(clusters=2, decay=0.5, commitment=0.1)"}};
  const auto path = folder / "whole";
  Trainer whole(small_config(text, settings));
  (void)whole.folder(path).run();
  const MetricsFile metrics = read_metrics(path / "metrics.jsonl");
  const auto losses = series(metrics, MetricsKind::train, "encoder.layers.0.attention.commitment");
  REQUIRE(losses.step == std::vector<double>{3, 6, 9, 12});
  for (const double v : losses.value) CHECK(v > 0);
  Trainer without(small_config(text, {{"model.attention", "routing(clusters=2, decay=0.5, commitment=0)"}}));
  (void)without.run();
  CHECK(largest_difference(state_of(whole), state_of(without)) > 1e-4);
  const auto half = folder / "half";
  Trainer first(small_config(text, settings));
  (void)first.folder(half).stop_after(7).run();
  Trainer second(small_config(text, settings));
  (void)second.folder(half).resume().run();
  CHECK(difference(state_of(whole), state_of(second)) == "");
  bool moved = false;
  for (const auto& [name, t] : state_of(whole)) moved = moved || has(name, "attention.centroids");
  CHECK(moved);
}

TEST_CASE("model.mask: an expression, or a message") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const auto problem = [&](const char* mask) { return error_text([&] { (void)small_config(text, {{"model.mask", mask}}); }); };
  CHECK(problem("window(4, 4) | global(count=1)") == "(no error)");
  CHECK(has(problem("windw(4, 4)"), "unknown mask windw. Did you mean window? at column 1"));
  CHECK(has(problem("causal() & heads({all(), all(), all()})"), "mask: causal() & heads(3 entries) but the model has 2 heads"));
  CHECK(has(problem("documents(input)"), "documents(input) needs an array of the call, and no task of this version gives one"));
  Trainer open(small_config(text, {{"train.steps", "2"}})), masked(small_config(text, {{"train.steps", "2"}, {"model.mask", "window(1, 1)"}}));
  (void)open.run();
  (void)masked.run();
  CHECK(largest_difference(state_of(open), state_of(masked)) > 1e-6);
}
