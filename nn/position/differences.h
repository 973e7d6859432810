// Internal: the differences of positions δ = p_j − p_i that a call has, for terms that prepare something for each of them.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// The δ of a call, clamped to [lo, hi], in ascending order, and the index that gives each its place. All between the
// smallest and the largest one, or, where these are far more than the call has tokens, only those that occur. Never empty.
struct Differences {
  std::vector<i64> values = {};
  PairIndex index = {};
};
Differences differences_of(const EncodingCall& call, i64 lo = -Positions::kLargest, i64 hi = Positions::kLargest);

}  // namespace waymark::nn::encodings
