// A program's own multiplier or bias of positions: one function of a pair and its derivative. nn/README.md has an example.
//
//   register_encoding(PairEncoding{.name = "my-bias", .stage = Stage::bias, ...});      once, before specs name it
//   nn::MultiHeadAttention attention{{.embed_dim = 64, .num_heads = 4, .position = "my-bias + rope"}};
//
// It is judged, listed and checked like ours, and runs with a call per pair and head: for experiments. Whoever needs
// options, tables of vectors or speed registers an EncodingInfo (nn/position/registry.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/position/encoding.h"

namespace waymark::nn {

// Positions of a query and a key, 0 or greater (a pair of which one side has none is not asked for: 0, or multiplier 1), and
// the head, 0 ... heads − 1.
struct Pair {
  i64 query = 0, key = 0;
  int head = 0, heads = 1;
};

struct WAYMARK_API PairEncoding {
  std::string name;  // in specs; it has no options
  std::string doc = "an encoding of this program";
  // multiply: a factor of q·k; table: added before the scale; bias: added to the logits.
  Stage stage = Stage::bias;
  // Read in the order of this list, in f64. An extent of −1 stands for the number of heads.
  std::vector<ParameterSpec> parameters = {};

  using Values = std::span<const std::span<const double>>;
  using Sums = std::span<const std::span<double>>;
  // Both are called by several threads at once. derivative adds g·∂value/∂parameter to gradients; without parameters it may
  // be null. There are no second derivatives: backward through a gradient is refused.
  double (*value)(const Pair& pair, Values parameters) = nullptr;
  void (*derivative)(const Pair& pair, Values parameters, double g, Sums gradients) = nullptr;

  // Needs a logit per pair. Say what is true of it: shift_invariant, sees_direction (and direction, beyond_trained in words).
  EncodingFacts facts = default_facts();
  static EncodingFacts default_facts();
};

// Error for a taken or malformed name, another stage, or functions that are missing.
WAYMARK_API void register_encoding(PairEncoding encoding);

}  // namespace waymark::nn
