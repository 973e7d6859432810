// The stepper's commands, as lines in and text out.
#include <doctest/doctest.h>

#include <sstream>

#include "core/engine/layout.h"
#include "core/inspect/counters.h"
#include "core/inspect/recorder.h"
#include "core/inspect/repl.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/tensor/suggest.h"
#include "tests/core/inspect/small_model.h"
#include "tests/error_text.h"

using namespace waymark;
using test::has;
using test::make;

namespace {

struct Session {
  int code = -1;
  std::string out;
};

Session run_lines(BackwardRun& run, const std::string& lines, bool strict = false, bool person = false, int width = 80) {
  Session s;
  auto in = std::make_shared<std::istringstream>(lines);
  inspect::ReplIo io;
  io.read = [in](const std::vector<std::string>&) -> std::optional<std::string> {
    std::string line;
    if (!std::getline(*in, line)) return std::nullopt;
    return line;
  };
  io.write = [&s](std::string_view text) { s.out += text; };
  io.strict = strict;
  io.person = person;
  io.width = width;
  s.code = inspect::repl(run, io);
  return s;
}

// One model, recorded and ready to be walked.
struct Walk : test::SmallModel {
  inspect::Recorder recorder{{.keep = inspect::Keep::values, .max_elements = INT64_MAX}};
  BackwardRun run{loss(), {.rewindable = true}};
  std::string operator()(const std::string& lines, int width = 200) { return run_lines(run, lines, false, false, width).out; }
};

}  // namespace

TEST_CASE("stepper: step, Enter, back, goto, end walk node by node") {
  Walk walk;
  const std::string total = std::to_string(walk.run.total());
  CHECK(has(walk("step\n"), "1/" + total + "  cross_entropy #"));
  CHECK(walk.run.index() == 1);
  walk("\n\n");  // Enter
  CHECK(walk.run.index() == 3);
  const std::string third = walk("card\n");
  walk("step 5\n");
  CHECK(walk.run.index() == 8);
  CHECK(walk("back 5\n") == third);  // exact replay
  CHECK(walk.run.index() == 3);
  walk("goto 10\n");
  CHECK(walk.run.index() == 10);
  walk("goto 3\n");
  CHECK(walk(".\n") == third);
  CHECK(has(walk("goto 0\n"), "next: cross_entropy #"));
  CHECK(has(walk("card\n"), "no node ran yet"));
  CHECK(has(walk("back\n"), "this is the start"));
  CHECK(has(walk("end\n"), "the end: all " + total + " nodes ran; nothing is committed to .grad"));
  CHECK(has(walk("step\n"), "the end: all"));
  for (const Tensor& t : walk.run.leaves()) CHECK(!t.grad().defined());
}

TEST_CASE("stepper: next runs a module, finish leaves one, until finds things") {
  Walk walk;
  walk("until encoder.layers.1.ffn\n");
  CHECK(scope_path(walk.run.next()->scope).starts_with("encoder.layers.1.ffn"));
  const std::string module = scope_path(walk.run.next()->scope);
  walk("next\n");
  CHECK(scope_path(walk.run.next()->scope) != module);
  CHECK(walk.run.current().scope == module);
  walk("until masked_softmax\n");
  CHECK(walk.run.next()->op->name == "masked_softmax");
  walk("step\nfinish\n");
  CHECK(!scope_path(walk.run.next()->scope).starts_with("encoder.layers.1.attention"));
  const i64 here = walk.run.index();
  walk("until masked_softmax\n");
  CHECK(walk.run.next()->op->name == "masked_softmax");
  CHECK(walk.run.index() > here);
  // The end of a tensor's name, if it is the only one: after its last contribution.
  walk("goto 0\nuntil head.weight\n");
  CHECK(walk.run.current().op == "linear");
  walk("until layers.0.attention.position.table\n");
  CHECK(walk.run.current().outgoing.back().to == "encoder.layers.0.attention.position.table");
  walk(fmt::format("goto 0\nuntil #{}\n", walk.run.nodes()[4]->seq));
  CHECK(walk.run.index() == 4);
  walk("goto 0\nuntil leaf\n");
  CHECK(walk.run.current().outgoing.back().is_leaf());
  CHECK(has(walk("until softmx\n"), "nothing in this run is called softmx"));
  CHECK(has(walk("until layer_nrm\n"), "Did you mean layer_norm?"));
  CHECK(has(walk("until position.table\n"), "position.table fits 2 tensors"));
  CHECK(has(walk("until norm>x\n"), "a number is expected"));
}

TEST_CASE("stepper: the card and its parts") {
  Walk walk;
  walk("until masked_softmax\nstep\n");
  const std::string card = walk("card\n");
  for (const char* part : {"masked_softmax #", "encoder.layers.1.attention", ".cpp:", "dx = s·y ⊙ (g − Σ g⊙y)", "dim=3", "  input  ",
                           "  output ", "  in     g [2, 2, 4, 4] f32", "1 contribution: matmul #", "  saved  output [",
                           "shared with matmul #", "of the run's", "  out    ", "gain ", "arrived 1 of 1", "  check  not run"})
    CHECK_MESSAGE(has(card, part), part);
  CHECK(has(walk("in\n"), "  in     g [2, 2, 4, 4] f32"));
  CHECK(has(walk("out\n"), "arrived 1 of 1"));
  CHECK(has(walk("saved\n"), "saved  output [2, 2, 4, 4] f32"));
  CHECK(walk("hooks\n") == "  hooks  none\n");
  const std::string checked = walk("check\ncard\n");
  CHECK(has(checked, "check  passed: "));
  CHECK(checked.rfind("check  passed: ") > checked.find("masked_softmax #"));  // on the card, too
  // The sum of two contributions: shares add up.
  walk("goto 0\nuntil embedding\nstep\n");
  const std::string sum = walk("in\n");
  CHECK(has(sum, "contributions:"));
  CHECK(has(sum, "cosine"));
}

TEST_CASE("stepper: nothing is wider than the terminal") {
  test::SmallModel m;
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  BackwardRun run(m.loss(), {.rewindable = true});
  std::string script;
  for (i64 i = 0; i < run.total(); ++i) script += "step\n";
  script += "why token_embedding.weight\ntree\nbytes\ngoto 9\ncheck\nnext\nhelp\nhelp print\nhelp until\n";
  std::istringstream lines(run_lines(run, script, false, false, 60).out);
  std::string line, longest;
  int widest = 0;
  while (std::getline(lines, line))
    if (columns_of(line) > widest && line.find(' ', 12) != std::string::npos) {
      widest = columns_of(line);
      longest = line;
    }
  CAPTURE(longest);
  CHECK(widest <= 60);
}

TEST_CASE("stepper: print, stats and what is not computed yet") {
  Walk walk;
  CHECK(walk("print grad(head.weight)\n") == "grad(head.weight): - (not computed yet)\n");
  CHECK(walk("why head.weight\n") == "grad(head.weight): - (nothing arrived yet)\n");
  CHECK(has(walk("print head.bias\n"), "tensor(["));
  walk("until head.weight\n");
  const inspect::TraceTensor t = walk.recorder.trace().tensor("head.weight");
  const Tensor exact = t.gradient().value;
  CHECK(has(walk("print grad(head.weight)[0, 1:3]\n"), "[2] f32"));
  CHECK(has(walk("stats grad(head.weight)\n"), fmt::format("norm {:.6g}", stats_of(exact).norm)));
  CHECK(has(walk("why head.weight\n"), "100 %  linear #"));
  CHECK(has(walk("print g[0]\n"), "tensor("));
  CHECK(has(walk(fmt::format("stats head.weight<-#{}\n", walk.run.current().seq)), "norm"));
  CHECK(has(walk("print nothing\n"), "there is no tensor nothing"));
  CHECK(has(walk("print head.weigt\n"), "Did you mean head.weight?"));
  CHECK(has(walk("print head.weight[9]\n"), "index"));
  CHECK(has(walk("print head.weight[x]\n"), "an index is a number, a slice as 1:3, or ..., not x"));
}

TEST_CASE("C47: the bytes table adds up to counters().bytes_saved") {
  const i64 before = inspect::counters().bytes_saved;
  Walk walk;
  const std::string text = walk("bytes\n");
  const i64 kept = inspect::counters().bytes_saved - before;
  CHECK(kept > 0);
  CHECK(has(text, fmt::format("{}  in all, each memory once", bytes_text(kept))));
  CHECK(has(inspect::run_summary(walk.run), bytes_text(kept) + " saved"));
}

TEST_CASE("stepper: tree counts nodes and gradients by module") {
  Walk walk;
  const std::string start = walk("tree 1\n");
  CHECK(has(start, fmt::format("(all)       {:>10}", fmt::format("0/{}", walk.run.total())).substr(0, 5)));
  CHECK(has(start, fmt::format("0/{}", walk.run.total())));
  CHECK(has(walk("end\ntree 4\n"), "attention"));
}

TEST_CASE("stepper: check all finds the wrong rule") {
  Walk walk;
  walk("step 3\n");
  const std::string text = walk("check all\n");
  CHECK(has(text, " nodes passed, 0 failed"));
  CHECK(has(text, "largest error  "));
  CHECK(walk.run.index() == 3);  // where it was
  CHECK(has(walk("check everything\n"), "check stands alone"));
}

TEST_CASE("stepper: an unknown word in an expectation is an error, not a text") {
  Walk walk;
  walk("step\n");
  const auto told = [&](const std::string& line, const std::string& part) {
    const Session s = run_lines(walk.run, line + "\n", true);
    CHECK_MESSAGE(s.code == 1, line);
    CHECK_MESSAGE(has(s.out, part), line << ": " << s.out);
  };
  told("expect chek != failed", "chek is nothing that is known here");
  told("expect chek != failed", "Did you mean check?");
  told("expect failed == failed", "failed is nothing that is known here");
  told("expect check != faild", "check is never faild; it is one of passed, failed, not run, not possible");
  told("expect op != sofmax", "no op is called sofmax. Did you mean softmax");
  told("expect crossentropy == op", "no op is called crossentropy");
  told("expect scope != nowhere", "no scope is called nowhere");
  told("expect nrm(g) < 1", "there is no nrm(T); there are norm, min");
  told("expect stp == 1", "stp is nothing that is known here");
  told("expect norm(g) != nan", "nothing compares with nan");
  CHECK(run_lines(walk.run, "expect op != softmax\nexpect cross_entropy == op\nexpect 1 == step\nexpect check != failed\n", true).code == 0);
}

TEST_CASE("stepper: until what cannot come up says so") {
  Walk walk;
  CHECK(has(walk("until norm>nan\n"), "nothing is above NaN"));
  CHECK(has(walk("until gain>nan\n"), "nothing is above NaN"));
  CHECK(has(walk("until #99999999\n"), "no node of this run is #99999999; they are numbered from #"));
  for (const char* bad : {"#", "#-1", "#1.5", "#x", "#99999999999999999999999"})
    CHECK_MESSAGE(has(walk(std::string("until ") + bad + "\n"), "# is followed by the number of a node"), std::string(bad));
  CHECK(has(walk("until nowhere.cpp:12\n"), "no node of this run comes from nowhere.cpp:12"));
}

TEST_CASE("stepper: expectations, errors and exit codes") {
  Walk walk;
  const auto outcome = [&](const std::string& lines, bool strict, bool person = false) { return run_lines(walk.run, lines, strict, person); };
  CHECK(outcome("step\nexpect op == cross_entropy\nexpect step == 1\nexpect check == not run\n", true).code == 0);
  const Session failed = outcome("expect norm(g) > 1e9\nstep\n", true);
  CHECK(failed.code == 1);
  CHECK(has(failed.out, "expect: norm(g) is "));
  CHECK(walk.run.index() == 1);  // it stopped there
  CHECK(outcome("expect op == softmax\n", false).code == 1);           // through a pipe as well
  CHECK(outcome("expect op == softmax\nquit\n", false, true).code == 0);  // a person may go on
  CHECK(outcome("expect norm(grad(token_embedding.weight)) < 1\n", true).code == 1);  // not computed is no number
  CHECK(outcome("expect scope < 3\n", true).code == 1);
  CHECK(outcome("expect step=1\n", true).code == 1);
  CHECK(outcome("# a comment\n\n  expect step == 1  \n", true).code == 0);
  CHECK(outcome("stpe\n", true).code == 1);
  const Session typo = outcome("stpe\nquit now\n", false);
  CHECK(typo.code == 0);
  CHECK(has(typo.out, "unknown command stpe. Did you mean step?"));
  CHECK(has(typo.out, "quit takes no argument, got now"));
  CHECK(outcome("", false).code == 0);  // Ctrl-D
  CHECK(walk.run.index() == 1);
  CHECK(outcome("quit\nstep\n", false).code == 0);
  CHECK(walk.run.index() == 1);
}

TEST_CASE("stepper: help lists what there is, and nothing else") {
  Walk walk;
  const std::string help = walk("help\n");
  for (const char* command : {"step", "back", "next", "finish", "until", "goto", "end", "card", "in", "out", "saved", "hooks", "print",
                              "stats", "why", "tree", "check", "bytes", "expect", "help", "quit"}) {
    CHECK_MESSAGE(has(help, fmt::format("\n  {}", command)) != help.starts_with(fmt::format("  {}", command)), command);
    CHECK(!has(walk(fmt::format("help {}\n", command)), "there is no command"));
  }
  for (const char* missing : {"twin", "heat", "page", "dot ", "  forward"}) CHECK_MESSAGE(!has(help, missing), missing);
  CHECK(has(walk("help stpe\n"), "Did you mean step?"));
}

TEST_CASE("stepper: a program's own run, without a recorder and not rewindable") {
  Tensor x = make<double>({2}, {1, 2});
  x.requires_grad_();
  set_name(x, "x");
  BackwardRun run(x.exp().sum());
  const Session s = run_lines(run, "step\nstep\nprint grad(x)\ncheck\nback\n");
  CHECK(s.code == 0);
  CHECK(has(s.out, "2.7183"));
  CHECK(has(s.out, "check  not possible: the forward pass was not recorded"));
  CHECK(has(s.out, "construct it with rewindable = true"));
}
