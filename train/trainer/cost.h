// What a model costs, from its config alone: the numbers that `explain` and the plan of a sweep print.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nn/position/registry.h"
#include "train/config/config.h"

namespace waymark::train {

// Forward flops of one layer on one sequence; multiply-add = 2. Elementwise work is not counted. density: of the pattern,
// if it is not that of dense attention.
struct LayerCost {
  double projections = 0;   // q, k, v and the output: 8 L E Q
  double scores = 0;        // q·k and the mix: 4 L² Q · density
  double feed_forward = 0;  // 4 L E M
  std::vector<std::pair<std::string, double>> encodings = {};  // by name, those that cost something
  double density = 1;       // pairs that are allowed / L²
  double total() const;
};
WAYMARK_API LayerCost layer_cost(const nn::EncodingSum& encodings, const nn::EncodingSizes& sizes, i64 ffn_dim,
                                 bool causal, i64 length, std::optional<double> density = {});

// Forward and backward of all updates of a run, without its evaluations and without embedding and output layer, whose
// vocabulary is known from the data only. Patterns count by their pairs (up to 4,096 tokens; beyond, and where tokens decide
// which pairs meet, as dense). Nothing if the number of updates or the length of an item is.
WAYMARK_API std::optional<double> training_flops(const Config& config);

// "532 k", "1.94 T"
WAYMARK_API std::string flops_text(double flops);

}  // namespace waymark::train
