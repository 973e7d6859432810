// waymark train and eval as a user runs them: files, exit codes, the same numbers again.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <fstream>

#include "tests/train/cli/program.h"
#include "tests/train/cli/small_run.h"
#include "train/report/result.h"

using waymark::test::run_waymark;
namespace fs = std::filesystem;

namespace {

struct TrainedRun : waymark::test::SmallRun {
  std::vector<std::string> train(const std::string& out) const {
    std::vector<std::string> all = words("train");
    all.insert(all.end(), {"--steps", "6", "--out", (*this / out).string(), "--progress", "none"});
    return all;
  }
};

}  // namespace

TEST_CASE("train writes a run; again there is nothing to do; eval gives the same numbers") {
  const TrainedRun folder;
  const auto first = run_waymark(folder.train("a"));
  INFO(first.err);
  REQUIRE(first.code == 0);
  for (const char* file : {"config.toml", "overrides.txt", "metrics.jsonl", "result.json", "checkpoints/index.json"})
    CHECK_MESSAGE(fs::exists(folder / "a" / file), file);
  const auto again = run_waymark(folder.train("a"));
  CHECK(again.code == 0);
  CHECK(again.err.find("nothing to do") != std::string::npos);

  const waymark::train::RunResult result = waymark::train::load_result(folder / "a" / "result.json");
  const double loss = result.last->find("test")->find("loss")->value;
  const auto measured = run_waymark({"eval", (folder / "a").string(), "--lengths", "32"});
  INFO(measured.err);
  REQUIRE(measured.code == 0);
  CHECK(measured.out.find(fmt::format("loss {:.4g}", loss)) != std::string::npos);
  CHECK(measured.out.find("test@32") != std::string::npos);
  CHECK(waymark::train::load_result(folder / "a" / "result.json").last->find("test")->find("loss")->value == loss);

  CHECK(run_waymark({"eval", (folder / "nothing").string()}).code == 2);
  CHECK(run_waymark({"eval", (folder / "a").string(), "--which", "step-77"}).code == 2);
  CHECK(run_waymark({"eval", (folder / "a").string(), "--split", "tset"}).code == 2);
  CHECK(run_waymark({"eval", (folder / "a").string(), "--seed", "3"}).code == 2);
  CHECK(run_waymark({"eval", (folder / "a").string(), "--set", "model.embed_dim=8"}).code == 2);
}

TEST_CASE("a run goes on in its own folder, or in another one") {
  const TrainedRun folder;
  REQUIRE(run_waymark(folder.train("a")).code == 0);
  fs::remove(folder / "a" / "result.json");  // as if it had been killed at the end
  const std::string a = (folder / "a").string();
  // The folder alone says where to go on.
  CHECK(run_waymark({"train", "--resume", a, "--progress", "none"}).code == 0);
  CHECK(fs::exists(folder / "a" / "result.json"));
  // More steps, elsewhere; what was there stays.
  const auto fork = run_waymark({"train", a + "/config.toml", "--resume", a, "--steps", "9", "--out", (folder / "b").string(),
                                 "--progress", "none"});
  INFO(fork.err);
  REQUIRE(fork.code == 0);
  const auto result = waymark::train::load_result(folder / "b" / "result.json");
  CHECK(result.steps == 9);
  CHECK(result.continued_from == waymark::train::load_result(folder / "a" / "result.json").id);
  CHECK(waymark::train::load_result(folder / "a" / "result.json").steps == 6);
  // eval does without the optimizer's state, and without an index.
  fs::remove(folder / "a" / "checkpoints" / "step-00000006" / "optimizer.safetensors");
  std::ofstream(folder / "a" / "checkpoints" / "index.json") << "{";
  const auto measured = run_waymark({"eval", a});
  INFO(measured.err);
  CHECK(measured.code == 0);
  CHECK(measured.err.find("index.json") != std::string::npos);
  const auto best = run_waymark({"eval", a, "--which", "best"});
  CHECK(best.code == 2);
  CHECK(best.err.find("is not known") != std::string::npos);
}

TEST_CASE("train: wrong requests change nothing and exit with 2") {
  const TrainedRun folder;
  auto words = folder.train("b");
  words.insert(words.end(), {"--set", "model.num_head=3", "--set", "model.embed_dim=15"});
  const auto wrong = run_waymark(words);
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("Did you mean model.num_heads?") != std::string::npos);
  CHECK(!fs::exists(folder / "b"));
  auto missing = folder.train("c");
  missing[2] = "char-mlm(source=file, path=\"/no/such/text\", context=16)";
  CHECK(run_waymark(missing).code == 2);
  CHECK(!fs::exists(folder / "c"));
  auto other = folder.train("d");
  REQUIRE(run_waymark(other).code == 0);
  other.insert(other.end(), {"--seed", "5"});
  CHECK(run_waymark(other).code == 2);  // another run lives there
}
