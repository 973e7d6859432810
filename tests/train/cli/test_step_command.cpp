// waymark step as a user runs it: a pipe, a script, a narrow screen, wrong requests.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/tensor/types.h"
#include "tests/error_text.h"
#include "tests/train/cli/program.h"
#include "tests/train/cli/small_run.h"

using waymark::i64;
using waymark::test::has;
using waymark::test::run_waymark;
namespace fs = std::filesystem;

namespace {

struct PipedRun : waymark::test::SmallRun {
  // The program with these lines on stdin.
  waymark::test::Outcome pipe(const std::string& lines, std::vector<std::string> more = {}, const char* columns = "80") const {
    const std::string file = (*this / "stdin.txt").string();
    std::ofstream(file) << lines;
    std::vector<std::string> all = words("step");
    all.insert(all.end(), more.begin(), more.end());
    return run_waymark(all, "", [&] {
      const int in = ::open(file.c_str(), O_RDONLY);
      ::dup2(in, 0);
      ::setenv("COLUMNS", columns, 1);
      ::unsetenv("NO_COLOR");
    });
  }
};

}  // namespace

TEST_CASE("step: through a pipe, plain text, nothing written") {
  const PipedRun folder;
  const auto r = folder.pipe("step\nuntil masked_softmax\nstep\ncheck\nback\n\nwhy head.weight\nprnt\nquit\n");
  INFO(r.err);
  CHECK(r.code == 0);
  for (const char* part : {"step 0: 4 items, 64 tokens, ", "loss ", " nodes   ", " saved   ", " parameters in ", "next: ", "1/",
                           "masked_softmax #", "encoder.layers.0.attention", "check  passed", "100 %  linear #",
                           "unknown command prnt. Did you mean print?"})
    CHECK_MESSAGE(has(r.out, part), part);
  CHECK(!has(r.out, "\x1b"));
  CHECK(!fs::exists("runs"));
  // As narrow as 60 columns: no line that has a blank to break at is longer.
  const auto narrow = folder.pipe("step 3\nnext\nuntil masked_softmax\ncard\n", {}, "60");
  std::istringstream lines(narrow.out);
  for (std::string line; std::getline(lines, line);) {
    i64 columns = 0;
    for (char c : line) columns += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
    CAPTURE(line);
    CHECK((columns <= 60 || line.find(' ', 12) == std::string::npos));
  }
  // End of input without quit is fine, too.
  CHECK(folder.pipe("step\n").code == 0);
  CHECK(folder.pipe("").code == 0);
}

TEST_CASE("step: a script fails at the first expectation that does not hold") {
  const PipedRun folder;
  std::ofstream(folder / "good.txt") << "# walk\nuntil head.weight\nexpect op == linear\nexpect norm(grad(head.weight)) > 0\n";
  std::ofstream(folder / "bad.txt") << "step\nexpect op == softmax\nend\n";
  CHECK(folder.pipe("", {"--script", (folder / "good.txt").string()}).code == 0);
  const auto bad = folder.pipe("", {"--script", (folder / "bad.txt").string()});
  CHECK(bad.code == 1);
  CHECK(has(bad.out, "which is not == softmax"));
  CHECK(!has(bad.out, "the end"));
  CHECK(folder.pipe("", {"--script", "/no/such/file"}).code == 2);
}

TEST_CASE("step: the weights and the batch of a checkpoint") {
  const PipedRun folder;
  std::vector<std::string> train = folder.words("train");
  train.insert(train.end(), {"--steps", "3", "--out", (folder / "a").string(), "--progress", "none"});
  const auto trained = run_waymark(train);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto loss_of = [](const std::string& out) { return out.substr(out.find("loss "), 16); };
  const auto first = folder.pipe("quit\n"), second = folder.pipe("quit\n");
  CHECK(loss_of(first.out) == loss_of(second.out));
  const auto later = folder.pipe("quit\n", {"--from", (folder / "a").string()});
  INFO(later.err);
  CHECK(later.code == 0);
  CHECK(has(later.out, "step 3: "));
  CHECK(loss_of(later.out) != loss_of(first.out));
  // The checkpoint knows the config.
  const auto alone = run_waymark({"step", "--from", (folder / "a").string(), "--batch", "0"});
  CHECK(alone.code == 0);
  CHECK(has(alone.out, "step 0: "));
  CHECK(folder.pipe("", {"--from", (folder / "b").string()}).code == 2);
  CHECK(folder.pipe("", {"--batch", "-1"}).code == 2);
  CHECK(folder.pipe("", {"--set", "model.num_head=3"}).code == 2);
}

TEST_CASE("step: help") {
  const auto r = run_waymark({"help", "step"});
  CHECK(r.code == 0);
  CHECK(has(r.out, "--from CHECKPOINT"));
  CHECK(has(r.out, "finite differences"));
}

TEST_CASE("step: a batch that no training has is a wrong request") {
  const PipedRun folder;
  for (const char* bad : {"9223372036854775807", "4294967296", "-1"}) {
    const auto r = folder.pipe("quit\n", {"--batch", bad});
    INFO(r.err);
    CHECK(r.code == 2);
    CHECK(has(r.err, "--batch"));
    CHECK(has(r.err, "the number of a training step"));
  }
}
