#include "train/report/loaded_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "train/report/sweep_plan.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

RunResult result(const std::string& id, RunStatus status = RunStatus::finished) {
  RunResult r;
  r.id = id;
  r.name = "run-" + id;
  r.status = status;
  r.config = {{"model.position", id}};
  return r;
}

void put(const fs::path& folder, const RunResult& r) {
  fs::create_directories(folder);
  save_result(folder, r);
}

PlannedRun planned(const std::string& id, const std::string& state, const std::string& reason = "") {
  PlannedRun run;
  run.id = id;
  run.name = "run-" + id;
  run.folder = state == "refused" ? "" : "run-" + id;
  run.seed = 3;
  run.config = {{"model.position", id + "(max_len=5)"}};
  run.config_short = {{"model.position", id}};
  run.state = state;
  run.reason = reason;
  return run;
}

std::string ids(const RunSet& set) {
  std::string text;
  for (const LoadedRun& run : set.runs)
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", run.result.id, name_of(run.state));
  return text;
}

}  // namespace

TEST_CASE("sweep plan: file and back, strict") {
  TemporaryFolder folder;
  const SweepPlan plan{{planned("a", "finished"), planned("t5", "refused", "no pairwise score")}};
  save_plan(folder.path(), plan);
  const SweepPlan back = load_plan(folder / "sweep.json");
  CHECK(plan_to_json(back) == plan_to_json(plan));
  CHECK(back.runs.at(0).folder == "run-a");
  CHECK(back.runs.at(0).seed == 3);
  CHECK(back.runs.at(1).folder.empty());
  CHECK(back.runs.at(1).reason == "no pairwise score");
  CHECK(back.runs.at(1).config_short.at("model.position") == "t5");
  CHECK(has(error_text([&] { plan_to_json({{planned("a", "done")}}); }), "state: must be planned, running"));
  std::string text = plan_to_json(plan);
  text.replace(text.find("waymark-sweep-1"), 15, "waymark-sweep-2");
  CHECK(has(error_text([&] { plan_from_json(text, "s.json"); }), "s.json: format: is \"waymark-sweep-2\""));
  CHECK(has(error_text([&] { plan_from_json(R"({"format":"waymark-sweep-1","runs":[{"id":1}]})", "s.json"); }),
            "s.json: runs[0].id: expected a string"));
}

TEST_CASE("load runs: found below the folder, in the order of paths") {
  TemporaryFolder folder;
  put(folder / "x/b", result("b"));
  put(folder / "x/a", result("a", RunStatus::failed));
  put(folder / "y", result("c", RunStatus::nonfinite));
  put(folder / ".tmp-1-0", result("t"));
  put(folder / "y/checkpoints/step-1", result("k"));
  const RunSet set = load_runs({folder.path()});
  CHECK(ids(set) == "a:failed b:finished c:nonfinite");
  CHECK(set.warnings.empty());
  CHECK(set.runs[1].folder == (folder / "x/b"));
  // Given twice, there once.
  CHECK(ids(load_runs({folder / "x", folder.path(), folder / "x/"})) == "a:failed b:finished c:nonfinite");
  CHECK(has(error_text([&] { load_runs({folder / "nowhere"}); }), "nowhere: no such folder"));
}

TEST_CASE("load runs: a plan brings order and what has no result") {
  TemporaryFolder folder;
  save_plan(folder.path(), {{planned("z", "finished"), planned("gone", "planned"), planned("going", "planned"),
                             planned("t5", "refused", "no pairwise score"), planned("broke", "failed", "disk full"),
                             planned("vanished", "finished"), planned("a", "planned")}});
  put(folder / "run-a", result("a"));
  put(folder / "run-z", result("z"));
  put(folder / "other", result("other"));
  fs::create_directories(folder / "run-going");
  std::ofstream(folder / "run-going/run.lock") << 1;
  std::ofstream(folder / "run-going/config.toml") << 1;
  const RunSet set = load_runs({folder.path()});
  CHECK(ids(set) == "z:finished gone:missing going:running t5:refused broke:failed vanished:missing a:finished "
                    "other:finished");
  CHECK(set.runs[3].reason == "no pairwise score");
  CHECK(set.runs[2].result.seed == 3);
  CHECK(set.runs[1].result.shown("model.position").value() == "gone");
  CHECK(set.runs[0].result.config.at("model.position") == "z");  // the result's own, not the plan's
  CHECK(set.warnings.empty());
}

TEST_CASE("load runs: what cannot be used is named") {
  TemporaryFolder folder;
  put(folder / "good", result("good"));
  fs::create_directories(folder / "bad");
  std::ofstream(folder / "bad/result.json") << "{\"format\": 1";
  fs::create_directories(folder / "stray");
  std::ofstream(folder / "stray/config.toml") << 1;
  fs::create_directories(folder / "plan");
  std::ofstream(folder / "plan/sweep.json") << "[]";
  put(folder / "twice", result("good"));
  RunResult other = result("good");
  other.steps = 7;
  put(folder / "twice2", other);
  fs::create_directory_symlink(folder.path(), folder / "loop");
  const RunSet set = load_runs({folder.path()});
  CHECK(ids(set) == "good:finished");
  REQUIRE(set.warnings.size() == 4);
  CHECK(has(set.warnings[0], "plan/sweep.json: expected an object"));
  CHECK(has(set.warnings[1], "bad/result.json: no JSON"));
  CHECK(has(set.warnings[2], "run good finished twice with different results"));
  CHECK(has(set.warnings[3], "stray: no result.json"));
}

TEST_CASE("load runs: a finished copy wins over an unfinished one") {
  TemporaryFolder folder;
  put(folder / "1", result("a", RunStatus::interrupted));
  put(folder / "2", result("a"));
  put(folder / "3", result("a", RunStatus::failed));
  const RunSet set = load_runs({folder.path()});
  CHECK(ids(set) == "a:finished");
  CHECK(set.runs[0].folder == (folder / "2"));
}
