#include "train/cli/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace waymark::train::cli {

namespace {

struct Console {
  bool color = false, quiet = false, verbose = false;
};
Console g_console;

void print_to_stderr(const char* head, const char* color, std::string_view text) {
  note(g_console.color ? fmt::format("\x1b[{}m{}\x1b[0m {}\n", color, head, text) : fmt::format("{} {}\n", head, text));
}

}  // namespace

void set_console(const std::string& color, bool quiet, bool verbose) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = no_color && *no_color;
  g_console.color = color == "always" || (color != "never" && !plain && ::isatty(STDERR_FILENO) == 1);
  g_console.quiet = quiet;
  g_console.verbose = verbose;
}
bool is_quiet() { return g_console.quiet; }
bool is_verbose() { return g_console.verbose; }

void keep_places_of_streams() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);  // the lowest free number
}

void note(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void print_error(std::string_view text) { print_to_stderr("waymark:", "31", text); }
void print_warning(std::string_view text) {
  if (!g_console.quiet) print_to_stderr("warning:", "33", text);
}

}  // namespace waymark::train::cli
