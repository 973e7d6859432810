// Internal: the `reduction` argument of losses.
#pragma once

#include "core/autograd/arg.h"

namespace waymark::ops {

enum class Reduction : u8 { none, mean, sum, batchmean };
// Error for another word; batchmean only where it is allowed.
Reduction reduction_of(std::string_view op, std::string_view word, Loc loc, bool batchmean = false);
// Recorded ops: x itself, its mean, sum, or its sum divided by `batch`.
Tensor reduce(const Tensor& x, Reduction r, Loc loc, i64 batch = 1);

}  // namespace waymark::ops
