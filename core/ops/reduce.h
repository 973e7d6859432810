// Reductions. dim: none (all), one or several; several are treated as one axis.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// b8 and i64 sum to i64. The sum of nothing is 0.
[[nodiscard]] WAYMARK_API Tensor sum(Arg x, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor mean(Arg x, Dims dim = {}, bool keepdim = false);
// Down to a shape that broadcasts to x's: the adjoint of broadcasting.
[[nodiscard]] WAYMARK_API Tensor sum_to_size(Arg x, const Shape& shape);

// NaN is left out; nanmean divides by the number of others.
[[nodiscard]] WAYMARK_API Tensor nansum(Arg x, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor nanmean(Arg x, Dims dim = {}, bool keepdim = false);
// b8 and i64 multiply to i64. The product of nothing is 1. The derivative does not divide, so zeros are exact.
[[nodiscard]] WAYMARK_API Tensor prod(Arg x);
[[nodiscard]] WAYMARK_API Tensor prod(Arg x, i64 dim, bool keepdim = false);
// log Σ eˣ, stable. Slices of nothing but -inf give -inf with gradient 0; +inf entries share the gradient.
[[nodiscard]] WAYMARK_API Tensor logsumexp(Arg x, Dims dim, bool keepdim = false);

}  // namespace waymark
