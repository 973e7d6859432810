// Values within the bounds of a parameter (core/autograd/bounds.h).
#pragma once

#include "core/tensor/tensor.h"

namespace waymark {

// Brings every value of t into its bounds, in place and unrecorded; nothing happens to a tensor without bounds or with
// all values inside. NaN stays NaN.
WAYMARK_API void project(const Tensor& t);
// The value within the bounds of t; its gradient passes to t unchanged, so that a parameter at its bound can leave it.
[[nodiscard]] WAYMARK_API Tensor projected(const Tensor& t);

}  // namespace waymark
