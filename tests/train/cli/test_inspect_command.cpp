// waymark inspect on a run of a few steps.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "core/io/npz.h"
#include "tests/error_text.h"
#include "tests/train/cli/program.h"
#include "tests/train/cli/small_run.h"

namespace fs = std::filesystem;
using waymark::test::has;
using waymark::test::run_waymark;

TEST_CASE("waymark inspect writes a page, drawings and arrays; wrong requests change nothing") {
  waymark::test::SmallRun run;
  auto words = run.words("train");
  const std::string folder = (run / "a").string();
  for (const char* word : {"--steps", "3", "--out", folder.c_str(), "--quiet"}) words.emplace_back(word);
  REQUIRE(run_waymark(words).code == 0);

  const auto made = run_waymark({"inspect", folder, "--item", "1", "--items", "4"});
  CAPTURE(made.err);
  CHECK(made.code == 0);
  const fs::path out = fs::path(folder) / "inspect";
  CHECK(made.out == (out / "index.html").string() + "\n");
  std::ifstream file(out / "index.html");
  std::stringstream page;
  page << file.rdbuf();
  CHECK(has(page.str(), "item 1 of test"));
  CHECK(has(page.str(), "items 1 to 4 of test"));
  CHECK(has(page.str(), "waymark inspect"));
  size_t drawings = 0;
  for (const auto& entry : fs::directory_iterator(out / "svg")) drawings += entry.path().extension() == ".svg";
  CHECK(drawings >= 6);
  const waymark::Npz arrays = waymark::load_npz(out / "position" / "0.npz");
  CHECK(arrays.info("weights").shape == waymark::Shape{2, 16, 16});
  CHECK(arrays.contains("score_q_table_mean"));
  CHECK(arrays.contains("table"));

  SUBCASE("a damaged config is called so, whatever is left of it") {
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "checkpoints"))
      if (entry.is_directory()) fs::resize_file(entry.path() / "config.toml", 40);
    for (const char* command : {"inspect", "eval"}) {
      const auto damaged = run_waymark({command, folder, command == std::string("inspect") ? "--force" : "--quiet"});
      CAPTURE(damaged.err);
      CHECK(damaged.code == 1);
      CHECK(has(damaged.err, "config.toml: damaged: its bytes are not those that were written"));
    }
  }
  SUBCASE("a folder that is not empty") {
    const auto again = run_waymark({"inspect", folder});
    CHECK(again.code == 2);
    CHECK(has(again.err, "is not empty; --force writes into it"));
    fs::rename(out / "svg" / "0-norm.svg", out / "svg" / "9-old.svg");
    std::ofstream(out / "mine.txt") << "kept";
    CHECK(run_waymark({"inspect", folder, "--force", "--quiet"}).code == 0);
    CHECK_FALSE(fs::exists(out / "svg" / "9-old.svg"));  // of the inspection before
    CHECK(fs::exists(out / "svg" / "0-norm.svg"));
    CHECK(fs::exists(out / "mine.txt"));
  }
  SUBCASE("an own text, and a checkpoint's folder") {
    fs::path checkpoint;
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "checkpoints"))
      if (entry.is_directory()) checkpoint = entry.path();
    const std::string look = (run / "look").string();
    const auto text = run_waymark({"inspect", checkpoint.string(), "--input", "in the begin_ing", "--out", look});
    CAPTURE(text.err);
    CHECK(text.code == 0);
    CHECK(waymark::load_npz(fs::path(look) / "position" / "0.npz").info("weights").shape == waymark::Shape{2, 16, 16});
    CHECK(waymark::load_npz(fs::path(look) / "position" / "0.npz").get("queries").to_vector<waymark::i64>()[0] == 16);
    const auto wrong = run_waymark({"inspect", folder, "--input", "Z\xC3\x9F", "--out", (run / "none").string()});
    CHECK(wrong.code == 2);
    CHECK_FALSE(fs::exists(run / "none"));
  }
  SUBCASE("wrong requests") {
    const auto several = run_waymark({"inspect", folder, "--which", "lst", "--item", "-1", "--items", "0"});
    CHECK(several.code == 2);
    CHECK(has(several.err, "3 problems"));
    CHECK(has(run_waymark({"inspect", folder, "--split", "tset", "--force"}).err, "Did you mean test?"));
    CHECK(has(run_waymark({"inspect", folder, "--item", "99999", "--force"}).err, "has the items 0 to"));
    CHECK(has(run_waymark({"inspect", folder, "--input", "a", "--item", "1"}).err, "--input says what is looked at"));
    CHECK(run_waymark({"inspect", (run / "nothing").string()}).code == 2);
    CHECK(run_waymark({"inspect"}).code == 2);
    CHECK(run_waymark({"inspect", folder, "--out", run.text()}).code == 2);
  }
}
