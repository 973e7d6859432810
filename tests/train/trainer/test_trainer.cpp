#include <doctest/doctest.h>

#include <cmath>

#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "tests/train/trainer/fixture.h"
#include "train/trainer/evaluate.h"
#include "train/trainer/plan.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

TEST_CASE("the folder of a run") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder));
  const auto path = folder / "run";
  Trainer trainer(config);
  std::vector<i64> steps, evaluations;
  trainer.on_step([&](const StepReport& r) { steps.push_back(r.step); });
  trainer.on_eval([&](const EvalReport& r) { evaluations.push_back(r.step); });
  const RunResult result = trainer.folder(path).command_line("waymark train x").run();
  CHECK(result.status == RunStatus::finished);
  CHECK(steps.size() == 12);
  CHECK(evaluations == std::vector<i64>{4, 8, 12, 12, 12});  // three validations, two test sets
  CHECK(read_file(path / "overrides.txt") == "waymark train x\n");
  CHECK(make_config({}, {(path / "config.toml").string()}).id() == config.id());
  CHECK(result_text(load_result(path / "result.json")) == result_text(result));
  CHECK(!std::filesystem::exists(path / "run.lock"));
  CHECK(std::filesystem::exists(path / "position" / "0.npz"));
  const MetricsFile metrics = read_metrics(path / "metrics.jsonl");
  CHECK(metrics.header.id == config.id());
  CHECK(series(metrics, MetricsKind::train, "loss").step == std::vector<double>{3, 6, 9, 12});
  CHECK(series(metrics, MetricsKind::eval, "accuracy", "val").step == std::vector<double>{4, 8, 12});

  CHECK(result.steps == 12);
  CHECK(result.tokens == 12 * 6 * 16);
  CHECK(result.stopped_by == "steps");
  CHECK(result.main_metric == "accuracy");
  CHECK(result.selection == "val.accuracy");
  CHECK(result.trained_length == 16);
  CHECK(*result.flops_per_step > 0);
  CHECK(*result.parameters > 500);
  REQUIRE(result.last);
  REQUIRE(result.best);
  CHECK(result.last->step == 12);
  CHECK(result.last->find("test@32")->length == 32);
  CHECK(result.last->find("test")->find("accuracy")->n > 30);
  CHECK(result.data.fingerprints.size() == 4);
  CHECK(result.baselines.size() == 6);
  CHECK(result.warnings.empty());
  CHECK(result.denormal_guard == true);
}

TEST_CASE("without a folder nothing is written, and nothing of the process is changed") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  manual_seed(5);
  const int threads = num_threads();
  Trainer trainer(small_config(text, {{"run.threads", "3"}, {"run.precision", "f64"}, {"train.steps", "4"}}));
  const RunResult result = trainer.run();
  CHECK(result.status == RunStatus::finished);
  CHECK(state_of(trainer)[0].second.dtype() == kF64);
  CHECK(default_dtype() == kF32);
  CHECK(num_threads() == threads);
  CHECK(default_generator().state() == GeneratorState{5, {}});
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) entries += entry.exists();
  CHECK(entries == 1);
  CHECK(has(error_text([&] { trainer.run(); }), "run() was called before"));
}

TEST_CASE("threads do not change a run") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  std::vector<nn::StateDict> states;
  std::vector<std::string> results;
  for (const char* threads : {"1", "2", "3", "4"}) {
    Trainer trainer(small_config(text, {{"run.threads", threads}, {"model.embed_dim", "32"}, {"train.batch_size", "24"},
                                        {"train.steps", "4"}}));
    RunResult result = trainer.run();
    result.config.erase("run.threads");
    result.cpu = {};
    states.push_back(state_of(trainer));
    results.push_back(result_text(result));
  }
  for (size_t i = 1; i < 4; ++i) {
    CHECK(difference(states[i], states[0]) == "");
    CHECK(results[i] == results[0]);
  }
}

// R18: whatever the cut, the loss of a step is a mean over all its targets, and dropout masks are those of the whole
// batch. In f64 only the order of sums is left.
TEST_CASE("micro-batches change nothing but rounding") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  std::vector<nn::StateDict> states;
  std::vector<std::vector<double>> losses;
  for (const char* micro : {"6", "3", "4", "1"}) {  // 4: the last one is smaller
    Trainer trainer(small_config(text, {{"train.micro_batch", micro}, {"run.precision", "f64"}}));
    losses.emplace_back();
    trainer.on_step([&](const StepReport& r) { losses.back().push_back(r.loss); });
    trainer.run();
    states.push_back(state_of(trainer));
  }
  for (size_t i = 1; i < states.size(); ++i) {
    CHECK(largest_difference(states[i], states[0]) < 1e-10);
    for (size_t k = 0; k < losses[0].size(); ++k) CHECK(losses[i][k] == doctest::Approx(losses[0][k]).epsilon(1e-12));
  }
}

// R27
TEST_CASE("evaluation, logging and saving do not change training") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  Trainer often(small_config(text, {{"train.eval_every", "1"}, {"train.eval_at_start", "true"}, {"train.log_every", "1"}}));
  often.folder(folder / "often").run();
  Trainer never(small_config(text, {{"train.eval_every", "1000"}, {"train.select", "last"}, {"train.save_every", "1000"}}));
  never.run();
  CHECK(difference(state_of(often), state_of(never)) == "");
}

TEST_CASE("the seed decides everything, and no part of the model depends on another part's choice") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const auto run = [&](const Settings& more) {
    Trainer trainer(small_config(text, more));
    std::vector<double> losses;
    trainer.on_step([&](const StepReport& r) { losses.push_back(r.loss); });
    trainer.run();
    return losses;
  };
  const auto a = run({}), b = run({}), other = run({{"seed", "1"}});
  CHECK(a == b);
  CHECK(a != other);
  // R5: a changed encoding changes the loss at step 1.
  CHECK(run({{"model.position", "huang-m2"}})[0] != a[0]);
  CHECK(run({{"model.position", "none"}})[0] != a[0]);
}

TEST_CASE("last and best: in process, and reloaded from their checkpoints, bit for bit") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  // A learning rate that spoils the end, so that best and last differ.
  const Config config = small_config(text, {{"optim.optimizer", "sgd(lr=3)"}, {"optim.schedule", "constant"},
                                            {"train.eval_every", "2"}, {"train.select", "val.loss"}, {"train.save_every", "2"}});
  Trainer trainer(config);
  const RunResult result = trainer.folder(folder / "run").run();
  REQUIRE(result.best);
  REQUIRE(result.best->step < 12);
  CHECK(result.selection == "val.loss");
  const auto task = make_task(task_request(config));
  for (const auto& [evaluation, name] : {std::pair(&*result.last, "step-00000012"),
                                         std::pair(&*result.best, result.best->step < 10 ? "" : "step-00000010")}) {
    const auto path = folder / "run" / "checkpoints" / (*name ? name : fmt::format("step-{:08}", evaluation->step));
    const RandomScope random(99);  // other initial values, which the checkpoint replaces
    const auto model = make_task_model(config, *task);
    model->module().load_state_dict(load_checkpoint(path).model);
    for (const auto& [split, values] : evaluation->splits) {
      const auto again = evaluate(*model, *task, split, {.batch_size = 6});
      for (const auto& [metric, value] : values.metrics) {
        CHECK(again->find(metric)->value == value.value);
        CHECK(again->find(metric)->n == value.n);
      }
    }
  }
  // The best is the best of the validations, the earliest of equal ones.
  double best = 1e9;
  i64 at = 0;
  for (const MetricsRecord& r : read_metrics(folder / "run" / "metrics.jsonl").records)
    if (r.kind == MetricsKind::eval && r.text("split") == "val" && *r.number("loss") < best) {
      best = *r.number("loss");
      at = r.step;
    }
  CHECK(result.best->step == at);
  CHECK(result.best->find("val")->find("loss")->value == best);
  // After the run the model is the last one.
  CHECK(difference(state_of(trainer), load_checkpoint(folder / "run" / "checkpoints" / "step-00000012").model) == "");

  // Without a folder the best is kept in memory.
  Trainer in_memory(config);
  CHECK(result_text(in_memory.run()) == result_text(result));
}

TEST_CASE("only what is kept stays on disk") {
  const TemporaryFolder folder;
  const Config config = small_config(small_text(folder), {{"optim.optimizer", "sgd(lr=3)"}, {"optim.schedule", "constant"},
                                                          {"train.eval_every", "2"}, {"train.select", "val.loss"},
                                                          {"train.keep", "1"}});
  Trainer trainer(config);
  const RunResult result = trainer.folder(folder / "run").run();
  std::vector<std::string> names;
  for (const auto& n : CheckpointStore(folder / "run" / "checkpoints").list()) names.push_back(n.name);
  CHECK(names == std::vector<std::string>{"step-00000012", fmt::format("step-{:08}", result.best->step)});
  const std::string index = read_file(folder / "run" / "checkpoints" / "index.json");
  CHECK(has(index, "\"last\": \"step-00000012\""));
  CHECK(has(index, fmt::format("\"best\": \"step-{:08}\"", result.best->step)));
}

TEST_CASE("a loss that is not finite") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  // Three passes a step: pass 13 is in step 5.
  SUBCASE("stop") {
    Trainer trainer(small_config(text));
    const RunResult result = trainer.folder(folder / "run").model(faulty([](i64 pass) { return pass == 13; })).run();
    CHECK(result.status == RunStatus::nonfinite);
    CHECK(result.steps == 4);
    CHECK(has(result.error, "step 5: loss nan, gradient norm nan"));
    CHECK(has(result.error, "token_embedding.weight (its gradient)"));
    CHECK(!result.last);
    CHECK(load_result(folder / "run" / "result.json").status == RunStatus::nonfinite);
    // Nothing was updated: the checkpoint is the state before the step.
    const auto checkpoints = folder / "run" / "checkpoints";
    CHECK(difference(load_checkpoint(checkpoints / "nonfinite-00000004").model,
                     load_checkpoint(checkpoints / "step-00000004").model) == "");
    // And a run without the fault goes on from there as if nothing had been.
    Trainer sound(small_config(text)), whole(small_config(text));
    sound.folder(folder / "run").resume().run();
    whole.run();
    CHECK(difference(state_of(sound), state_of(whole)) == "");
  }
  SUBCASE("skip") {
    Trainer trainer(small_config(text, {{"train.on_nonfinite", "skip"}}));
    std::vector<bool> updated;
    trainer.on_step([&](const StepReport& r) { updated.push_back(r.updated); });
    const RunResult result = trainer.folder(folder / "run").model(faulty([](i64 pass) { return pass == 13 || pass == 20; })).run();
    CHECK(result.status == RunStatus::finished);
    CHECK(result.nonfinite_skipped == 2);
    CHECK(updated == std::vector<bool>{true, true, true, true, false, true, false, true, true, true, true, true});
    REQUIRE(result.warnings.size() == 1);
    CHECK(result.warnings[0] == "an update was skipped: the loss is not finite (2 times)");
  }
  SUBCASE("skip, but not for ever") {
    Trainer trainer(small_config(text, {{"train.on_nonfinite", "skip"}, {"train.steps", "40"}}));
    const RunResult result = trainer.model(faulty([](i64 pass) { return pass >= 6; })).run();
    CHECK(result.status == RunStatus::nonfinite);
    CHECK(result.nonfinite_skipped == 10);
    CHECK(has(result.error, "11 updates in a row"));
  }
}

TEST_CASE("budgets") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const auto run = [&](const Settings& more) {
    Trainer trainer(small_config(text, more));
    return trainer.run();
  };
  RunResult r = run({{"train.epochs", "1.4"}});
  CHECK(r.steps == 7);
  CHECK(r.stopped_by == "epochs");
  r = run({{"train.epochs", "1"}, {"train.batch_size", "9"}, {"optim.accumulate", "1"}});  // the short batch counts
  CHECK(r.steps == 4);
  r = run({{"train.epochs", "1"}, {"train.batch_size", "9"}, {"optim.accumulate", "1"}, {"data.drop_last", "true"}});
  CHECK(r.steps == 3);
  r = run({{"train.tokens", "500"}});
  CHECK(r.steps == 6);
  CHECK(r.stopped_by == "tokens");
  r = run({{"train.minutes", "0.001"}, {"optim.schedule", "constant"}});
  CHECK(r.steps >= 1);
  CHECK(r.stopped_by == "minutes");
  const auto problem = [&](const Settings& more) { return error_text([&] { run(more); }); };
  CHECK(has(problem({{"train.epochs", "1"}, {"data.train_size", "0"}}), "the training data has no end"));
  CHECK(has(problem({{"train.minutes", "0.001"}}), "total="));
}

TEST_CASE("early stopping") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  // lr = 0: no validation after the first one gains. The one before training does not count (R43).
  Trainer trainer(small_config(text, {{"optim.optimizer", "sgd(lr=0)"}, {"optim.schedule", "constant"},
                                      {"train.patience", "2"}, {"train.eval_every", "2"}, {"train.eval_at_start", "true"}}));
  const RunResult r = trainer.folder(folder / "run").run();
  CHECK(r.steps == 6);
  CHECK(r.stopped_by == "patience");
  CHECK(r.best->step == 2);  // R42: of equal ones the earlier
}

TEST_CASE("groups, decay and frozen parameters") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  SUBCASE("frozen parameters do not move") {
    Trainer trainer(make_config([&] {
      Settings s = small_settings(text);
      s.emplace_back("optim.groups", "[{match = \"head.*\", freeze = true}, {match = \"*.norm1.*\", lr_scale = 0.0}]");
      return s;
    }()));
    const RandomScope random(0);
    const auto task = make_task(task_request(small_config(text)));
    const auto start = make_task_model(small_config(text), *task)->module().state_dict();
    trainer.run();
    const auto end = state_of(trainer);
    for (size_t i = 0; i < end.size(); ++i) {
      const std::string& name = end[i].first;
      CAPTURE(name);
      const bool still = name.rfind("head.", 0) == 0 || name.find(".norm1.") != std::string::npos;
      CHECK((difference(start[i].second, end[i].second) == "") == still);
    }
  }
  SUBCASE("frozen parameters have no gradient and no state") {
    Settings s = small_settings(text);
    s.emplace_back("optim.groups", "[{match = \"head.*\", freeze = true}]");
    const Config config = make_config(s);
    const auto task = make_task(task_request(config));
    const auto model = make_task_model(config, *task);
    for (const ParamGroup& group : make_param_groups(config, model->module()))
      for (const Tensor& p : group.params) CHECK(p.name().rfind("head.", 0) != 0);
    for (const nn::NamedParameter& p : model->module().named_parameters())
      CHECK(p.tensor.requires_grad() == (p.name.rfind("head.", 0) != 0));
  }
  SUBCASE("gradients are cut element by element before their norm is taken") {
    const Config config = small_config(text, {{"train.steps", "1"}, {"optim.optimizer", "sgd(lr=1)"}, {"optim.schedule", "constant"},
                                              {"optim.clip_value", "1e-4"}, {"optim.clip_norm", "0.0"}});
    Trainer trainer(config);
    const RandomScope random(0);
    const auto task = make_task(task_request(config));
    const auto start = make_task_model(config, *task)->module().state_dict();
    trainer.run();
    const auto end = state_of(trainer);
    double most = 0;
    for (size_t i = 0; i < end.size(); ++i) {
      const auto a = start[i].second.to_vector<double>(), b = end[i].second.to_vector<double>();
      for (size_t k = 0; k < a.size(); ++k) most = std::max(most, std::fabs(a[k] - b[k]));
    }
    CHECK(most == doctest::Approx(1e-4).epsilon(1e-2));
  }
  SUBCASE("only matrices decay") {
    // Without gradient (mask everything out of reach): lr · decay alone moves parameters; here by groups.
    const Config config = small_config(text, {{"optim.optimizer", "sgd(lr=0.1, weight_decay=0.5)"}});
    const auto task = make_task(task_request(config));
    const auto model = make_task_model(config, *task);
    const auto groups = make_param_groups(config, model->module());
    REQUIRE(groups.size() == 2);
    for (const ParamGroup& group : groups)
      for (const Tensor& p : group.params) {
        CAPTURE(p.name());
        CHECK((*group.weight_decay == 0.5) == (p.dim() >= 2));
      }
    const auto all = make_param_groups(small_config(text, {{"optim.decay", "all"}, {"optim.optimizer", "adamw"}}), model->module());
    CHECK(all.size() == 1);
    const auto none = make_param_groups(small_config(text, {{"optim.no_decay", "[\"*\"]"}}), model->module());
    CHECK(*none[0].weight_decay == 0);
  }
  SUBCASE("a group that matches nothing") {
    Settings s = small_settings(text);
    s.emplace_back("optim.groups", "[{match = \"nothing.*\", lr_scale = 2.0}]");
    CHECK(has(error_text([&] { Trainer(make_config(s)).run(); }), "nothing.* matches no parameter"));
  }
}

TEST_CASE("graphs that stay alive are noticed") {
  const TemporaryFolder folder;
  struct Keeper final : TaskModel {
    std::unique_ptr<TaskModel> model;
    std::vector<Tensor> kept;
    nn::ModuleBase& module() override { return model->module(); }
    Tensor output(const Batch& batch) override {
      const Tensor y = model->output(batch);
      if (model->module().training()) kept.push_back(y);
      return y;
    }
  };
  Trainer trainer(small_config(small_text(folder), {{"train.steps", "25"}}));
  trainer.model([](const Config& config, const Task& task) -> std::unique_ptr<TaskModel> {
    auto keeper = std::make_unique<Keeper>();
    keeper->model = make_task_model(config, task);
    return keeper;
  });
  const RunResult result = trainer.run();
  REQUIRE(result.warnings.size() == 1);
  CHECK(has(result.warnings[0], "grew in 20 steps in a row"));
}

TEST_CASE("a run that fails says so in its result") {
  const TemporaryFolder folder;
  Trainer trainer(small_config(small_text(folder)));
  trainer.folder(folder / "run").model([](const Config& config, const Task& task) -> std::unique_ptr<TaskModel> {
    struct Broken final : TaskModel {
      std::unique_ptr<TaskModel> model;
      nn::ModuleBase& module() override { return model->module(); }
      Tensor output(const Batch&) override { fail("broken", "on purpose"); }
    };
    auto broken = std::make_unique<Broken>();
    broken->model = make_task_model(config, task);
    return broken;
  });
  CHECK(has(error_text([&] { trainer.run(); }), "broken: on purpose"));
  const RunResult result = load_result(folder / "run" / "result.json");
  CHECK(result.status == RunStatus::failed);
  CHECK(result.error == "broken: on purpose");
  CHECK(!std::filesystem::exists(folder / "run" / "run.lock"));
}
