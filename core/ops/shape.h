// Views (specs: engine 1.4, 2.8): other shapes of the same memory. Negative dims count from the end.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// One extent may be -1 (inferred). Error naming the two axes in the way if it cannot be done without a copy.
[[nodiscard]] WAYMARK_API Tensor view(Arg x, const Shape& shape);
// A view where the strides allow, else a copy.
[[nodiscard]] WAYMARK_API Tensor reshape(Arg x, const Shape& shape);
[[nodiscard]] WAYMARK_API Tensor flatten(Arg x, i64 start_dim = 0, i64 end_dim = -1);
[[nodiscard]] WAYMARK_API Tensor permute(Arg x, const std::vector<i64>& dims);
[[nodiscard]] WAYMARK_API Tensor transpose(Arg x, i64 dim0, i64 dim1);
[[nodiscard]] WAYMARK_API Tensor mT(Arg x);  // the last two axes swapped
[[nodiscard]] WAYMARK_API Tensor squeeze(Arg x, Dims dim = {});
[[nodiscard]] WAYMARK_API Tensor unsqueeze(Arg x, i64 dim);
// -1 keeps an extent; new axes in front; only extent 1 expands.
[[nodiscard]] WAYMARK_API Tensor expand(Arg x, const Shape& size);
// x[:, start:stop:step] along dim; ends clamped; a negative step is a view, too.
[[nodiscard]] WAYMARK_API Tensor slice(Arg x, i64 dim, i64 start = kNoBound, i64 stop = kNoBound, i64 step = 1);
[[nodiscard]] WAYMARK_API Tensor narrow(Arg x, i64 dim, i64 start, i64 length);
[[nodiscard]] WAYMARK_API Tensor select(Arg x, i64 dim, i64 index);

}  // namespace waymark
