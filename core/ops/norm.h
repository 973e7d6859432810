// Vector norms.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// (Σ |x|^p)^(1/p) over the axes `dim`; p = ±inf: largest, smallest |x|; p = 0: how many are not 0. f32 accumulates in
// f64, so it does not overflow early. The derivative is 0 where the norm is 0, at all orders.
[[nodiscard]] WAYMARK_API Tensor norm(Arg x, Scalar p = 2, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor vector_norm(Arg x, Scalar p = 2, Dims dim = {}, bool keepdim = false);

}  // namespace waymark
