#include <doctest/doctest.h>

#include "core/io/npz.h"
#include "core/random/generator.h"
#include "tests/train/trainer/fixture.h"
#include "train/trainer/analysis.h"
#include "train/trainer/evaluate.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

struct Fixture {
  TemporaryFolder folder;
  Config config;
  std::unique_ptr<Task> task;
  std::unique_ptr<TaskModel> model;
  explicit Fixture(const Settings& more = {}) : config(small_config(small_text(folder), more)) {
    const RandomScope random(3);
    task = make_task(task_request(config));
    model = make_task_model(config, *task);
  }
};

}  // namespace

TEST_CASE("evaluation: batch size does not matter, every item counts once, twice gives the same") {
  Fixture f;
  const auto all = evaluate(*f.model, *f.task, "val", {.batch_size = 100});
  CHECK(all->find("loss")->n > 20);
  for (const i64 batch : {1, 2, 4, 9}) {
    const auto other = evaluate(*f.model, *f.task, "val", {.batch_size = batch});
    CHECK(other->find("loss")->n == all->find("loss")->n);  // R29
    CHECK(other->find("loss")->value == doctest::Approx(all->find("loss")->value).epsilon(1e-6));
    CHECK(other->find("accuracy")->value == all->find("accuracy")->value);
  }
  const auto again = evaluate(*f.model, *f.task, "val", {.batch_size = 100});  // R26; dropout is off
  CHECK(again->find("loss")->value == all->find("loss")->value);
  CHECK(f.model->module().training());
  const auto part = evaluate(*f.model, *f.task, "val", {.batch_size = 2, .max_batches = 2});
  CHECK(part->find("loss")->approximate);
  CHECK(part->find("loss")->n < all->find("loss")->n);
  CHECK(!all->find("loss")->approximate);
  CHECK(!all->untrained);
  CHECK(evaluate(*f.model, *f.task, "test@32")->length == 32);
  std::atomic<bool> stop{true};
  CHECK(!evaluate(*f.model, *f.task, "val", {.stop = &stop}));
  Fixture endless(Settings{{"data.train_size", "0"}});
  CHECK(has(error_text([&] { (void)evaluate(*endless.model, *endless.task, "train"); }), "has no end"));
}

TEST_CASE("rows of a table beyond the trained length are marked untrained") {
  Fixture f(Settings{{"model.position", "learned(max_len=32)"}});
  CHECK(evaluate(*f.model, *f.task, "test@32")->untrained);
  CHECK(!evaluate(*f.model, *f.task, "test")->untrained);
  // R35: no row at all is a problem of the config.
  CHECK(has(error_text([&] { small_config(small_text(f.folder), {{"model.position", "learned(max_len=16)"}}); }),
            "write learned(max_len=32)"));
}

TEST_CASE("initial values of the recipe") {
  Fixture usual(Settings{{"model.position", "learned(max_len=32)"}, {"model.embed_dim", "64"}}),
      other(Settings{{"model.position", "learned(max_len=32)"}, {"model.embed_dim", "64"},
             {"model.init", "pytorch(token_std=0.5, learned_std=0.1)"}});
  const auto spread = [](TaskModel& model, const std::string& name) {
    for (const auto& [key, t] : model.module().state_dict()) {
      if (key != name) continue;
      double sum = 0;
      for (const double v : t.to_vector<double>()) sum += v * v;
      return std::sqrt(sum / static_cast<double>(t.numel()));
    }
    return -1.0;
  };
  CHECK(spread(*usual.model, "token_embedding.weight") == doctest::Approx(1).epsilon(0.05));
  CHECK(spread(*other.model, "token_embedding.weight") == doctest::Approx(0.5).epsilon(0.05));
  CHECK(spread(*usual.model, "encoder.position.weight") == doctest::Approx(0.02).epsilon(0.05));
  CHECK(spread(*other.model, "encoder.position.weight") == doctest::Approx(0.1).epsilon(0.05));
}

TEST_CASE("arrays of attention and tables by distance") {
  const std::vector<std::pair<std::string, i64>> cases = {
      {"huang-m4(clip=4)", 9}, {"huang-m1(clip=4)", 9}, {"huang-m2(clip=4)", 9}, {"shaw(clip=3)", 7}, {"none", 0}};
  for (const auto& test_case : cases) {
    const std::string& position = test_case.first;
    const i64 rows = test_case.second;
    CAPTURE(position);
    Fixture f(Settings{{"model.position", position}, {"model.num_layers", "2"}});
    write_analysis(f.folder / "run", *f.model, *f.task, 4);
    for (const char* layer : {"0.npz", "1.npz"}) {
      const Npz arrays = load_npz(f.folder / "run" / "position" / layer);
      const double queries = arrays.get("queries").to_vector<double>()[0];
      CHECK(queries == 4 * 16);
      const auto mean = arrays.get("attention_mean").to_vector<double>(), count = arrays.get("count").to_vector<double>();
      REQUIRE(arrays.get("attention_mean").shape() == Shape{2, 31});
      // The attention of a query is 1: sum of mean weight · pairs / queries, for each head.
      for (size_t h = 0; h < 2; ++h) {
        double sum = 0;
        for (size_t d = 0; d < 31; ++d) sum += mean[h * 31 + d] * count[d] / queries;
        CHECK(sum == doctest::Approx(1).epsilon(1e-6));
      }
      const auto within = arrays.get("within").to_vector<double>();
      CHECK(within[4] == doctest::Approx(1).epsilon(1e-6));  // all keys are within 16
      CHECK(within[0] < within[1]);
      CHECK(arrays.contains("norm") == (rows > 0));
      if (rows == 0) continue;
      CHECK(arrays.get("norm").shape() == Shape{rows});
      const char* delta = arrays.contains("table") ? "table_delta" : "bias_delta";
      CHECK(arrays.get(delta).to_vector<i64>().back() == (rows == 7 ? 3 : 4));
    }
  }
}
