// TrainState: all that a run knows between two steps, beside the model, the optimizer and the config. state.json of a
// checkpoint (format waymark-state-1). Everything else is a function of (seed, step).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/random/generator.h"
#include "train/data/loader.h"
#include "train/report/result.h"

namespace waymark::train {

// A validation, kept so that the end needs not repeat it.
struct ScoredSplit {
  i64 step = 0;
  SplitResult result = {};
};

struct TrainState {
  i64 step = 0;       // steps done: updates, and those that were skipped
  Cursor cursor = {};      // of the training order
  i64 tokens = 0, targets = 0;
  i64 empty_steps = 0;         // without a scored target
  i64 nonfinite_skipped = 0, nonfinite_in_a_row = 0;
  bool evaluated = false;      // the validation that belongs to this step is done
  // Since the last line of metrics.jsonl.
  double line_loss = 0;        // sum over targets
  i64 line_targets = 0, line_tokens = 0;
  double line_time = 0;        // training clock of the last line
  // Exponential mean of the loss that the console shows.
  double mean_loss = 0, mean_weight = 0;
  std::optional<ScoredSplit> last_val = {}, best_val = {};
  i64 without_gain = 0;        // evaluations since the best
  double seconds = 0;          // training clock
  std::optional<double> flops_per_step = {};  // of the first step
  i64 resumes = 0;
  GeneratorState random = {};
  std::string continued_from = {};  // id of the run that this one extends
};

// What a checkpoint says beside its state, to compare with the run that wants to go on from it.
struct CheckpointFacts {
  std::string id = {};
  std::map<std::string, std::string> config = {};        // Config::id_lines()
  std::map<std::string, std::string> fingerprints = {};  // of the data, by split
  std::string version = {}, blas_core = {};
  std::map<std::string, std::string> files = {};         // name -> XXH3-128 of its bytes
};

WAYMARK_API std::string state_to_json(const TrainState& state, const CheckpointFacts& facts);
// Strict, as result_from_json.
WAYMARK_API void state_from_json(std::string_view text, std::string_view origin, TrainState& state,
                                 CheckpointFacts& facts);

}  // namespace waymark::train
