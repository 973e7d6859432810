// The plans of the program: they resolve, and the smallest of them learns what it must.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/random/generator.h"
#include "nn/position/registry.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/test_level.h"
#include "tests/train/cli/program.h"
#include "train/config/sweep_cells.h"
#include "train/plans/plan.h"
#include "train/tasks/registry.h"
#include "train/trainer/trainer.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

// The recipe of a plan with an encoding; what is in `more` replaces it.
Config plan_config(const char* plan, const std::string& position, const Settings& more = {}) {
  TemporaryFolder folder;
  const auto path = folder / "recipe.toml";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(find_plan(plan)->recipe.c_str(), file);
  std::fclose(file);
  Settings settings = {{"model.position", position}};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_config(settings, {path.string()});
}

struct Slots {
  double receiver = 0, masked = 0;
};
Slots slots_of(const RunResult& result, const char* split) {
  const SplitResult* r = result.last->find(split);
  return {100 * r->find("receiver_accuracy")->value, 100 * r->find("masked_accuracy")->value};
}

}  // namespace

TEST_CASE("plans: every one resolves, its rows are built, expected numbers belong to columns") {
  std::set<std::string> names;
  for (const Plan& plan : all_plans()) {
    CAPTURE(plan.name);
    CHECK(names.insert(plan.name).second);
    CHECK(find_plan(plan.name) == &plan);
    Problems problems;
    const Source source = read_toml_text(plan_toml(plan), plan.name, problems);
    const SweepCells cells = expand_sweep({source}, {}, "", false, problems);
    for (const Problem& p : problems) FAIL_CHECK(p.text);
    CHECK(cells.repeated == 0);
    CHECK(cells.cells.size() >= 4);
    for (const PlanRow& row : plan.rows) CHECK(row.expected.size() <= plan.columns.size());
    for (const PlanColumn& column : plan.columns)
      if (column.metric.rfind("within.", 0) != 0) {
        const TaskFacts facts = task_facts(cells.cells[0].config.spec("task"));
        const std::string metric = column.metric.substr(column.metric.find('.') + 1);
        CHECK_MESSAGE(std::find(facts.metrics.begin(), facts.metrics.end(), metric) != facts.metrics.end(), metric);
      }
    if (plan.others_with_clip == 0) continue;
    for (const nn::EncodingInfo* info : nn::all_encodings()) {
      const bool there = std::any_of(cells.cells.begin(), cells.cells.end(), [&](const SweepCell& c) {
        return c.config.layers("model.position").front().front().name() == info->name();
      });
      CHECK_MESSAGE(there, info->name());
    }
  }
  CHECK(find_plan("nothing") == nullptr);
}

TEST_CASE("plans: the recipe of signed-neighbour") {
  const Config c = plan_config("signed-neighbour", "learned(max_len=256)");
  CHECK(c.integer("model.num_layers") == 1);
  CHECK(c.integer("train.steps") == 700);
  CHECK(c.text("train.select") == "last");
  const auto task = make_task(task_request(c));
  const RandomScope random(u64{0});
  const auto model = make_task_model(c, *task);
  const auto spread = [&](const nn::StateDict& state, const std::string& name) {
    for (const auto& [key, t] : state)
      if (key == name) {
        const auto v = t.to_vector<double>();
        return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / static_cast<double>(v.size()));
      }
    return -1.0;
  };
  const auto state = model->module().state_dict();
  CHECK(spread(state, "token_embedding.weight") == doctest::Approx(0.5).epsilon(0.05));
  CHECK(spread(state, "encoder.position.weight") == doctest::Approx(0.1).epsilon(0.05));
  CHECK(spread(state, "head.weight") == doctest::Approx(1 / std::sqrt(3.0 * 64)).epsilon(0.1));  // U(±1/√64)
  for (const auto& [name, t] : state)
    if (name == "head.weight") CHECK(t.shape() == Shape{8, 64});
}

TEST_CASE("model.init: globs of parameters that start at 0") {
  const Config c = plan_config("signed-neighbour", "huang-m4(clip=8)", {{"model.init", "pytorch(zero=[\"*.q_proj.bias\", \"*position.table\"])"}});
  const auto task = make_task(task_request(c));
  const RandomScope random(u64{0});
  const auto model = make_task_model(c, *task);
  i64 zeros = 0;
  for (const auto& entry : model->module().state_dict()) {
    const std::string& name = entry.first;
    const auto v = entry.second.to_vector<double>();
    const bool zero = std::all_of(v.begin(), v.end(), [](double x) { return x == 0; });
    const bool meant = name.find("q_proj.bias") != std::string::npos || name.find("position.table") != std::string::npos;
    if (meant) CHECK_MESSAGE(zero, name);
    zeros += meant;
  }
  CHECK(zeros == 2);
}

TEST_CASE("plans: list, unknown names, a table with what was measured before") {
  const auto list = run_waymark({"sweep", "--plan", "list"});
  CHECK(list.code == 0);
  for (const Plan& plan : all_plans()) CHECK(has(list.out, plan.name));
  const auto wrong = run_waymark({"sweep", "--plan", "signed-neighbor"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "Did you mean signed-neighbour"));
  const TemporaryFolder folder;
  const auto run = run_waymark({"sweep", "--plan", "signed-neighbour", "--set", "model.position=none", "--seeds", "0", "--steps", "2", "--out",
                                (folder / "s").string(), "--quiet"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(has(run.out, "| none |"));
  CHECK(has(run.out, "No row has the settings of the plan"));  // two steps are not 700

  // Runs of the plan itself have the known numbers beside them.
  LoadedRun done;
  done.state = RunState::finished;
  const Config config = plan_config("signed-neighbour", "shaw(clip=8)");
  for (const auto& [key, value] : config.id_lines())
    if (config.has(key)) done.result.config[key] = value;
  done.result.config_short = {{"model.position", "shaw(clip=8)"}, {"model.attention", "dense"}};
  done.result.last.emplace();
  SplitResult split;
  split.metrics = {{"receiver_accuracy", metric_value("receiver_accuracy", 0.5, 10)}};
  done.result.last->splits = {{"test", split}};
  LoadedRun other = done;
  other.result.last->splits[0].second.metrics[0].second.value = 0.7;
  LoadedRun failed = done;
  failed.state = RunState::failed;
  const std::string table = plan_table(*find_plan("signed-neighbour"), {done, other, failed});
  CAPTURE(table);
  CHECK(has(table, "| shaw(clip=8) | 60.0 ± 14.1 (2 of 3) [100] | not measured [96]"));
  CHECK(has(table, "In brackets: what an independent prototype reached"));
}

TEST_CASE("sweep: a list of plans takes nothing else, and an empty word is no way to leave something out") {
  const auto refused = [](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "sweep");
    const auto o = test::run_waymark(words);
    CAPTURE(o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(test::has(o.err, part));
  };
  refused({"--plan", "list", "base.toml"}, "unexpected argument base.toml: --plan list prints the plans");
  refused({"--plan", "list", "--seeds", "0"}, "--seeds  has no effect: --plan list");
  refused({"--plan", ""}, "--plan  there is no plan \"\"; there are signed-neighbour");
  // It would be all seeds of the plan, which take half an hour.
  refused({"--plan", "signed-neighbour", "--seeds", "", "--list"}, "--seeds  must be like 0..4 or 0,3,7, and is empty");
}

TEST_CASE("signed-neighbour learns in 300 steps what each encoding can express") {
  if (level() == Level::quick) return;
  const auto run = [](const char* position) {
    return slots_of(Trainer(plan_config("signed-neighbour", position, {{"train.steps", "300"}, {"train.eval_every", "300"}})).run(), "test");
  };
  const Slots m4 = run("huang-m4(clip=8)"), m1 = run("huang-m1(clip=8)"), none = run("none");
  CHECK(m4.receiver > 95);
  CHECK(m4.masked > 70);
  CHECK(m1.receiver < 52);  // it does not see the sign
  CHECK(none.receiver < 33);
  CHECK(none.masked < 33);
}

TEST_CASE("signed-neighbour: the bands over three seeds" * doctest::timeout(7200)) {
  if (level() != Level::full) return;
  struct Mean {
    Slots at32, at256;
  };
  const auto mean = [](const std::string& position) {
    Mean m;
    for (const char* seed : {"0", "1", "2"}) {
      const RunResult r = Trainer(plan_config("signed-neighbour", position, {{"seed", seed}})).run();
      for (auto [to, split] : {std::pair(&m.at32, "test"), {&m.at256, "test@256"}}) {
        const Slots s = slots_of(r, split);
        to->receiver += s.receiver / 3;
        to->masked += s.masked / 3;
      }
    }
    return m;
  };
  for (const char* position : {"huang-m4", "huang-m3", "deberta"}) {
    if (!nn::find_encoding(position)) continue;
    CAPTURE(position);
    const Mean m = mean(std::string(position) + "(clip=8)");
    CHECK(m.at32.receiver >= 98);
    CHECK(m.at32.masked >= 97);
    CHECK(m.at256.receiver >= 97);
    CHECK(m.at256.masked >= 85);
  }
  const Mean shaw = mean("shaw(clip=8)");
  CHECK(shaw.at32.receiver >= 98);
  CHECK(shaw.at32.masked >= 90);
  CHECK(shaw.at32.masked <= 99);
  const Mean m2 = mean("huang-m2(clip=8)");
  CHECK(m2.at32.receiver >= 80);
  CHECK(m2.at32.receiver <= 95);
  CHECK(m2.at32.masked >= 70);
  CHECK(m2.at32.masked <= 92);
  CHECK(mean("huang-m1(clip=8)").at32.receiver <= 55);
  const Mean none = mean("none");
  CHECK(none.at32.receiver <= 32);
  CHECK(none.at32.masked <= 32);
  for (const char* position : {"sinusoid", "learned(max_len=256)"}) {
    CAPTURE(position);
    const Mean m = mean(position);
    CHECK(m.at256.receiver <= 25);
    CHECK(m.at256.masked <= 25);
  }
  const Mean rope = mean("rope");
  CHECK(rope.at256.receiver <= rope.at32.receiver - 8);
  CHECK(rope.at256.masked <= rope.at32.masked - 8);
}
