// Normalisation of rows. The variance is taken of deviations whose own mean is removed, so that
// rows with a mean far above their deviation stay exact in f32. A constant row gives 0, not NaN, as long as eps > 0.
#pragma once

#include <optional>

#include "core/autograd/arg.h"

namespace waymark {

// x̂ ⊙ weight + bias, x̂ = (x − mean) / √(variance + eps), over the last axes, which must have the shape
// normalized_shape. weight, bias: of that shape, or undefined. (Ba, Kiros, Hinton 2016)
[[nodiscard]] WAYMARK_API Tensor layer_norm(Arg x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                                            double eps = 1e-5);
// x / √(mean x² + eps) ⊙ weight. eps: the machine epsilon of x's dtype unless given. (Zhang, Sennrich 2019)
[[nodiscard]] WAYMARK_API Tensor rms_norm(Arg x, const Shape& normalized_shape, const Tensor& weight = {},
                                          std::optional<double> eps = {});
// x (N, C, ...): layer norm over each of num_groups runs of channels with all their positions; weight, bias (C) or
// undefined. (Wu, He 2018)
[[nodiscard]] WAYMARK_API Tensor group_norm(Arg x, i64 num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                                            double eps = 1e-5);

}  // namespace waymark
