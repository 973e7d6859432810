// waymark data on a small text.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"

using waymark::test::has;
using waymark::test::run_waymark;

TEST_CASE("waymark data shows, counts and checks a task") {
  waymark::test::TemporaryFolder folder;
  std::ofstream file(folder / "a.txt");
  for (int i = 0; i < 400; ++i) file << "line " << i * 7919 % 1000 << " of a text, no two alike.\n";
  file.close();
  const std::string task = "char-mlm(path=\"" + (folder / "a.txt").string() + "\", context=32, test_lengths=[64])";

  CHECK(has(run_waymark({"data", "list"}).out, "char-mlm"));
  const auto info = run_waymark({"data", "info", task});
  CHECK(info.code == 0);
  CHECK(has(info.out, "test@64"));
  CHECK(has(info.out, "fingerprint"));
  const auto show = run_waymark({"data", "show", task, "--split", "val", "--item", "1"});
  CHECK(show.code == 0);
  CHECK(show.out == run_waymark({"data", "show", task, "--split", "val", "--item", "1"}).out);
  CHECK(show.out != run_waymark({"data", "show", task, "--split", "val", "--item", "2"}).out);
  CHECK(show.out != run_waymark({"data", "show", task, "--split", "val", "--item", "1", "--set", "data.seed=1"}).out);
  const auto stats = run_waymark({"data", "stats", task});
  CHECK(stats.code == 0);
  CHECK(has(stats.out, "baseline"));
  CHECK(has(stats.out, "per item least 32, median 32"));
  const auto check = run_waymark({"data", "check", task});
  CHECK(check.code == 0);
  CHECK(has(check.out, "val: fingerprint: ok"));

  CHECK(run_waymark({"data", "show", task, "--split", "vla"}).code == 2);
  CHECK(has(run_waymark({"data", "show", task, "--split", "vla"}).err, "Did you mean val?"));
  CHECK(has(run_waymark({"data", "show", task, "--split", "val", "--item", "999999"}).err, "has the items 0 to"));
  const auto missing = run_waymark({"data", "info", "char-mlm(path=\"" + (folder / "none.txt").string() + "\")"});
  CHECK(missing.code == 2);
  CHECK(missing.out.empty());
}
