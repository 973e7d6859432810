#include "train/cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace waymark::train::cli {

namespace {

struct Console {
  bool color = false, quiet = false, verbose = false;
};
Console g_console;

void print_to_stderr(const char* head, const char* color, std::string_view text) {
  if (g_console.color)
    fmt::print(stderr, "\x1b[{}m{}\x1b[0m {}\n", color, head, text);
  else
    fmt::print(stderr, "{} {}\n", head, text);
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

void print_error(std::string_view text) { print_to_stderr("waymark:", "31", text); }
void print_warning(std::string_view text) {
  if (!g_console.quiet) print_to_stderr("warning:", "33", text);
}

}  // namespace waymark::train::cli
