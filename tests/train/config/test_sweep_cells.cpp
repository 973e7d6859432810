// Cells of a sweep: order, seeds, cases, exclusion, refusals, and all problems before anything runs.
#include <doctest/doctest.h>

#include "tests/train/config/fixture.h"
#include "train/config/sweep_cells.h"

using namespace waymark;
using namespace waymark::train;

namespace {

struct Expanded {
  SweepCells cells;
  Problems problems;
  // "position/attention/seed" of each cell, "!" before a refused one.
  std::string text() const {
    std::string out;
    for (const SweepCell& cell : cells.cells)
      out += fmt::format("{}{}/{}/{};", cell.refused.empty() ? "" : "!", cell.config.short_form("model.position"),
                         cell.config.short_form("model.attention"), cell.config.integer("seed"));
    return out;
  }
};

Expanded expand(const std::string& toml, const std::vector<std::string>& settings = {}, const std::string& seeds = "",
                bool strict = false) {
  Expanded e;
  std::vector<Source> files{read_toml_text(toml, "a.toml", e.problems)};
  std::vector<Override> overrides;
  for (const std::string& setting : settings) {
    Override o;
    if (split_setting(setting, "--set", o, e.problems)) overrides.push_back(o);
  }
  e.cells = expand_sweep(files, overrides, seeds, strict, e.problems, test::small_registries());
  return e;
}
std::string cells_of(const std::string& toml, const std::vector<std::string>& settings = {},
                     const std::string& seeds = "") {
  const Expanded e = expand(toml, settings, seeds);
  for (const Problem& p : e.problems) FAIL_CHECK(p.origin << "|" << p.text);
  return e.text();
}
std::string problem_of(const std::string& toml, const std::vector<std::string>& settings = {},
                       const std::string& seeds = "") {
  const Expanded e = expand(toml, settings, seeds);
  REQUIRE(e.problems.size() == 1);
  CHECK(e.cells.cells.empty());
  return e.problems[0].origin + "|" + e.problems[0].text;
}

const std::string kTask = "task = 'toy'\n";

}  // namespace

TEST_CASE("values of --set are separated by commas outside brackets and quotes") {
  CHECK(cells_of(kTask, {"model.position=none,huang-m4(clip=3, beyond=zero),\"[rope]*1, none\""}) ==
        "none/dense/0;huang-m4(clip=3, beyond=zero)/dense/0;rope, none/dense/0;");
  CHECK(cells_of(kTask, {"model.position=rope"}) == "rope/dense/0;");
  CHECK(cells_of(kTask, {"optim.no_decay=['a','b']"}) == "none/dense/0;");
}

TEST_CASE("the first axis is outermost, seeds vary fastest") {
  CHECK(cells_of(kTask, {"model.position=none,rope", "model.attention=dense,local(window=2)"}, "1..2") ==
        "none/dense/1;none/dense/2;none/local(window=2)/1;none/local(window=2)/2;"
        "rope/dense/1;rope/dense/2;!rope/local(window=2)/1;!rope/local(window=2)/2;");
  CHECK(cells_of(kTask + "[sweep]\nseeds = [3, 1]\n[sweep.grid]\n'model.position' = ['rope', 'none']\n") ==
        "rope/dense/3;rope/dense/1;none/dense/3;none/dense/1;");
  CHECK(cells_of(kTask + "[sweep]\nseeds = '0..1'\n", {}, "5,7..8") == "none/dense/5;none/dense/7;none/dense/8;");
  CHECK(cells_of(kTask + "[sweep]\nseeds = '0..1'\n", {"seed=4"}) == "none/dense/4;");
}

TEST_CASE("a later source replaces an axis") {
  const std::string grid = kTask + "[sweep.grid]\n'model.position' = ['rope', 'none']\n";
  CHECK(cells_of(grid, {"model.position=learned"}) == "learned(max_len=32)/dense/0;");
  CHECK(cells_of(grid, {"model.position=learned,rope"}) == "learned(max_len=32)/dense/0;rope/dense/0;");
}

TEST_CASE("zipped lists change together; cases stand beside the grid; globs exclude") {
  CHECK(
      cells_of(kTask +
               "[sweep.zip]\nmodel.position = ['none', 'learned']\nmodel.attention = ['dense', 'local(window=2)']\n") ==
      "none/dense/0;learned(max_len=32)/local(window=2)/0;");
  CHECK(cells_of(kTask +
                 "[sweep.grid]\nmodel.position = ['none', 'rope']\n[[sweep.case]]\nmodel.position = 'huang-m4'\n"
                 "[[sweep.case]]\nmodel.position = 'rope'\n") == "none/dense/0;rope/dense/0;huang-m4/dense/0;");
  const Expanded e = expand(kTask +
                            "[sweep.grid]\nmodel.position = ['none', 'rope', 'huang-m4']\n"
                            "model.attention = ['dense', 'local(window=2)', 'local(window=3)']\n"
                            "[[sweep.exclude]]\nmodel.position = 'r*'\nmodel.attention = 'local*'\n"
                            "[[sweep.exclude]]\nmodel.attention = '*window=3*'\n");
  CHECK(e.problems.empty());
  CHECK(e.cells.excluded == 4);
  CHECK(e.text() == "none/dense/0;none/local(window=2)/0;rope/dense/0;huang-m4/dense/0;huang-m4/local(window=2)/0;");
}

TEST_CASE("refused cells are listed with their reason; strict makes them problems") {
  const std::vector<std::string> settings{"model.position=rope", "model.attention=dense,local(window=2)"};
  const Expanded e = expand(kTask, settings, "0..1");
  CHECK(e.problems.empty());
  REQUIRE(e.cells.cells.size() == 4);
  CHECK(e.cells.cells[2].refused == "rope cannot run on local: a test rule");
  const Expanded strict = expand(kTask, settings, "0..1", true);
  REQUIRE(strict.problems.size() == 1);  // two seeds, one text
  CHECK(strict.problems[0].text == "rope cannot run on local: a test rule");
}

TEST_CASE("every cell is checked: a planted bad last cell stops everything") {
  CHECK(problem_of(kTask, {"model.embed_dim=64,32,100", "model.num_heads=8"}) ==
        "--set|model.embed_dim = 100 is not divisible by model.num_heads = 8");
  const Expanded e =
      expand(kTask + "seeed = 1\n", {"model.position=roep,rope,huang-m4(clop=1)", "model.norm=pre,past"});
  CHECK(e.problems.size() == 4);  // each once, though it is met in several cells
}

TEST_CASE("mistakes in the sweep itself") {
  CHECK(problem_of(kTask, {}, "4..1") == "--seeds|seeds = 4..1: must be like 0..4 or 0,3,7");
  CHECK(problem_of(kTask, {}, "-1") == "--seeds|seeds = -1: must be like 0..4 or 0,3,7");
  CHECK(problem_of(kTask, {}, "1,1") == "--seeds|the seed 1 is given twice");
  CHECK(problem_of(kTask, {}, "0..99999999999") == "--seeds|seeds = 0..99999999999: must be like 0..4 or 0,3,7");
  CHECK(problem_of(kTask, {"seed=1"}, "0..1") == "--set|the seed is given twice, by --seeds and by --set");
  CHECK(problem_of(kTask, {"seed=1,2"}) == "--set|several seeds are given by --seeds");
  CHECK(problem_of(kTask, {"model.position=none,,rope"}) == "--set|model.position = none,,rope: a value is empty");
  CHECK(problem_of(kTask, {"model.position=none,rope", "model.position=none"}) ==
        "--set|model.position is given twice, by --set and by --set");
  CHECK(problem_of(kTask + "[sweep]\nseeds = 3\n").find("sweep.seeds must be text") != std::string::npos);
  CHECK(problem_of(kTask + "[sweep]\nseed = 3\n") ==
        "a.toml:3|sweep.seed: unknown key. Did you mean sweep.seeds or sweep.grid?");
  CHECK(problem_of(kTask + "[sweep.grid]\nmodel.position = 'rope'\n") ==
        "a.toml:3|sweep.grid.model.position must be a list of values");
  CHECK(problem_of(kTask + "[sweep.zip]\nmodel.position = ['rope']\nmodel.norm = ['pre', 'post']\n")
            .find("has 2 values, but model.position has 1") != std::string::npos);
  CHECK(problem_of(kTask, {"model.embed_dim=" +
                               [] {
                                 std::string list = "1";
                                 for (int i = 2; i <= 400; ++i) list += "," + std::to_string(i);
                                 return list;
                               }(),
                           "model.ffn_dim=" +
                               [] {
                                 std::string list = "1";
                                 for (int i = 2; i <= 400; ++i) list += "," + std::to_string(i);
                                 return list;
                               }()}) == "|the sweep has more than 100000 cells");
  CHECK(expand(kTask + "[[sweep.exclude]]\nmodel.positoin = 'x'\n").problems[0].text ==
        "sweep.exclude: unknown key model.positoin. Did you mean model.position?");
}
