#include "core/inspect/repl.h"

#include <editline/readline.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>

#include "core/inspect/stepper.h"

namespace waymark::inspect {
namespace {

volatile sig_atomic_t g_interrupted = 0;
// Wakes the reader of keys: whichever thread the signal comes to, and whenever, its byte stays here until it is read.
int g_wake[2] = {-1, -1};
void on_interrupt(int) {
  const int before = errno;
  g_interrupted = 1;
  if (::write(g_wake[1], "", 1) < 0) {  // full: the reader is awake
  }
  errno = before;
}
// Forgets what came; true if something had.
bool take_interrupts() {
  char bytes[64];
  bool any = false;
  while (::read(g_wake[0], bytes, sizeof bytes) > 0) any = true;
  g_interrupted = 0;
  return any;
}

// Ctrl-C ends a long command, not the program, while someone sits at the terminal.
class InterruptGuard {
 public:
  InterruptGuard() {
    if (g_wake[0] < 0 && ::pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) fail("", "cannot make a pipe: {}", std::strerror(errno));
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, &before_);
    take_interrupts();
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

int width_of_output() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return std::clamp<int>(size.ws_col, 40, 400);
  if (const char* columns = std::getenv("COLUMNS"))
    if (const int n = std::atoi(columns); n > 0) return std::clamp(n, 40, 400);
  return 80;
}

// What libedit completes; it calls back without an argument of ours.
std::vector<std::string>& completion_words() {
  static std::vector<std::string> words;
  return words;
}
char* next_completion(const char* text, int state) {
  static size_t at = 0;
  if (state == 0) at = 0;
  const std::vector<std::string>& words = completion_words();
  while (at < words.size())
    if (const std::string& w = words[at++]; w.starts_with(text)) return ::strdup(w.c_str());
  return nullptr;
}
char** complete(const char* text, int, int) {
  rl_attempted_completion_over = 1;  // no file names
  return rl_completion_matches(text, next_completion);
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// The next key for libedit; EOF at the end of input and when Ctrl-C came. (Left to itself libedit may miss a signal that
// another thread got.)
int read_key(FILE*) {
  while (true) {
    pollfd sources[2] = {{STDIN_FILENO, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) return EOF;
    if (sources[1].revents) return EOF;
    if (!sources[0].revents) continue;
    unsigned char key = 0;
    const ssize_t n = ::read(STDIN_FILENO, &key, 1);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return EOF;
    if (n == 1 && key < 0x80) return key;  // commands and names are ASCII
  }
}

std::optional<std::string> read_edited(const std::vector<std::string>& words) {
  completion_words() = words;
  take_interrupts();
  char* line = readline("(waymark) ");
  while (!line && take_interrupts()) {  // Ctrl-C drops the line
    write_out("\n");
    line = readline("(waymark) ");
  }
  if (!line) return std::nullopt;
  const std::string text = line;
  std::free(line);
  if (!text.empty()) add_history(text.c_str());
  return text;
}

std::optional<std::string> read_plain() {
  std::string line;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

}  // namespace

ReplIo terminal_io() {
  ReplIo io;
  io.write = write_out;
  io.width = width_of_output();
  io.person = isatty(STDIN_FILENO) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  io.bold = isatty(STDOUT_FILENO) == 1 && !(no_color && *no_color) && !(terminal && std::string_view(terminal) == "dumb");
  if (io.person && isatty(STDOUT_FILENO) == 1) {
    rl_getc_function = read_key;
    rl_initialize();
    rl_attempted_completion_function = complete;
    io.read = read_edited;
  } else {
    io.read = [](const std::vector<std::string>&) { return read_plain(); };
  }
  if (io.person) io.interrupted = [] { return g_interrupted != 0; };
  return io;
}

ReplIo script_io(const std::string& path) {
  const auto file = std::make_shared<std::ifstream>(path);
  if (!*file) fail("", "cannot read the script {}", path);
  ReplIo io;
  io.strict = true;
  io.write = write_out;
  io.width = width_of_output();
  io.read = [file](const std::vector<std::string>&) -> std::optional<std::string> {
    std::string line;
    if (!std::getline(*file, line)) return std::nullopt;
    return line;
  };
  return io;
}

std::string run_summary(const BackwardRun& run) {
  std::string loss = "-";
  if (!run.roots().empty() && run.roots()[0].numel() == 1) loss = fmt::format("{:.6g}", run.roots()[0].item<double>());
  i64 saved = 0, elements = 0, tensors = 0;
  std::set<const Storage*> storages;
  for (const Node* n : run.nodes())
    for (const Saved& s : n->saved)
      if (s.data && storages.insert(s.data->storage.get()).second) saved += s.data->storage->bytes();
  for (const Tensor& t : run.leaves()) {
    elements += t.numel();
    ++tensors;
  }
  return fmt::format("loss {}   {} nodes   {} saved   {} parameters in {} tensors", loss, run.total(), bytes_text(saved), elements, tensors);
}

int repl(BackwardRun& run, ReplIo io) {
  std::optional<InterruptGuard> guard;
  if (io.person) guard.emplace();
  Stepper stepper(run, io);
  const std::vector<std::string> words = stepper.words();
  while (true) {
    const std::optional<std::string> line = io.read(words);
    if (!line) {
      if (io.person) io.write("\n");
      return 0;
    }
    if (io.person) take_interrupts();
    const Stepper::Outcome outcome = stepper.execute(*line);
    if (outcome == Stepper::Outcome::quit) return 0;
    if (io.person) continue;
    // A script that goes on after a failure would hide it.
    if (outcome == Stepper::Outcome::unmet || (io.strict && outcome != Stepper::Outcome::done)) return 1;
  }
}

}  // namespace waymark::inspect
