// Variance and standard deviation: the sum of squared deviations over max(0, n − correction),
// exact for rows of large mean, too. Where n − correction ≤ 0 the value is NaN (inf if the squares are not 0) and the
// gradient 0; the gradient of std is 0 where it is 0.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor var(Arg x, Dims dim = {}, i64 correction = 1, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor std(Arg x, Dims dim = {}, i64 correction = 1, bool keepdim = false);
struct SpreadMean {
  Tensor spread, mean;  // spread: variance or standard deviation
};
[[nodiscard]] WAYMARK_API SpreadMean var_mean(Arg x, Dims dim = {}, i64 correction = 1, bool keepdim = false);
[[nodiscard]] WAYMARK_API SpreadMean std_mean(Arg x, Dims dim = {}, i64 correction = 1, bool keepdim = false);

}  // namespace waymark
