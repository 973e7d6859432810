// A position encoding of a program, as two functions of a (query, key) pair: no tensors, no kernels.
//
//   double value(const Pair& p, Parameters w) { return -std::abs(w[0][p.head]) * double(std::abs(p.key - p.query)); }
//   void derivative(const Pair& p, Parameters w, double g, Gradients dw) { dw[0][p.head] += g * ...; }
//   register_encoding(PairEncoding{.name = "slope", .parameters = {{"slope", {kHeads}, init::constant(0.5)}},
//                                  .value = value, .derivative = derivative});
//
// Afterwards its name stands in specs ("slope + rope"), in `help`, `explain` and `matrix`; it is judged, shared, saved and
// loaded as ours are. A complete program is in nn/README.md.
//
// It is evaluated in f64, whatever the dtype of the attention, with one call for each pair, head and direction: slow, and
// meant for trying ideas. Encodings whose rule fits a family of core/ops/attention_terms.h run at its speed; they take the
// other register_encoding (nn/position/registry.h). Derivatives, also second ones: core/ops/custom_pairs.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/position/registry.h"

namespace waymark::nn {

// Positions of both sides (never -1: a pair of which one side has no position is neutral by itself, 0 or a factor of 1),
// and the head.
struct Pair {
  i64 query = 0, key = 0;
  int head = 0, heads = 1;
};

// The parameters in their order, each flattened; gradients alike.
using PairParameters = std::span<const std::span<const double>>;
using PairGradients = std::span<const std::span<double>>;

// As an extent of a parameter's shape: the number of heads of the model.
inline constexpr i64 kHeads = -1;

struct PairEncoding {
  std::string name = {};
  // bias: added to the logits; table: added in units of q·k, before the scale; multiply: a factor of q·k, which should
  // start at 1 and must never start at 0.
  Stage stage = Stage::bias;
  std::vector<ParameterSpec> parameters = {};
  // Called by several threads at once. A capture-less lambda will do. A bias or table of -inf forbids the pair; a query that
  // is left no key has z = 0, weights 0 and no gradient.
  double (*value)(const Pair&, PairParameters parameters) = nullptr;
  // Adds g·∂value/∂parameter to each gradient. Not needed without parameters.
  void (*derivative)(const Pair&, PairParameters parameters, double g, PairGradients gradients) = nullptr;
  // Of these it may say: sees_direction, shift_invariant, beyond_trained, and words for direction and shift; more needs and
  // wants. Site, needs of a pair, and the constant of the keys follow from the stage.
  EncodingFacts facts = {};
  std::string doc = "an encoding of this program";  // one line for help
};

// Error for a taken or malformed name, a stage that is none of the three, functions that are missing, and parameters with
// names that are empty or taken.
WAYMARK_API void register_encoding(PairEncoding encoding);

// What the functions of an encoding contradict: derivatives that are not those of the value (against central differences),
// shift_invariant or sees_direction where the values say otherwise. One line each; empty: nothing found. It tries pairs
// around the positions 0 ... 40, with parameters near their initial values.
WAYMARK_API std::vector<std::string> check_encoding(const PairEncoding& encoding);

}  // namespace waymark::nn
