// Internal: a person at a terminal. Line editing by libedit, and the signals that come from the keyboard and the window.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace waymark::inspect {

// Ctrl-C ends a long command, not the program; a write that it meets goes on. A signal that ends the program leaves the
// terminal as it was found. One at a time, while someone sits at the terminal.
class PersonGuard {
 public:
  PersonGuard();
  ~PersonGuard();
  PersonGuard(const PersonGuard&) = delete;
  PersonGuard& operator=(const PersonGuard&) = delete;
};

bool interrupt_came();
// Forgets what came; true if something had.
bool take_interrupts();

// A line as it comes, without its end; none at the end of input.
std::optional<std::string> plain_line();
// A line with editing, history and completion of `words`, in UTF-8; none at the end of input. Ctrl-C drops the line. In
// a window that is too small for it (below 20 columns), or of absurd size, lines are read as they come. A change of the
// size counts from the next line on: libedit loses its place if it changes in the middle of one.
std::optional<std::string> edited_line(const char* prompt, const std::vector<std::string>& words);

}  // namespace waymark::inspect
