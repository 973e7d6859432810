// Largest and smallest elements. NaN wins. Over several axes, amax, amin and the full max and min
// share the gradient equally among ties; max(x, dim) gives it to the first index. An empty axis is an Error.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor amax(Arg x, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor amin(Arg x, Dims dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor max(Arg x);
[[nodiscard]] WAYMARK_API Tensor min(Arg x);
[[nodiscard]] WAYMARK_API ValuesIndices max(Arg x, i64 dim, bool keepdim = false);
[[nodiscard]] WAYMARK_API ValuesIndices min(Arg x, i64 dim, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor max(Arg x, Arg other);  // maximum
[[nodiscard]] WAYMARK_API Tensor min(Arg x, Arg other);  // minimum
struct MinMax {
  Tensor min, max;
};
[[nodiscard]] WAYMARK_API MinMax aminmax(Arg x, std::optional<i64> dim = {}, bool keepdim = false);
// i64: first index of the extreme, or of the first NaN; without dim of the flattened x.
[[nodiscard]] WAYMARK_API Tensor argmax(Arg x, std::optional<i64> dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor argmin(Arg x, std::optional<i64> dim = {}, bool keepdim = false);

}  // namespace waymark
