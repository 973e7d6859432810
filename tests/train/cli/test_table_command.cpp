// waymark table on results written by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"
#include "train/report/result.h"

using namespace waymark;
using namespace waymark::train;
using test::run_waymark;

namespace {

void write_run(const std::filesystem::path& folder, const std::string& position, i64 seed, double loss) {
  RunResult r;
  r.id = fmt::format("{:012x}", std::hash<std::string>()(position) % 1000 * 10 + static_cast<size_t>(seed));
  r.name = position;
  r.seed = seed;
  r.steps = 10;
  r.config = {{"task", "toy"}, {"model.position", position}, {"seed", fmt::format("{}", seed)}};
  Evaluation last;
  last.step = 10;
  SplitResult split;
  split.metrics = {{"loss", metric_value("loss", loss, 100)}};
  last.splits = {{"test", split}};
  r.last = last;
  std::filesystem::create_directory(folder / fmt::format("{}-{}", position, seed));
  save_result(folder / fmt::format("{}-{}", position, seed), r);
}

}  // namespace

TEST_CASE("waymark table prints means over seeds, and knows what it was asked") {
  test::TemporaryFolder folder;
  write_run(folder.path(), "rope", 0, 1.5);
  write_run(folder.path(), "rope", 1, 2.5);
  write_run(folder.path(), "none", 0, 3.0);
  const std::string path = folder.path().string();
  const auto table = run_waymark({"table", path, "--metric", "test.loss"});
  CHECK(table.code == 0);
  CHECK(table.out.find("rope") != std::string::npos);
  CHECK(table.out.find("2.0") != std::string::npos);
  const auto csv = run_waymark({"table", path, "--format", "csv", "--filter", "model.position=rope"});
  CHECK(csv.code == 0);
  CHECK(csv.out.find("rope") != std::string::npos);
  CHECK(csv.out.find("none") == std::string::npos);
  const auto metric = run_waymark({"table", path, "--metric", "test.lss"});
  CHECK(metric.code == 2);
  CHECK(metric.out.empty());
  const auto wrong = run_waymark({"table", path, "--rows", "model.positoin", "--from", "first", "--format", "pdf"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("--from    must be best | last, not first") != std::string::npos);
  CHECK(wrong.err.find("--format  must be md | csv | latex | json, not pdf") != std::string::npos);
  CHECK(run_waymark({"table", path, "--rows", "model.positoin"}).err.find("Did you mean model.position?") !=
        std::string::npos);
  CHECK(run_waymark({"table", path + "/nothing"}).code == 2);
  CHECK(run_waymark({"table"}).code == 2);
}
