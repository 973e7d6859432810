// Interrupted + resumed = uninterrupted, bit for bit.
#include <doctest/doctest.h>

#include "tests/train/trainer/fixture.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

struct Whole {
  nn::StateDict model;
  std::string metrics, result;
};

Whole run_whole(const Config& config, const std::filesystem::path& folder) {
  Trainer trainer(config);
  const RunResult result = trainer.folder(folder).run();
  REQUIRE(result.status == RunStatus::finished);
  return {state_of(trainer), metrics_of(folder), result_text(result)};
}

}  // namespace

TEST_CASE("a run cut at any step goes on as if nothing had happened") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const Config config = small_config(text);
  const Whole whole = run_whole(config, folder / "whole");
  for (i64 cut = 0; cut < 12; ++cut) {
    CAPTURE(cut);
    const auto path = folder / fmt::format("cut-{}", cut);
    {
      Trainer first(config);
      const RunResult result = first.folder(path).stop_after(cut == 0 ? 1 : cut).run();
      CHECK(result.status == RunStatus::interrupted);
      CHECK(load_result(path / "result.json").status == RunStatus::interrupted);
    }
    // cut = 0: killed before its first checkpoint.
    if (cut == 0) std::filesystem::remove_all(path / "checkpoints");
    Trainer second(config);
    const RunResult result = second.folder(path).resume().run();
    CHECK(result.status == RunStatus::finished);
    CHECK(result.resumes == (cut == 0 ? 0 : 1));
    CHECK(difference(state_of(second), whole.model) == "");
    CHECK(metrics_of(path) == whole.metrics);
    if (cut > 0) CHECK(result_text(result) == whole.result);
  }
}

TEST_CASE("cut at every step, again and again, and with another number of threads") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const Config config = small_config(text, {{"run.threads", "1"}});
  const Whole whole = run_whole(config, folder / "whole");
  for (i64 cut = 1; cut <= 12; ++cut) {
    Trainer trainer(small_config(text, {{"run.threads", std::to_string(1 + cut % 3)}}));
    trainer.folder(folder / "steps").stop_after(cut);
    if (cut > 1) trainer.resume();
    const RunResult result = trainer.run();
    CHECK(result.status == (cut < 12 ? RunStatus::interrupted : RunStatus::finished));
    if (cut < 12) continue;
    CHECK(difference(state_of(trainer), whole.model) == "");
    CHECK(metrics_of(folder / "steps") == whole.metrics);
  }
}

TEST_CASE("an interruption inside a validation repeats it") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder));
  const Whole whole = run_whole(config, folder / "whole");
  const auto path = folder / "cut";
  {
    // The signal comes while the validation of step 4 runs.
    Trainer first(config);
    struct Stop : RunSink {
      Trainer* trainer = nullptr;
      void on_eval_progress(const EvalProgress& p) override {
        if (p.step == 4 && p.done == 1) trainer->request_stop();
      }
    } stop;
    stop.trainer = &first;
    CHECK(first.folder(path).sink(stop).run().status == RunStatus::interrupted);
    CHECK(std::filesystem::exists(path / "checkpoints" / "interrupted-00000004"));
    CHECK(metrics_of(path).find("\"eval\"") == std::string::npos);
  }
  Trainer second(config);
  CHECK(second.folder(path).resume().run().status == RunStatus::finished);
  CHECK(difference(state_of(second), whole.model) == "");
  CHECK(metrics_of(path) == whole.metrics);
  CHECK(!std::filesystem::exists(path / "checkpoints" / "interrupted-00000004"));
}

TEST_CASE("an interruption inside the evaluation at the end repeats it") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder));
  const Whole whole = run_whole(config, folder / "whole");
  Trainer first(config);
  struct Stop : RunSink {
    Trainer* trainer = nullptr;
    void on_eval_progress(const EvalProgress& p) override {
      if (p.split == "test" && p.done == 1) trainer->request_stop();
    }
  } stop;
  stop.trainer = &first;
  CHECK(first.folder(folder / "cut").sink(stop).run().status == RunStatus::interrupted);
  Trainer second(config);
  const RunResult result = second.folder(folder / "cut").resume().run();
  CHECK(result.status == RunStatus::finished);
  CHECK(result_text(result) == whole.result);
}

TEST_CASE("a damaged checkpoint is passed over, an older one taken") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder), {{"train.save_every", "1"}});
  const Whole whole = run_whole(config, folder / "whole");
  const auto path = folder / "cut";
  Trainer(config).folder(path).stop_after(7).run();
  const auto damage = [&](const char* name, const char* file, auto change) {
    const auto at = path / "checkpoints" / name / file;
    std::string bytes = read_file(at);
    change(bytes);
    std::ofstream(at, std::ios::binary | std::ios::trunc) << bytes;
  };
  damage("step-00000007", "model.safetensors", [](std::string& b) { b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 1); });
  damage("step-00000006", "optimizer.safetensors", [](std::string& b) { b.resize(b.size() / 2); });
  std::filesystem::remove(path / "checkpoints" / "step-00000005" / "state.json");
  Trainer second(config);
  const RunResult result = second.folder(path).resume().run();
  REQUIRE(result.warnings.size() == 3);
  CHECK(has(result.warnings[0], "step-00000007 is skipped"));
  CHECK(has(result.warnings[0], "model.safetensors: damaged"));
  CHECK(has(result.warnings[1], "optimizer.safetensors"));
  CHECK(has(result.warnings[2], "state.json"));
  CHECK(difference(state_of(second), whole.model) == "");
  CHECK(metrics_of(path) == whole.metrics);
}

TEST_CASE("a best checkpoint that is damaged costs the best, not the run") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder), {{"train.save_every", "1"}});
  const Whole whole = run_whole(config, folder / "whole");
  const auto path = folder / "cut";
  Trainer(config).folder(path).stop_after(7).run();
  // Validated at step 4 for the first time: that is the best so far.
  const auto file = path / "checkpoints" / "step-00000004" / "model.safetensors";
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 4);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  Trainer second(config);
  const RunResult result = second.folder(path).resume().run();
  CHECK(result.status == RunStatus::finished);
  REQUIRE(result.warnings.size() == 1);
  CHECK(has(result.warnings[0], "the best checkpoint so far, of step 4, cannot be used"));
  CHECK(has(result.warnings[0], "model.safetensors: damaged"));
  REQUIRE(result.best);
  CHECK(result.best->step > 4);
  CHECK(difference(state_of(second), whole.model) == "");
}

TEST_CASE("a log that is damaged begins again, and the run goes on") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder), {{"train.save_every", "1"}});
  const Whole whole = run_whole(config, folder / "whole");
  const auto path = folder / "cut";
  Trainer(config).folder(path).stop_after(7).run();
  std::ofstream(path / "metrics.jsonl") << "nothing\n";
  Trainer second(config);
  const RunResult result = second.folder(path).resume().run();
  REQUIRE(result.warnings.size() == 1);
  CHECK(has(result.warnings[0], "metrics.jsonl"));
  CHECK(has(result.warnings[0], "begins again here"));
  CHECK(difference(state_of(second), whole.model) == "");
  CHECK(series(read_metrics(path / "metrics.jsonl"), MetricsKind::train, "loss").step == std::vector<double>{9, 12});
}

TEST_CASE("going back to an earlier checkpoint takes the later ones away") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder), {{"train.save_every", "1"}});
  const Whole whole = run_whole(config, folder / "whole");
  const auto path = folder / "cut";
  Trainer(config).folder(path).stop_after(9).run();
  Trainer second(config);
  second.folder(path).resume(path / "checkpoints" / "step-00000005").stop_after(6).run();
  CHECK(std::filesystem::exists(path / "checkpoints" / "step-00000006"));
  CHECK(!std::filesystem::exists(path / "checkpoints" / "step-00000009"));
  Trainer third(config);
  CHECK(third.folder(path).resume().run().status == RunStatus::finished);
  CHECK(difference(state_of(third), whole.model) == "");
  CHECK(metrics_of(path) == whole.metrics);
}

TEST_CASE("what may differ when a run goes on, and what may not") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const auto path = folder / "run";
  Trainer(small_config(text)).folder(path).stop_after(5).run();
  const auto problem = [&](const Settings& more, bool resume = true) -> std::string {
    try {
      Trainer trainer(small_config(text, more));
      trainer.folder(path);
      if (resume) trainer.resume();
      trainer.run();
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "(no problem)";
  };
  CHECK(has(problem({}, false), "--resume continues it, --force starts again"));
  CHECK(has(problem({{"seed", "1"}}, false), "has another run"));
  const std::string text_of_two = problem({{"seed", "1"}, {"model.num_heads", "1"}});
  CHECK(has(text_of_two, "seed is 0 in the checkpoint and 1 now"));
  CHECK(has(text_of_two, "model.num_heads is 2 in the checkpoint and 1 now"));
  CHECK(has(problem({{"train.steps", "4"}}), "train.steps is 12 in the checkpoint and 4 now"));
  std::filesystem::remove(folder / "text.txt");
  write_text(folder, sample_text(2990));
  CHECK(has(problem({}), "is not what the checkpoint was trained on"));
  small_text(folder);

  SUBCASE("keys without effect on the result") {
    CHECK(problem({{"train.log_every", "1"}, {"train.keep", "2"}, {"run.threads", "2"}, {"name", "other"}}) == "(no problem)");
  }
  SUBCASE("more steps") {
    Trainer trainer(small_config(text, {{"train.steps", "14"}}));
    const RunResult result = trainer.folder(path).resume().run();
    CHECK(result.status == RunStatus::finished);
    CHECK(result.steps == 14);
    CHECK(result.continued_from == small_config(text).id());
    CHECK(result.id != small_config(text).id());
    REQUIRE(result.warnings.size() == 1);
    CHECK(has(result.warnings[0], "the schedule depends on it"));
  }
  SUBCASE("a finished run has nothing to do") {
    Trainer trainer(small_config(text));
    const RunResult result = trainer.folder(path).resume().run();
    CHECK(!trainer.nothing_to_do());
    Trainer again(small_config(text));
    CHECK(result_text(again.folder(path).run()) == result_text(result));
    CHECK(again.nothing_to_do());
    Trainer forced(small_config(text));
    CHECK(result_text(forced.folder(path).force().run()) == result_text(result));
    CHECK(!forced.nothing_to_do());
  }
  SUBCASE("a run must be there") {
    Trainer trainer(small_config(text));
    trainer.folder(folder / "nowhere").resume();
    CHECK(has(error_text([&] { trainer.run(); }), "no run to resume"));
    CHECK(!std::filesystem::exists(folder / "nowhere"));
  }
}
