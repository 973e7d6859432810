// Values of (query, key) pairs from functions of a program: family Custom of the score terms. In f64, whatever the dtype of
// the attention. Slow: it serves encodings that no family covers.
#pragma once

#include "core/ops/attention_terms.h"

namespace waymark {

// The values of all pairs, f64 [B, heads, Lq, Lk], or [1, ...] if the rows of the batch are alike (not c.batched, and the
// positions are those of all rows). Positions: i64 [L] or [B, L]. Pairs of which one side has no position: `neutral`.
//
// Differentiable with respect to c.inputs, twice:
// * the gradient by c.backward, exact; summed in a fixed order, with the same bits for any number of threads;
// * second derivatives: with respect to the incoming gradient exact, by c.backward for each pair on its own; with respect
//   to the inputs by a four-point central difference of c.backward (steps of 2e-4 times the largest input, at least 2e-4;
//   relative error about 1e-11 where the functions are smooth);
// * a third derivative is an Error that says so.
[[nodiscard]] WAYMARK_API Tensor custom_pairs(const Custom& c, double neutral, i64 batch, i64 heads,
                                              const Tensor& query_positions, const Tensor& key_positions);

}  // namespace waymark
