// Internal: the buckets of distances of t5 (Raffel et al. 2020), which tupe has, too.
//   bidirectional: N = buckets/2, base = N if δ > 0 else 0, n = |δ|;     causal: N = buckets, base = 0, n = max(−δ, 0)
//   m = ⌊N/2⌋;  bucket = base + (n < m ? n : min(N − 1, m + ⌊ln(n/m)/ln(max_distance/m)·(N − m) + 1e-9⌋))
// The 1e-9 makes the formula in f64 equal to exact integer arithmetic.
#pragma once

#include <string>
#include <vector>

#include "core/ops/attention_terms.h"

namespace waymark::nn::encodings {

// Beyond ±max_distance nothing changes.
PairIndex t5_index(i64 buckets, i64 max_distance, bool bidirectional);

// Appends what is wrong with these numbers; odd_remedy: what else helps against an odd number of buckets, or "".
void check_t5_buckets(i64 buckets, i64 max_distance, bool bidirectional, const std::string& odd_remedy, std::vector<std::string>& problems);

}  // namespace waymark::nn::encodings
