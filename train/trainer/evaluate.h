// Evaluation of one split: evaluation mode, no gradient, exact weights of a short last batch.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "train/report/result.h"
#include "train/trainer/model.h"

namespace waymark::train {

struct EvaluateOptions {
  i64 batch_size = 32;                          // items; changes nothing but speed
  i64 max_batches = 0;                          // > 0: only the first ones, and the values are marked approximate
  const std::atomic<bool>* stop = nullptr;      // set: give up at the next batch
  std::function<void(i64 done, i64 total)> progress = {};
};

// Nothing if it was stopped. No training stream advances, and the model is in the mode in which it was.
WAYMARK_API std::optional<SplitResult> evaluate(TaskModel& model, const Task& task, std::string_view split,
                                                const EvaluateOptions& options = {});

}  // namespace waymark::train
