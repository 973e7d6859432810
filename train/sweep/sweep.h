// Sweeps: every cell a run of its own, as a child process with its own folder and log.
//
// * The id of a run decides what there is to do: finished runs are passed over, interrupted and half-done ones are
//   resumed, missing ones started, failed ones left unless asked for. Calling again does only what is missing.
// * Threads are shared out evenly; results do not depend on that.
// * A failed run does not stop the others. At the end planned = finished + failed + interrupted + refused.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/config/sweep_cells.h"
#include "train/report/sweep_plan.h"

namespace waymark::train {

enum class Rerun : u8 { none, failed, all };

struct SweepOptions {
  std::filesystem::path out = {};         // folder of the sweep
  i64 jobs = 1;                      // children at the same time
  Rerun rerun = Rerun::none;
  bool fail_fast = false;
  // The program whose `train` command the children run. Empty: this program (/proc/self/exe).
  std::filesystem::path program = {};
  const std::atomic<int>* stop = nullptr;            // not 0: start nothing new; children were signalled or are now
  std::function<void(const std::string&)> line = {}; // one plain line per event
  std::function<void(const std::string&)> status = {};  // what is at work now, for a line that is rewritten
};

struct SweepOutcome {
  i64 planned = 0, finished = 0, failed = 0, interrupted = 0, refused = 0;
  i64 skipped = 0;                   // of the finished ones: finished before
  bool stopped = false;
  SweepPlan plan = {};                    // as in sweep.json
  // Every run finished (refused cells are no runs).
  bool complete() const { return finished + refused == planned; }
};

// What will be done with each cell: "finished", "to resume", "to start", "failed before", "refused: ...".
struct SweepPreview {
  SweepPlan plan = {};
  std::vector<std::string> actions = {};  // one per planned run
  i64 to_do = 0;
  std::optional<double> flops = {};       // of the training that is to do, estimated; nothing if a run does not say its updates
  std::string counts() const;        // "9 runs planned, 2 done, 6 to do, 1 refused, about 1.2 Tflop of training"
  std::string to_string() const;     // the plan as printed
};
WAYMARK_API SweepPreview preview_sweep(const SweepCells& cells, const SweepOptions& options);

// Runs what is missing. Writes sweep.json after every change of state. Error if a folder cannot be written.
WAYMARK_API SweepOutcome run_sweep(const SweepCells& cells, const SweepOptions& options);

}  // namespace waymark::train
