// Internal: values of (query, key) pairs by functions of a program, as a recorded op.
#pragma once

#include "core/ops/attention_terms.h"

namespace waymark {

// [B, H, Lq, Lk] in `dtype`, computed in f64; B = 1 if the term does not read the row of the batch and positions are
// shared. A pair of which one side has no position is `neutral`, and gives no gradient. Positions: i64 [L] or [B, L].
Tensor custom_pairs(const Custom& term, const Tensor& query_positions, const Tensor& key_positions, i64 batch, i64 heads, DType dtype,
                    double neutral);

}  // namespace waymark
