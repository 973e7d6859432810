// What a trained model's attention and encodings look like, as arrays for plots: <run>/position/<layer>.npz, with the
// names of train/inspect/layer_report.h.
#pragma once

#include <filesystem>

#include "train/trainer/model.h"

namespace waymark::train {

// Over the first `items` of the validation set (of the test set, if there is none). A model without attention writes
// nothing.
WAYMARK_API void write_analysis(const std::filesystem::path& folder, TaskModel& model, const Task& task, i64 items = 64);

}  // namespace waymark::train
