// Sweeps: what is done, what is passed over, what is counted.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/temporary_folder.h"
#include "train/report/result.h"
#include "train/sweep/sweep.h"
#include "train/trainer/run_folder.h"

using namespace waymark;
using namespace waymark::train;

namespace {

class Fixture {
 public:
  Fixture() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "the quick brown fox jumps over the lazy dog " << i % 7 << '\n';
  }
  SweepCell cell(const std::string& position, int seed, const std::string& path = "text.txt") const {
    return {make_config({{"task", fmt::format("char-mlm(source=file, path=\"{}\", context=16)", (folder / path).string())},
                         {"model.position", position}, {"model.embed_dim", "16"}, {"model.num_heads", "2"},
                         {"model.num_layers", "1"}, {"train.steps", "4"}, {"train.batch_size", "4"},
                         {"train.eval_batches", "1"}, {"seed", fmt::to_string(seed)}}), ""};
  }
  SweepOptions options() {
    SweepOptions o;
    o.out = folder / "sweep";
    o.jobs = 2;
    o.program = WAYMARK_PROGRAM;
    o.line = [this](const std::string& text) { lines.push_back(text); };
    return o;
  }
  i64 started() const {
    return std::count_if(lines.begin(), lines.end(), [](const std::string& l) { return l.find("start") != std::string::npos; });
  }
  test::TemporaryFolder folder;
  std::vector<std::string> lines;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a sweep runs every cell once; called again it does nothing") {
  SweepCells cells;
  for (const char* position : {"none", "rope"})
    for (int seed : {0, 1}) cells.cells.push_back(cell(position, seed));
  SweepCell refused = cell("none", 7);
  refused.refused = "for the test";
  cells.cells.push_back(refused);
  CHECK(preview_sweep(cells, options()).to_do == 4);
  const SweepOutcome first = run_sweep(cells, options());
  CHECK(first.planned == 5);
  CHECK(first.finished == 4);
  CHECK(first.refused == 1);
  CHECK(first.complete());
  CHECK(started() == 4);
  const SweepPlan plan = load_plan(folder / "sweep" / "sweep.json");
  REQUIRE(plan.runs.size() == 5);
  CHECK(plan.runs[0].state == "finished");
  CHECK(plan.runs[4].state == "refused");
  CHECK(load_result(folder / "sweep" / plan.runs[0].folder / "result.json").id == cells.cells[0].config.id());
  lines.clear();
  const SweepOutcome second = run_sweep(cells, options());
  CHECK(second.skipped == 4);
  CHECK(second.complete());
  CHECK(started() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a failed run does not stop the others, is left alone, and is done again when asked for") {
  SweepCells cells;
  cells.cells = {cell("none", 0, "missing.txt"), cell("none", 1)};
  const SweepOutcome outcome = run_sweep(cells, options());
  CHECK(outcome.finished == 1);
  CHECK(outcome.failed == 1);
  CHECK(!outcome.complete());
  CHECK(!outcome.plan.runs[0].reason.empty());
  std::ofstream(folder / "missing.txt") << std::string(4000, 'a') + std::string(4000, 'b');
  SweepOptions again = options();
  again.rerun = Rerun::failed;
  CHECK(run_sweep(cells, again).complete());
}

TEST_CASE_FIXTURE(Fixture, "a stopped sweep starts nothing new and says so") {
  SweepCells cells;
  for (int seed = 0; seed < 3; ++seed) cells.cells.push_back(cell("none", seed));
  std::atomic<int> stop{2};  // SIGINT came before anything started
  SweepOptions o = options();
  o.stop = &stop;
  const SweepOutcome outcome = run_sweep(cells, o);
  CHECK(outcome.stopped);
  CHECK(outcome.interrupted == 3);
  CHECK(started() == 0);
}

TEST_CASE_FIXTURE(Fixture, "a name in the config does not put all runs into one folder") {
  SweepCells cells;
  for (int seed : {0, 1}) {
    SweepCell c = cell("none", seed);
    c.config = make_config({{"name", "same"}}, {[&] {
                             const auto path = folder / fmt::format("{}.toml", seed);
                             std::ofstream(path) << c.config.to_toml();
                             return path.string();
                           }()});
    cells.cells.push_back(c);
  }
  const SweepOutcome outcome = run_sweep(cells, options());
  CHECK(outcome.finished == 2);
  CHECK(outcome.plan.runs[0].name == outcome.plan.runs[1].name);
  CHECK(outcome.plan.runs[0].folder != outcome.plan.runs[1].folder);
}

// Two sweeps over one folder share runs by id.
TEST_CASE_FIXTURE(Fixture, "a run that another process works on is waited for, and done if that leaves it") {
  SweepCells cells;
  cells.cells = {cell("none", 0), cell("none", 1)};
  const auto held = folder / "sweep" / cells.cells[0].config.name();
  std::filesystem::create_directories(held);
  auto lock = std::make_unique<RunLock>(held);
  SweepOptions o = options();
  CHECK(preview_sweep(cells, o).to_do == 1);
  o.line = [&](const std::string& text) {
    lines.push_back(text);
    if (text.find("finished " + cells.cells[1].config.name()) != std::string::npos) lock.reset();
  };
  const SweepOutcome outcome = run_sweep(cells, o);
  CHECK(outcome.finished == 2);
  CHECK(started() == 2);
  REQUIRE(!lines.empty());
  CHECK(lines.back().find(cells.cells[0].config.name()) != std::string::npos);
}
