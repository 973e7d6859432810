// Signals as a user sends them: what is printed can be pasted, the second one always works, nobody else gets in.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include "tests/train/cli/program.h"
#include "tests/train/trainer/fixture.h"
#include "train/sweep/child.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;
namespace fs = std::filesystem;

namespace {

struct Runs : TemporaryFolder {
  std::string text = small_text(*this);

  std::vector<std::string> words(const std::string& out, int steps, const Settings& more = {}) const {
    std::vector<std::string> list = {"train"};
    for (const auto& [key, value] : small_settings(text)) {
      const bool replaced = std::any_of(more.begin(), more.end(), [&, k = key](const auto& m) { return m.first == k; });
      if (!replaced) list.insert(list.end(), {"--set", key + "=" + (key == "train.steps" ? fmt::to_string(steps) : value)});
    }
    for (const auto& [key, value] : more) list.insert(list.end(), {"--set", key + "=" + value});
    list.insert(list.end(), {"--out", (*this / out).string(), "--threads", "1", "--progress", "json"});
    return list;
  }
  Child start(const std::string& out, int steps, const Settings& more = {}) const {
    std::vector<std::string> command = words(out, steps, more);
    command.insert(command.begin(), WAYMARK_PROGRAM);
    return Child(command, *this / (out + ".log"));
  }
  std::string log(const std::string& out) const { return read_file(*this / (out + ".log")); }
  // Until the log has this; false after ten seconds.
  bool wait_for(const std::string& out, const std::string& part) const {
    for (int i = 0; i < 5000; ++i) {
      if (has(log(out), part)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  static int wait(Child& child) {
    for (int i = 0; i < 10000; ++i) {
      if (const auto code = child.poll()) return *code;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return -1;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Runs, "Ctrl-C: the step ends, the state is saved, and the printed command gives the same run") {
  REQUIRE(run_waymark(words("whole", 60)).code == 0);
  for (const auto& [number, code] : {std::pair(SIGINT, 130), {SIGTERM, 143}, {SIGHUP, 143}}) {
    const std::string out = fmt::format("cut-{}", number);
    Child child = start(out, 60);
    REQUIRE(wait_for(out, "\"step\":12"));
    child.signal(number);
    CHECK(wait(child) == code);
    CHECK(load_result(*this / out / "result.json").status == RunStatus::interrupted);
    std::istringstream in(log(out));
    std::string command;
    for (std::string line; std::getline(in, line);)
      if (line.rfind("waymark train ", 0) == 0) command = line;
    REQUIRE(!command.empty());
    std::istringstream parts(command);
    std::vector<std::string> resume;
    for (std::string word; parts >> word;) resume.push_back(word);
    resume.erase(resume.begin());
    const Outcome end = run_waymark(resume);
    CAPTURE(end.err);
    CHECK(end.code == 0);
    CHECK(metrics_of(*this / out) == metrics_of(*this / "whole"));
  }
}

TEST_CASE_FIXTURE(Runs, "the second signal ends the program at once, inside a step") {
  // A step of many seconds.
  Child child = start("run", 4, {{"data.train_size", "0"}, {"train.batch_size", "60000"}, {"optim.accumulate", "1"}});
  for (int i = 0; i < 5000 && !fs::exists(*this / "run" / "config.toml"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  child.signal(SIGINT);
  const auto sent = std::chrono::steady_clock::now();
  CHECK(wait(child) == 130);
  CHECK(std::chrono::steady_clock::now() - sent < std::chrono::seconds(2));
  CHECK(!has(log("run"), "to go on"));
}

// R25
TEST_CASE_FIXTURE(Runs, "a second process in the folder is refused") {
  Child child = start("run", 4000);
  REQUIRE(wait_for("run", "kind"));
  std::vector<std::string> second = words("run", 4000);
  second.push_back("--resume");
  const Outcome refused = run_waymark(second);
  CHECK(refused.code != 0);
  CHECK(has(refused.err, "is in use by process "));
  child.signal(SIGKILL);
  CHECK(wait(child) == 128 + SIGKILL);
  // What was killed leaves no lock that holds.
  std::vector<std::string> resume = words("run", 4000);
  resume.push_back("--resume");
  resume.insert(resume.begin(), WAYMARK_PROGRAM);
  Child again(resume, *this / "again.log");
  CHECK(wait_for("again", "kind"));
  again.signal(SIGINT);
  CHECK(wait(again) == 130);
}

TEST_CASE_FIXTURE(Runs, "no control characters when it is no terminal") {
  std::vector<std::string> list = words("run", 12);
  list.back() = "auto";
  const Outcome run = run_waymark(list);
  CHECK(run.code == 0);
  CHECK(has(run.err, "eval 12  test"));
  CHECK(has(run.out, "done in 0:0"));
  CHECK(has(run.out, "majority symbol accuracy"));
  const std::string all = run.err + run.out;
  CHECK(std::all_of(all.begin(), all.end(), [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= 0x20; }));
}
