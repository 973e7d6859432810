// waymark step at a terminal: a pseudo-terminal with the program behind it, keys in, screen out.
#include <doctest/doctest.h>

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/train/cli/small_run.h"

using waymark::test::SmallRun;

namespace {

constexpr const char* kPrompt = "(waymark) ";

class Terminal {
 public:
  explicit Terminal(const std::vector<std::string>& words, unsigned short columns = 80) {
    std::vector<std::string> all{WAYMARK_PROGRAM};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& w : all) argv.push_back(w.data());
    argv.push_back(nullptr);
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 40;
    child_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    if (child_ == 0) {
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("NO_COLOR");
      ::unsetenv("COLUMNS");
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (child_ > 0 && !ended_) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    if (fd_ >= 0) ::close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool started() const { return child_ > 0; }
  void type(const std::string& keys) {
    for (size_t at = 0; at < keys.size();) {
      const ssize_t n = ::write(fd_, keys.data() + at, keys.size() - at);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
  }
  // Reads until `text` is on the screen and returns what came up to its end; the rest waits for the next call. All that
  // came, if the program ended before or a minute was not enough.
  std::string until(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      if (const size_t at = unread_.find(text); at != std::string::npos) {
        const std::string screen = unread_.substr(0, at + text.size());
        unread_.erase(0, screen.size());
        return screen;
      }
      pollfd p{fd_, POLLIN, 0};
      char buffer[4096];
      if (::poll(&p, 1, 1000) > 0) {
        const ssize_t n = ::read(fd_, buffer, sizeof buffer);
        if (n <= 0) break;
        unread_.append(buffer, static_cast<size_t>(n));
      } else if (std::chrono::steady_clock::now() > end) {
        break;
      }
    }
    return std::exchange(unread_, "");
  }
  // Until the program reads key by key: what is typed before stands on the screen as it is, arrows too.
  void ready() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (termios t{}; ::tcgetattr(fd_, &t) == 0 && (t.c_lflag & ICANON) != 0 && std::chrono::steady_clock::now() < end;)
      ::usleep(1000);
  }
  // Types `keys`: is there `text` on the screen, and then the prompt again?
  bool answers(const std::string& keys, const std::string& text) {
    if (!keys.empty()) ready();
    type(keys);
    const std::string screen = until(text);
    const bool found = screen.ends_with(text) && until(kPrompt).ends_with(kPrompt);
    if (!found) MESSAGE(screen);
    return found;
  }
  void resize(unsigned short rows, unsigned short columns) const {
    winsize size{};
    size.ws_row = rows;
    size.ws_col = columns;
    ::ioctl(fd_, TIOCSWINSZ, &size);
  }
  // Exit code after the program ended by itself, or 128 + the signal.
  int wait() {
    (void)until("no program says this");  // to the end of its output: a full terminal would hold it up
    int status = 0;
    ::waitpid(child_, &status, 0);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int fd_ = -1;
  pid_t child_ = -1;
  bool ended_ = false;
  std::string unread_;
};

}  // namespace

TEST_CASE("step at a terminal: editing, history, completion, Ctrl-C and Ctrl-D") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"));
  REQUIRE(terminal.started());
  CHECK(terminal.answers("", "Enter runs it"));
  CHECK(terminal.answers("step\n", "\x1b[1m1/"));  // the head of a card stands out
  CHECK(terminal.answers("\n", "\x1b[1m2/"));
  // Up brings the last command back (an empty line is none).
  CHECK(terminal.answers("\x1b[A\n", "\x1b[1m3/"));
  // Left and backspace; the start of the line; all of it wiped.
  CHECK(terminal.answers("sttp\x1b[D\x7f" "e\n", "\x1b[1m4/"));
  CHECK(terminal.answers("tep\x01s\n", "\x1b[1m5/"));
  CHECK(terminal.answers("garbage\x15step\n", "\x1b[1m6/"));
  // Tab completes commands and names of ops.
  CHECK(terminal.answers("unt\tmasked_so\t\n", "next: masked_softmax"));
  // Ctrl-C drops the line and the prompt returns: Enter then runs a node, not "half a line".
  terminal.ready();
  terminal.type("half a line");
  CHECK(terminal.until("half a line").ends_with("half a line"));
  CHECK(terminal.answers("\x03", "\n"));
  CHECK(terminal.answers("\n", "masked_softmax #"));
  CHECK(terminal.answers("\x03", "\n"));
  CHECK(terminal.answers("prnt\n", "Did you mean print?"));
  // Ctrl-D ends it.
  terminal.ready();
  terminal.type("\x04");
  CHECK(terminal.wait() == 0);
}

TEST_CASE("step at a terminal: Ctrl-C ends a long command, not the program") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"), 60);
  REQUIRE(terminal.started());
  CHECK(terminal.answers("", "Enter runs it"));
  // The signal comes while the command runs, or after it: the prompt returns in any case.
  terminal.type("check all\n");
  CHECK(terminal.until("check all").ends_with("check all"));
  ::usleep(20000);
  terminal.type("\x03");
  CHECK(terminal.answers("", "passed"));
  CHECK(terminal.answers("prnt\n", "Did you mean print?"));
  terminal.type("quit\n");
  CHECK(terminal.wait() == 0);
}

TEST_CASE("step at a terminal: whatever becomes of the window, the next command is read") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"));
  REQUIRE(terminal.started());
  CHECK(terminal.answers("", "Enter runs it"));
  constexpr unsigned short sizes[][2] = {{1, 2}, {9999, 80}, {40, 80}, {1, 1}, {80, 9999}, {2, 2}, {40, 200}, {3, 21}, {40, 80}};
  for (int round = 0; round < 3; ++round)
    for (const auto& size : sizes) {
      terminal.type("a line that is longer than a narrow window is, and has no meaning");
      ::usleep(2000);
      terminal.resize(size[0], size[1]);
      terminal.type(" at all");
      ::usleep(2000);
      terminal.resize(size[1], size[0]);
      terminal.type("!\x15prnt\n");
      const std::string screen = terminal.until("Did you mean print?");
      CHECK_MESSAGE(screen.ends_with("Did you mean print?"), screen);
    }
  terminal.resize(40, 80);
  terminal.type("\n\x15quit\n");
  CHECK(terminal.wait() == 0);
}

TEST_CASE("step at a terminal: a window that is too small for editing") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"), 2);
  REQUIRE(terminal.started());
  CHECK(terminal.until("(waymark) ").ends_with("(waymark) "));
  terminal.type("prnt\n");
  CHECK(terminal.until("Did you mean print?").ends_with("Did you mean print?"));
  terminal.type("quit\n");
  CHECK(terminal.wait() == 0);
}

TEST_CASE("step at a terminal: characters beyond ASCII arrive, and can be edited") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"));
  REQUIRE(terminal.started());
  CHECK(terminal.answers("", "Enter runs it"));
  CHECK(terminal.answers("\xc3\xa9t\xc3\xa9\n", "unknown command \xc3\xa9t\xc3\xa9."));           // two bytes
  CHECK(terminal.answers("\xe2\x82\xac\xf0\x9f\x99\x82\n", "unknown command \xe2\x82\xac\xf0\x9f\x99\x82."));  // three, four
  CHECK(terminal.answers("\xc3\xa9\xc3\xa8\x7f\n", "unknown command \xc3\xa9."));                // backspace takes one
  CHECK(terminal.answers("\xff\xc3z\n", "unknown command \xef\xbf\xbd\xef\xbf\xbd."));             // not UTF-8
  terminal.type("quit\n");
  CHECK(terminal.wait() == 0);
}

TEST_CASE("step at a terminal: Ctrl-C while Ctrl-S holds the output is no failed write") {
  const SmallRun folder;
  Terminal terminal(folder.words("step"));
  REQUIRE(terminal.started());
  CHECK(terminal.answers("", "Enter runs it"));
  terminal.ready();
  terminal.type("check all\n");
  CHECK(terminal.until("check all").ends_with("check all"));
  for (int i = 0; i < 20; ++i) {
    terminal.type("\x13");
    ::usleep(10000);
    terminal.type("\x03");
    ::usleep(10000);
    terminal.type("\x11");
  }
  CHECK(terminal.answers("prnt\n", "Did you mean print?"));
  terminal.type("quit\n");
  CHECK(terminal.wait() == 0);
}
