// The stepper of a backward run, in a terminal, through a pipe or from a script.
//
//   inspect::Recorder recorder({.keep = inspect::Keep::values});   // before the forward pass: values and checks need it
//   Tensor loss = ...;
//   BackwardRun run(loss, {.rewindable = true});
//   inspect::repl(run);
//
// Nothing is committed to .grad. `back` and `goto` need a rewindable run.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/backward.h"

namespace waymark::inspect {

// Where commands come from and where text goes.
struct ReplIo {
  // The next line, without its end; none at the end of input. `words`: what completion may offer.
  std::function<std::optional<std::string>(const std::vector<std::string>& words)> read;
  std::function<void(std::string_view)> write;
  int width = 80;                        // columns
  std::function<int()> columns{};        // their number now, asked for before every command; none: width stays
  bool bold = false;                     // the first line of a card stands out by terminal escapes
  bool person = false;                   // someone answers: a failed expectation does not end the session
  bool strict = false;                   // of a script: the first error ends it, blank lines and # comments do nothing
  std::function<bool()> interrupted{};   // true: a long command ends and the prompt returns
};

// stdin and stdout: line editing and history where both are a terminal, plain lines and no escapes elsewhere. The width
// is the terminal's at every command, or COLUMNS.
WAYMARK_API ReplIo terminal_io();
// The lines of a script; Error if it cannot be read.
WAYMARK_API ReplIo script_io(const std::string& path);

// Runs commands until quit or the end of input. 0; 1 at the first failed expectation (unless a person is there), and at
// the first error of any kind in a script.
WAYMARK_API int repl(BackwardRun& run, ReplIo io = terminal_io());

// "loss 2.31   121 nodes   1.2 MiB saved   12,345 parameters in 38 tensors": what a run is about to walk through.
WAYMARK_API std::string run_summary(const BackwardRun& run);

}  // namespace waymark::inspect
