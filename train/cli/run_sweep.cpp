// What waymark sweep does once its request is checked.
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/cli/signals.h"
#include "train/cli/text_layout.h"
#include "train/plans/plan.h"
#include "train/sweep/sweep.h"

namespace waymark::train::cli {
namespace {

// Of the terminal, now: it may be resized while the sweep runs.
size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

}  // namespace

int run_sweep(const SweepRequest& request) {
  if (request.plan == "list") {
    std::vector<Row> rows;
    for (const Plan& plan : all_plans()) rows.push_back({plan.name, plan.summary});
    fmt::print("{}", columns(rows));
    return 0;
  }
  SweepOptions options;
  options.out = request.out;
  options.jobs = request.jobs;
  options.rerun = request.rerun == "all" ? Rerun::all : request.rerun == "failed" ? Rerun::failed : Rerun::none;
  options.fail_fast = request.fail_fast;
  const SweepPreview preview = preview_sweep(request.cells, options);
  if (request.list) {
    fmt::print("{}", preview.to_string());
    return 0;
  }
  if (!request.quiet) {
    note("sweep  ->  {}\n{}, {} at a time\n", request.out, preview.counts(), request.jobs);
    for (size_t i = 0; i < preview.actions.size(); ++i)
      if (preview.actions[i].starts_with("refused")) note("  {}  {}\n", preview.plan.runs[i].name, preview.actions[i]);
    if (request.cells.excluded || request.cells.repeated)
      note("{} cells excluded, {} equal to an earlier one\n", request.cells.excluded, request.cells.repeated);
  }

  // On a terminal the runs at work share one line that is rewritten; elsewhere there are only plain lines.
  const bool terminal = isatty(STDERR_FILENO) != 0 && !request.quiet;
  std::string shown;
  const auto erase = [&] {
    if (!shown.empty()) note("\r{}\r", std::string(shown.size(), ' '));
    shown.clear();
  };
  if (!request.quiet)
    options.line = [&](const std::string& text) {
      erase();
      note("{}\n", text);
    };
  if (terminal)
    options.status = [&](const std::string& text) {
      if (text == shown) return;
      erase();
      shown = text.substr(0, terminal_columns() - 1);
      note(std::string_view(shown));
    };
  static std::atomic<int> stop{0};
  stop = 0;
  const SignalGuard signals([](int number) { stop.store(number); });
  options.stop = &stop;
  const SweepOutcome outcome = train::run_sweep(request.cells, options);
  erase();
  if (!request.quiet)
    note("{} planned = {} finished{} + {} failed + {} interrupted + {} refused\n", outcome.planned, outcome.finished,
               outcome.skipped ? fmt::format(" ({} before)", outcome.skipped) : "", outcome.failed, outcome.interrupted,
               outcome.refused);
  if (const Plan* plan = find_plan(request.plan); plan && !outcome.stopped)
    fmt::print("{}\n", plan_table(*plan, load_runs({request.out}).runs));
  fmt::print("{}\n", request.out);
  if (outcome.stopped) return SignalGuard::exit_code(stop.load());
  return outcome.complete() ? 0 : 1;
}

}  // namespace waymark::train::cli
