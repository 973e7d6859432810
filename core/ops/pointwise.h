// Elementwise functions of one tensor. b8 and i64 inputs of exp, sqrt, ... give the default float.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor abs(Arg x);         // derivative 0 at 0
[[nodiscard]] WAYMARK_API Tensor square(Arg x);
[[nodiscard]] WAYMARK_API Tensor reciprocal(Arg x);
[[nodiscard]] WAYMARK_API Tensor sqrt(Arg x);
[[nodiscard]] WAYMARK_API Tensor rsqrt(Arg x);
[[nodiscard]] WAYMARK_API Tensor exp(Arg x);
[[nodiscard]] WAYMARK_API Tensor log(Arg x);
[[nodiscard]] WAYMARK_API Tensor sin(Arg x);
[[nodiscard]] WAYMARK_API Tensor cos(Arg x);
[[nodiscard]] WAYMARK_API Tensor tanh(Arg x);
[[nodiscard]] WAYMARK_API Tensor sigmoid(Arg x);
[[nodiscard]] WAYMARK_API Tensor erf(Arg x);
// Derivative 0; requires_grad is kept.
[[nodiscard]] WAYMARK_API Tensor sign(Arg x);
[[nodiscard]] WAYMARK_API Tensor floor(Arg x);
[[nodiscard]] WAYMARK_API Tensor ceil(Arg x);
[[nodiscard]] WAYMARK_API Tensor isnan(Arg x);       // b8
[[nodiscard]] WAYMARK_API Tensor isfinite(Arg x);    // b8
// Gradient 1 at the bounds, 0 outside and for NaN.
[[nodiscard]] WAYMARK_API Tensor clamp(Arg x, std::optional<Scalar> min, std::optional<Scalar> max);

}  // namespace waymark
