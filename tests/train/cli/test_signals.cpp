// Ctrl-C and kill at random moments: a run that was stopped again and again ends as one that never was.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "core/io/files.h"
#include "tests/temporary_folder.h"
#include "tests/test_level.h"
#include "train/report/result.h"
#include "train/sweep/child.h"

using waymark::train::Child;
namespace fs = std::filesystem;

namespace {

struct StoppedRun : waymark::test::TemporaryFolder {
  StoppedRun() {
    std::ofstream text(*this / "text.txt");
    for (int i = 0; i < 300; ++i) text << "and the light shineth in darkness " << i % 9 << '\n';
  }
  std::vector<std::string> command(const std::string& out, bool resume) const {
    std::vector<std::string> words = {
        WAYMARK_PROGRAM, "train", "--task", "char-mlm(source=file, path=\"" + (*this / "text.txt").string() + "\", context=16)",
        "--position", "rope", "--set", "model.embed_dim=16", "--set", "model.num_heads=2", "--set", "model.dropout=0.1",
        "--steps", "120", "--set", "train.batch_size=4", "--set", "train.eval_every=20", "--set", "train.eval_batches=2",
        "--out", (*this / out).string(), "--progress", "none"};
    if (resume) words.emplace_back("--resume");
    return words;
  }
  int wait(Child& child) const {
    for (int i = 0; i < 12000; ++i) {
      if (const auto code = child.poll()) return *code;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }
  // Something to go on from.
  bool has_checkpoint(const std::string& out) const { return fs::exists(*this / out / "checkpoints" / "index.json"); }
  std::string weights(const std::string& out) const {
    return waymark::read_file(*this / out / "checkpoints" / "step-00000120" / "model.safetensors");
  }
};

}  // namespace

TEST_CASE_FIXTURE(StoppedRun, "signals at random moments: saved, resumed, the same bits") {
  const auto start = std::chrono::steady_clock::now();
  Child plain(command("plain", false), *this / "plain.log");
  REQUIRE(wait(plain) == 0);
  const std::chrono::duration<double> whole_run = std::chrono::steady_clock::now() - start;
  const std::string expected = weights("plain");

  std::mt19937 rng(5);
  const int runs = waymark::test::by_level(5, 20, 200);
  for (int run = 0; run < runs; ++run) {
    const std::string out = fmt::format("run-{}", run);
    int interruptions = 0;
    for (int attempt = 0; attempt < 40; ++attempt) {
      const bool resume = has_checkpoint(out);
      std::vector<std::string> words = command(out, resume);
      if (!resume && fs::exists(*this / out)) words.emplace_back("--force");
      Child child(words, *this / (out + ".log"));
      // SIGINT, SIGTERM and SIGKILL in turn, as a rule later each time, so that every run ends however slow the machine.
      const int number = attempt % 3 == 0 ? SIGINT : attempt % 3 == 1 ? SIGTERM : SIGKILL;
      std::this_thread::sleep_for(whole_run * (0.1 * (attempt + 1) * std::uniform_real_distribution<>()(rng)));
      child.signal(number);
      const int code = wait(child);
      if (code == 0) break;
      ++interruptions;
      const bool expected_code = code == 130 || code == 143 || code == 128 + number;
      CHECK_MESSAGE(expected_code, fmt::format("exit code {} after signal {}", code, number));
      // A result that stands there is whole, whenever the process ended.
      if (fs::exists(*this / out / "result.json")) CHECK_NOTHROW(waymark::train::load_result(*this / out / "result.json"));
    }
    CAPTURE(interruptions);
    CHECK(weights(out) == expected);
    CHECK(waymark::train::load_result(*this / out / "result.json").status == waymark::train::RunStatus::finished);
  }
}
