#include "train/cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace waymark::train::cli {

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> first_signal{0};
std::function<void(int)>* on_stop = nullptr;
struct sigaction before[3], pipe_before, size_before;

extern "C" void handle(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    if (on_stop) (*on_stop)(signal);
    return;
  }
  // Ends also inside a matrix product or a read that hangs. The line that was being rewritten is wiped.
  if (::isatty(2) == 1) {
    const char wipe[] = "\r\033[K";
    if (::write(2, wipe, sizeof wipe - 1) < 0) {
    }
  }
  ::_exit(SignalGuard::exit_code(signal));
}

}  // namespace

SignalGuard::SignalGuard(std::function<void(int)> stop) {
  static std::function<void(int)> kept;  // stays valid for a handler that runs while the guard ends
  kept = std::move(stop);
  on_stop = &kept;
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = handle;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < 3; ++i) ::sigaction(kSignals[i], &action, &before[i]);
  // A closed pipe behind the progress is no reason to end a training; a limit on the size of files is an error of the
  // write, which says so.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before);
  ::sigaction(SIGXFSZ, &ignore, &size_before);
}

SignalGuard::~SignalGuard() {
  for (int i = 0; i < 3; ++i) ::sigaction(kSignals[i], &before[i], nullptr);
  ::sigaction(SIGPIPE, &pipe_before, nullptr);
  ::sigaction(SIGXFSZ, &size_before, nullptr);
  on_stop = nullptr;
}

int SignalGuard::received() { return first_signal; }
int SignalGuard::exit_code(int signal) { return signal == SIGINT ? 130 : 143; }

}  // namespace waymark::train::cli
