#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "tests/test_level.h"
#include "tests/train/trainer/fixture.h"
#include "train/trainer/run_folder.h"
#include "train/trainer/state.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

TrainState some_state(i64 step) {
  TrainState s;
  s.step = step;
  s.cursor = {2, 3};
  s.tokens = 1234;
  s.evaluated = true;
  s.line_loss = 0.1 + 0.2;  // not exact in decimal
  s.mean_loss = std::numeric_limits<double>::infinity();
  SplitResult split;
  split.metrics = {{"accuracy", metric_value("accuracy", 0.5, 10)}, {"loss", metric_value("loss", std::nan(""), 10)}};
  s.best_val = ScoredSplit{step, split};
  s.random.seed = ~u64{0};
  s.random.counts = {{"a.init", u64{1} << 40}};
  s.flops_per_step = 1e9;
  return s;
}
CheckpointContents some_contents(i64 step) {
  CheckpointContents c;
  c.model = {{"w", make<float>({2}, {1, static_cast<double>(step)})}};
  c.optimizer = {{"lr.0", make<double>({}, {0.5})}};
  c.state = some_state(step);
  c.facts = {"0123456789ab", {{"seed", "0"}}, {{"val", "ff"}}, "0.1", "Haswell", {}};
  c.config = "a = 1\n";
  return c;
}
std::vector<std::string> names(const CheckpointStore& store) {
  std::vector<std::string> out;
  for (const auto& n : store.list()) out.push_back(n.name);
  return out;
}

}  // namespace

TEST_CASE("state.json holds every bit") {
  const TrainState s = some_state(7);
  const CheckpointFacts facts{"0123456789ab", {{"seed", "0"}}, {{"val", "ff"}}, "0.1", "Haswell", {{"a", "b"}}};
  const std::string text = state_to_json(s, facts);
  TrainState back;
  CheckpointFacts back_facts;
  state_from_json(text, "state.json", back, back_facts);
  CHECK(state_to_json(back, back_facts) == text);
  CHECK(back.line_loss == s.line_loss);
  CHECK(std::isinf(back.mean_loss));
  CHECK(std::isnan(back.best_val->result.find("loss")->value));
  CHECK(back.random == s.random);
  CHECK(back.cursor == s.cursor);
  const auto problem = [&](const std::string& from, const std::string& to) {
    std::string bad = text;
    bad.replace(bad.find(from), from.size(), to);
    return error_text([&] {
      TrainState t;
      CheckpointFacts f;
      state_from_json(bad, "state.json", t, f);
    });
  };
  CHECK(has(problem("waymark-state-1", "waymark-state-2"), "format"));
  CHECK(has(problem("\"tokens\": 1234", "\"tokens\": \"x\""), "state.json: tokens"));
  CHECK(has(problem("\"tokens\": 1234", "\"tokens\": -1"), "a count is negative"));
  CHECK(has(problem("\"tokens\": 1234", "\"tokns\": 1234"), "tok"));
  CHECK(has(problem("\"inf\"", "\"enough\""), "mean_loss"));
  // A digit that makes another good number is found by the hash alone.
  CHECK(has(problem("\"tokens\": 1234", "\"tokens\": 1235"), "damaged"));
}

TEST_CASE("checkpoints: what is kept, and in which order it is taken") {
  const TemporaryFolder folder;
  CheckpointStore store(folder / "checkpoints");
  CHECK(names(store).empty());
  for (const i64 step : {10, 20, 30}) store.save(CheckpointKind::step, some_contents(step), 10, 1);
  CHECK(names(store) == std::vector<std::string>{"step-00000030", "step-00000010"});
  store.save(CheckpointKind::interrupted, some_contents(35), 10, 1);
  CHECK(names(store)[0] == "interrupted-00000035");
  CHECK(has(read_file(folder / "checkpoints" / "index.json"), "\"interrupted\": \"interrupted-00000035\""));
  // Saved again at the same step: the new contents, and no moment without.
  CheckpointContents again = some_contents(35);
  again.config = "a = 2\n";
  store.save(CheckpointKind::interrupted, again, 10, 1);
  CHECK(load_checkpoint(folder / "checkpoints" / "interrupted-00000035").config == "a = 2\n");
  store.save(CheckpointKind::nonfinite, some_contents(36), 10, 1);
  store.save(CheckpointKind::step, some_contents(40), 40, 2);
  CHECK(names(store) == std::vector<std::string>{"step-00000040", "step-00000030"});
  CHECK(std::filesystem::exists(folder / "checkpoints" / "nonfinite-00000036"));
  CHECK(load_checkpoint(folder / "checkpoints" / "step-00000040").model[0].second.to_vector<double>()[1] == 40);
  store.remove_after(30);
  CHECK(names(store) == std::vector<std::string>{"step-00000030"});
  // Names that are none of ours are left alone.
  std::filesystem::create_directory(folder / "checkpoints" / "step-12");
  std::filesystem::create_directory(folder / "checkpoints" / ".tmp-step-00000050-1");
  CHECK(names(store).size() == 1);
  store.remove_temporary();
  CHECK(!std::filesystem::exists(folder / "checkpoints" / ".tmp-step-00000050-1"));
  CHECK(std::filesystem::exists(folder / "checkpoints" / "step-12"));
}

// R24: a process that is killed while it saves, at many moments, leaves an older or the newer checkpoint, never a
// broken one under a final name.
TEST_CASE("a kill while saving leaves valid checkpoints only") {
  const TemporaryFolder folder;
  CheckpointStore store(folder / "checkpoints");
  store.save(CheckpointKind::step, some_contents(1), std::nullopt, 1);
  const int kills = by_level(5, 12, 60);
  for (int k = 0; k < kills; ++k) {
    const pid_t child = ::fork();
    if (child == 0) {  // saves again and again until it is killed
      try {
        CheckpointStore mine(folder / "checkpoints");
        for (i64 step = 2 + 1000 * k;; ++step) mine.save(CheckpointKind::step, some_contents(step), std::nullopt, 1);
      } catch (...) {
      }
      ::_exit(1);
    }
    ::usleep(static_cast<useconds_t>(3000 + 7919 * k % 40000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto list = store.list();
    REQUIRE(!list.empty());
    for (const CheckpointName& n : list) {
      const CheckpointContents c = load_checkpoint(folder / "checkpoints" / n.name);
      CHECK(c.state.step == n.step);
    }
  }
  store.remove_temporary();
  store.save(CheckpointKind::step, some_contents(1 << 20), std::nullopt, 1);
  CHECK(names(store).size() == 1);
}

TEST_CASE("the lock of a run") {
  const TemporaryFolder folder;
  CHECK(!is_locked(folder.path()));
  {
    const RunLock lock(folder.path());
    CHECK(is_locked(folder.path()));
    const std::string text = error_text([&] { RunLock second(folder.path()); });
    CHECK(has(text, fmt::format("in use by process {}", ::getpid())));
  }
  CHECK(!is_locked(folder.path()));
  CHECK(!std::filesystem::exists(folder / "run.lock"));
  // R25: another process; and one that was killed leaves a lock that is taken over.
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    if (::write(ready[1], "x", 1) == 1) ::pause();
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(has(error_text([&] { RunLock second(folder.path()); }), fmt::format("process {}", child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(std::filesystem::exists(folder / "run.lock"));
  const RunLock taken(folder.path());
}

TEST_CASE("what may be done in a folder") {
  const TemporaryFolder folder;
  const std::string id = "0123456789ab";
  const auto problem = [&](const std::filesystem::path& path, FolderUse use, const std::string& my_id) {
    return error_text([&] { check_folder_use(path, look_at_run_folder(path), my_id, use); });
  };
  const auto path = folder / "run";
  CHECK(problem(path, FolderUse::fresh, id) == "(no error)");
  std::filesystem::create_directory(path);
  CHECK(problem(path, FolderUse::fresh, id) == "(no error)");
  CHECK(has(problem(path, FolderUse::resume, id), "no run to resume"));
  std::ofstream(path / "letter.txt") << "dear diary";
  CHECK(has(problem(path, FolderUse::fresh, id), "is no run's folder"));
  CHECK(problem(path, FolderUse::force, id) == "(no error)");
  clear_run_folder(path);
  CHECK(std::filesystem::exists(path / "letter.txt"));
  CHECK(has(problem(path / "letter.txt", FolderUse::force, id), "is no folder"));
  std::ofstream(path / "config.toml") << "# Resolved config of run 0123456789ab. Repeat it\n";
  CHECK(look_at_run_folder(path).kind == RunFolderState::Kind::unfinished);
  CHECK(has(problem(path, FolderUse::fresh, id), "--resume continues it"));
  CHECK(has(problem(path, FolderUse::fresh, "aaaaaaaaaaaa"), "another run, 0123456789ab"));
  RunResult result;
  result.id = id;
  result.status = RunStatus::finished;
  save_result(path, result);
  CHECK(!check_folder_use(path, look_at_run_folder(path), id, FolderUse::fresh));
  std::ofstream(path / "result.json") << "{";
  CHECK(look_at_run_folder(path).kind == RunFolderState::Kind::unfinished);
}
