// Reductions (specs: engine 2.5). dim: none (all), one or several; several are treated as one axis.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// b8 and i64 sum to i64. The sum of nothing is 0.
[[nodiscard]] WAYMARK_API Tensor sum(Arg x, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor mean(Arg x, Dims dim = {}, bool keepdim = false);
// Down to a shape that broadcasts to x's: the adjoint of broadcasting.
[[nodiscard]] WAYMARK_API Tensor sum_to_size(Arg x, const Shape& shape);

}  // namespace waymark
