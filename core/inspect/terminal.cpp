#include "core/inspect/terminal.h"

#include <editline/readline.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/tensor/error.h"

namespace waymark::inspect {
namespace {

// ---- signals ----------------------------------------------------------------------------------------------------------

volatile sig_atomic_t g_interrupted = 0, g_continued = 0;
// Wakes the reader of keys: whichever thread the signal comes to, and whenever, its byte stays here until it is read.
int g_wake[2] = {-1, -1};
termios g_found{};  // the terminal as it was found
bool g_has_found = false;

void wake() {
  const int before = errno;
  if (::write(g_wake[1], "", 1) < 0) {  // full: the reader is awake
  }
  errno = before;
}
void drain() {
  char bytes[64];
  while (::read(g_wake[0], bytes, sizeof bytes) > 0) {}
}
void on_interrupt(int) {
  g_interrupted = 1;
  wake();
}
// Back from Ctrl-Z: the shell has set its own modes in between.
void on_continue(int) {
  g_continued = 1;
  wake();
}
void on_end(int signal) {
  if (g_has_found) ::tcsetattr(STDIN_FILENO, TCSANOW, &g_found);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

struct Handler {
  int signal;
  void (*run)(int);
};
constexpr Handler kHandlers[] = {{SIGINT, on_interrupt}, {SIGCONT, on_continue}, {SIGTERM, on_end}, {SIGHUP, on_end}, {SIGQUIT, on_end}};
constexpr size_t kSignals = sizeof kHandlers / sizeof kHandlers[0];
struct sigaction g_before[kSignals];

// ---- characters -------------------------------------------------------------------------------------------------------

// libedit turns characters into bytes by the locale. The thread has one of UTF-8 in this scope; the process keeps its own.
class Utf8Scope {
 public:
  Utf8Scope() : before_(::uselocale(locale())) {}
  ~Utf8Scope() { ::uselocale(before_); }
  Utf8Scope(const Utf8Scope&) = delete;
  Utf8Scope& operator=(const Utf8Scope&) = delete;

 private:
  // The user's if it is of UTF-8, else the neutral one; none (the thread's stays) where there is neither.
  static locale_t locale() {
    static const locale_t found = [] {
      for (const char* name : {"", "C.UTF-8", "en_US.UTF-8"})
        if (const locale_t l = ::newlocale(LC_CTYPE_MASK, name, locale_t{})) {
          if (std::string_view(::nl_langinfo_l(CODESET, l)) == "UTF-8") return l;
          ::freelocale(l);
        }
      return locale_t{};
    }();
    return found;
  }
  locale_t before_;
};

// The next byte; -1 at the end of input and when Ctrl-C came. (Left to itself libedit may miss a signal that another
// thread got.)
int next_byte() {
  while (true) {
    pollfd sources[2] = {{STDIN_FILENO, POLLIN, 0}, {g_wake[0], POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) return -1;
    if (g_interrupted) return -1;
    if (g_continued) {
      g_continued = 0;
      drain();
      rl_deprep_terminal();
      rl_prep_terminal(1);
      rl_forced_update_display();
      continue;
    }
    if (!(sources[0].revents)) continue;
    unsigned char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return -1;
    if (n == 1) return byte;
  }
}

// The next character for libedit, out of its bytes in UTF-8; what is none is shown as the replacement character.
int read_character(FILE*) {
  constexpr int kNone = 0xFFFD;
  const int first = next_byte();
  if (first < 0x80) return first;
  const int more = first >= 0xF0 && first < 0xF5 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first >= 0xF5) return kNone;
  int character = first & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    const int byte = next_byte();
    if (byte < 0) return byte;
    if ((byte & 0xC0) != 0x80) return kNone;
    character = character << 6 | (byte & 0x3F);
  }
  const bool is_short = (more == 2 && character < 0x800) || (more == 3 && (character < 0x10000 || character > 0x10FFFF));
  return is_short || (character >= 0xD800 && character < 0xE000) ? kNone : character;
}

// ---- completion -------------------------------------------------------------------------------------------------------

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

void start_editing() {
  static bool started = false;
  if (std::exchange(started, true)) return;
  rl_catch_signals = 0;  // its handlers redraw from inside a signal, on whichever thread it comes to
  rl_getc_function = read_character;
  rl_initialize();
  rl_attempted_completion_function = complete;
}

}  // namespace

PersonGuard::PersonGuard() {
  if (g_wake[0] < 0 && ::pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) fail("", "cannot make a pipe: {}", std::strerror(errno));
  g_has_found = ::tcgetattr(STDIN_FILENO, &g_found) == 0;
  for (size_t i = 0; i < kSignals; ++i) {
    struct sigaction action {};
    action.sa_handler = kHandlers[i].run;
    action.sa_flags = SA_RESTART;  // a write into a terminal that Ctrl-S holds goes on
    ::sigaction(kHandlers[i].signal, nullptr, &g_before[i]);
    // What the caller handles, or ignores as behind nohup, stays as it is.
    if (kHandlers[i].run != on_end || g_before[i].sa_handler == SIG_DFL) ::sigaction(kHandlers[i].signal, &action, nullptr);
  }
  take_interrupts();
}
PersonGuard::~PersonGuard() {
  for (size_t i = 0; i < kSignals; ++i) ::sigaction(kHandlers[i].signal, &g_before[i], nullptr);
}

bool interrupt_came() { return g_interrupted != 0; }

bool take_interrupts() {
  drain();
  g_continued = 0;
  const bool any = g_interrupted != 0;
  g_interrupted = 0;
  return any;
}

namespace {

// Has the window a size in which libedit keeps its place? One that is not known is 0; libedit then takes 80 x 24.
bool can_edit() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return false;
  return (size.ws_col == 0 || (size.ws_col >= 20 && size.ws_col <= 1000)) && (size.ws_row == 0 || (size.ws_row >= 2 && size.ws_row <= 1000));
}

}  // namespace

std::optional<std::string> plain_line() {
  std::string line;
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') return line;
    line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

std::optional<std::string> edited_line(const char* prompt, const std::vector<std::string>& words) {
  const Utf8Scope utf8;
  completion_words() = words;
  take_interrupts();
  while (true) {
    if (!can_edit()) {
      std::fputs(prompt, stdout);
      std::fflush(stdout);
      return plain_line();
    }
    start_editing();
    if (char* line = readline(prompt)) {
      const std::string text = line;
      std::free(line);
      if (!text.empty()) add_history(text.c_str());
      return text;
    }
    if (!take_interrupts()) return std::nullopt;
    std::fputs("\n", stdout);  // Ctrl-C drops the line
    std::fflush(stdout);
  }
}

}  // namespace waymark::inspect
