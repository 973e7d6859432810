// What a trained model's attention and position tables look like, as arrays for plots: <run>/position/<layer>.npz.
//
//   delta [D]             distances j - i, -(L-1) .. L-1
//   attention_mean [H, D] mean weight of the pairs at a distance;  count [D]: pairs of one item
//   within [H, 5]         share of the attention at |j - i| <= 1, 3, 5, 8, 16;  mean_distance [H], entropy [H] (nats)
//   table_delta, table    parameters of a relative encoding and the distance of each row: [R, d], [H, R, d] or [H, R]
//   norm [R]              length of each row (scalars: absolute value), mean over heads
#pragma once

#include <filesystem>

#include "train/trainer/model.h"

namespace waymark::train {

// Averages over the first `items` of the validation set (of the test set, if there is none). Models without attention
// weights write nothing.
WAYMARK_API void write_analysis(const std::filesystem::path& folder, TaskModel& model, const Task& task, i64 items = 64);

}  // namespace waymark::train
