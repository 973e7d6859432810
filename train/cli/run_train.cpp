// What waymark train does once its request is checked.
#include <fmt/format.h>

#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/cli/signals.h"
#include "train/trainer/trainer.h"

namespace waymark::train::cli {

int run_train(const TrainRequest& request) {
  const Config& config = request.config;
  if (!request.quiet)
    note("run {}  ->  {}\n{}", config.id(), request.out, config.to_text(request.verbose));
  if (request.dry_run) return 0;

  Trainer trainer(config);
  trainer.folder(request.out).force(request.force).command_line(request.command_line);
  if (request.resume) trainer.resume(*request.resume);
  const SignalGuard signals([&trainer](int) { trainer.request_stop(); });
  bool unwritten = false;
  const auto console = make_console(
      {.mode = progress_mode(config.text("log.progress")), .quiet = request.quiet, .results_failed = &unwritten});
  trainer.sink(*console);
  const RunResult result = trainer.run();

  if (trainer.nothing_to_do()) {
    if (!request.quiet) note("{} is finished already: nothing to do\n", request.out);
    return 0;
  }
  switch (result.status) {
    case RunStatus::finished:
      if (unwritten) print_error("standard output cannot be written; the result is in " + request.out);
      return unwritten ? 1 : 0;
    case RunStatus::interrupted:
      note("to go on:\n{}\n", resume_command(request.out));
      return SignalGuard::received() ? SignalGuard::exit_code(SignalGuard::received()) : 130;
    default:
      print_error(result.error);
      return 1;
  }
}

}  // namespace waymark::train::cli
