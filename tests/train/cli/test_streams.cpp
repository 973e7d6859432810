// Streams and disks that do not work: closed, full, a terminal, a limit on the size of files, folders that are none.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/io/files.h"
#include "tests/train/cli/program.h"
#include "tests/train/trainer/fixture.h"
#include "train/report/escape.h"

using namespace waymark;
using namespace waymark::test;
namespace fs = std::filesystem;

namespace {

struct BrokenStreams : TemporaryFolder {
  std::string text = small_text(*this);
  std::vector<std::string> train(const std::string& out, const train::Settings& more = {}) const {
    std::vector<std::string> words = {"train", "--out", (*this / out).string(), "--threads", "1"};
    train::Settings settings = small_settings(text);
    for (const auto& setting : more) {
      std::erase_if(settings, [&](const auto& s) { return s.first == setting.first; });
      settings.push_back(setting);
    }
    for (const auto& [key, value] : settings) words.insert(words.end(), {"--set", key + "=" + value});
    return words;
  }
};

void put_full(int stream) { ::dup2(::open("/dev/full", O_WRONLY), stream); }

}  // namespace

TEST_CASE_FIXTURE(BrokenStreams, "a stdout that takes nothing is an error, not a success") {
  const std::string file = (*this / "text.txt").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"help"}, {"help", "ops"}, {"--version"}, {"matrix"}, {"explain"}, {"data", "list"}, train("a")}) {
    CAPTURE(words[0]);
    fs::remove_all(*this / "a");
    const Outcome full = run_waymark(words, "", [] { put_full(1); });
    CHECK(full.code == 1);
    CHECK(full.err.find("waymark: ") != std::string::npos);
    fs::remove_all(*this / "a");
    const Outcome closed = run_waymark(words, "", [] { ::close(1); });
    CHECK(closed.code == 1);
    CHECK(closed.err.find("waymark: ") != std::string::npos);
  }
  // The run itself is whole: nothing that was meant for stdout is in its files.
  CHECK(train::load_result(*this / "a" / "result.json").status == train::RunStatus::finished);
  CHECK(train::read_metrics(*this / "a" / "metrics.jsonl").records.size() > 3);
  const Outcome again = run_waymark(train("a"));
  CHECK(again.code == 0);
  CHECK(has(again.err, "nothing to do"));
}

TEST_CASE_FIXTURE(BrokenStreams, "a stderr that takes nothing changes nothing") {
  REQUIRE(run_waymark(train("whole")).code == 0);
  const std::string expected = result_text(train::load_result(*this / "whole" / "result.json"));
  int number = 0;
  for (const auto& spoil : {std::function<void()>([] { put_full(2); }), std::function<void()>([] { ::close(2); }),
                            std::function<void()>([] {
                              ::close(0);
                              ::close(2);
                            })}) {
    const std::string out = "run" + std::to_string(number++);
    const Outcome o = run_waymark(train(out), "", spoil);
    CHECK(o.code == 0);
    CHECK(has(o.out, "done in "));
    CHECK(result_text(train::load_result(*this / out / "result.json")) == expected);
    CHECK(run_waymark({"train", "--steps", "x"}, "", spoil).code == 2);
    CHECK(run_waymark({"sweep", "--list"}, "", spoil).code == 2);
  }
}

TEST_CASE_FIXTURE(BrokenStreams, "progress on a terminal: one line that is rewritten, and nothing of it stays") {
  int master = -1, slave = -1;
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 60;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  std::string seen;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) seen.append(buffer, static_cast<size_t>(n));
  });
  const Outcome o = run_waymark(train("a", {{"train.steps", "40"}}), "", [&] { ::dup2(slave, 2); });
  ::close(slave);
  reader.join();  // the last end of the terminal is closed: read() ends
  ::close(master);
  CHECK(o.code == 0);
  CHECK(has(seen, "step "));
  CHECK(has(seen, "|"));
  // What stands between two carriage returns fits into the width, and the last one is wiped.
  const size_t first = seen.find("\rstep");
  REQUIRE(first != std::string::npos);
  for (size_t at = first; at != std::string::npos;) {
    const size_t next = seen.find('\r', at + 1);
    const std::string line = seen.substr(at + 1, seen.find_first_of("\r\n\033", at + 1) - at - 1);
    CHECK(train::display_width(line) < 60);
    at = next;
  }
  CHECK(seen.rfind("\033[K") == seen.size() - 3);
  CHECK(has(o.out, "done in "));
  // Piped, the same run has no control characters.
  const Outcome piped = run_waymark(train("b", {{"train.steps", "40"}}));
  CHECK(piped.err.find_first_of("\r\033") == std::string::npos);
}

// R38: as on a full disk, the write fails in the middle.
TEST_CASE_FIXTURE(BrokenStreams, "a file that cannot be written whole: one error with its path, what was there stays") {
  const auto small_files = [] {
    const rlimit limit{6000, 6000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  // The weights of this model are longer than that.
  const train::Settings wide = {{"model.embed_dim", "32"}};
  const Outcome failed = run_waymark(train("a", wide), "", small_files);
  INFO(failed.err);
  CHECK(failed.code == 1);
  CHECK(has(failed.err, "model.safetensors"));
  CHECK(has(failed.err, "File too large"));
  CHECK(!has(failed.err, "terminate"));
  for (const auto& entry : fs::recursive_directory_iterator(*this / "a"))
    CHECK(entry.path().filename().string().rfind("step-", 0) != 0);  // no half checkpoint under a final name
  // A run that has saved before goes back to that.
  std::vector<std::string> words = train("b", wide);
  std::vector<std::string> cut = train("b", wide);
  REQUIRE(run_waymark(train("b", wide)).code == 0);
  words.insert(words.end(), {"--force"});
  CHECK(run_waymark(words, "", small_files).code == 1);
  // Forced away what was there; and it can be done again.
  words = train("b", wide);
  words.push_back("--resume");
  const Outcome done = run_waymark(words);
  INFO(done.err);
  CHECK(done.code == 0);
  const auto other = run_waymark(train("c", wide));
  CHECK(result_text(train::load_result(*this / "b" / "result.json")).size() > 100);
  CHECK(other.code == 0);
}

TEST_CASE_FIXTURE(BrokenStreams, "files where folders belong") {
  std::ofstream(*this / "file") << "x";
  const std::string below = (*this / "file" / "run").string();
  std::vector<std::string> words = train("x");
  words[2] = below;
  Outcome o = run_waymark(words);
  CHECK(o.code == 2);
  CHECK(has(o.err, "--out"));
  o = run_waymark({"sweep", "--task", "char-mlm(path=\"" + text + "\", context=16)", "--steps", "2", "--out", below});
  CHECK(o.code == 2);
  CHECK(has(o.err, "--out"));
  for (const char* command : {"table", "eval"}) {
    o = run_waymark({command, (*this / "file").string()});
    INFO(o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    o = run_waymark({command, (*this / "nothing").string()});
    CHECK(o.code == 2);
    fs::create_directories(*this / "empty");
    o = run_waymark({command, (*this / "empty").string()});
    CHECK(o.code == 2);
  }
  // What is to be made stands in the way of itself.
  fs::create_directories(*this / "run");
  std::ofstream(*this / "run" / "checkpoints") << "x";
  words[2] = (*this / "run").string();
  words.push_back("--force");
  o = run_waymark(words);
  INFO(o.err);
  CHECK(o.code == 0);  // a run's name: --force takes it away
}
