// Checkpoints of a run:
//   checkpoints/step-00001200/{model.safetensors, optimizer.safetensors, state.json, config.toml}
//   checkpoints/index.json    {"last": "step-00001200", "best": ..., "interrupted": ...}
//
// A folder appears under its name only when it is complete: it is written as .tmp-step-..., every file and the folder
// are synced, then it is renamed; then index.json is replaced; only then old folders go. So whatever happens, the
// newest valid checkpoint is there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "nn/module/module.h"
#include "train/optim/base.h"
#include "train/trainer/state.h"

namespace waymark::train {

enum class CheckpointKind : u8 { step, interrupted, nonfinite };

struct CheckpointName {
  std::string name = {};  // "step-00001200", "interrupted-00001201"
  CheckpointKind kind = CheckpointKind::step;
  i64 step = 0;
};

struct CheckpointContents {
  nn::StateDict model = {};
  OptimizerState optimizer = {};
  TrainState state = {};
  CheckpointFacts facts = {};
  std::string config = {};  // config.toml
};

// What is read of a checkpoint: everything, or all but the optimizer, which evaluation does not need.
enum class CheckpointPart : u8 { all, weights };

// Reads a checkpoint folder; Error if anything that is read is missing, damaged or does not fit its hash.
WAYMARK_API CheckpointContents load_checkpoint(const std::filesystem::path& folder,
                                               CheckpointPart part = CheckpointPart::all);

class WAYMARK_API CheckpointStore {
 public:
  // `folder` is <run>/checkpoints; it is made when the first one is saved.
  explicit CheckpointStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // By their names; the newest first, at equal steps a step-... first. nonfinite ones are not among them.
  std::vector<CheckpointName> list() const;
  std::filesystem::path path_of(i64 step) const;

  // Saves, then updates the index, then removes what is not kept: neither last, best, nor one of the `keep` newest.
  // `facts.files` is filled in. The name of the folder.
  std::string save(CheckpointKind kind, const CheckpointContents& contents, std::optional<i64> best, i64 keep);
  // Removes the checkpoints after `step` (a run that goes back in time), and temporary folders of killed processes.
  void remove_after(i64 step);
  void remove_temporary();

 private:
  void remove(const std::string& name);
  std::filesystem::path folder_;
};

}  // namespace waymark::train
