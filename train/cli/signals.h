// Ctrl-C and its relatives: the first signal asks the run to stop, the second ends the process at
// once, wherever it is. Only the program installs handlers; the library never does.
#pragma once

#include <functional>

namespace waymark::train::cli {

// Handlers for SIGINT, SIGTERM and SIGHUP until the end of the scope. `stop` runs inside the handler: it may do nothing
// but set lock-free atomics or send signals. One guard at a time.
class SignalGuard {
 public:
  explicit SignalGuard(std::function<void(int)> stop);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The first signal that came; 0 if none.
  static int received();
  // 130 for SIGINT, 143 for the others.
  static int exit_code(int signal);
};

}  // namespace waymark::train::cli
