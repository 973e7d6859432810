// Views: other shapes of the same memory. Negative dims count from the end.
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

// The diagonal of axes dim1 and dim2, as the last axis. Empty if the offset lies outside.
[[nodiscard]] WAYMARK_API Tensor diagonal(Arg x, i64 offset = 0, i64 dim1 = 0, i64 dim2 = 1);
// Windows of `size` every `step` along an axis, as a new last axis: (n − size)/step + 1 of them, overlapping.
[[nodiscard]] WAYMARK_API Tensor unfold(Arg x, i64 dimension, i64 size, i64 step);
// Any layout of x's storage, offset in elements from its start (unset: x's own). Error if it reaches outside.
[[nodiscard]] WAYMARK_API Tensor as_strided(Arg x, const Shape& size, const Shape& stride, std::optional<i64> storage_offset = {});

// Forms of the above.
[[nodiscard]] WAYMARK_API Tensor t(Arg x);  // a matrix transposed; less than 2 axes: x
[[nodiscard]] WAYMARK_API Tensor swapaxes(Arg x, i64 axis0, i64 axis1);
[[nodiscard]] WAYMARK_API Tensor movedim(Arg x, i64 source, i64 destination);
[[nodiscard]] WAYMARK_API Tensor movedim(Arg x, const std::vector<i64>& source, const std::vector<i64>& destination);
[[nodiscard]] WAYMARK_API Tensor unflatten(Arg x, i64 dim, const Shape& sizes);  // one size may be -1
[[nodiscard]] WAYMARK_API Tensor ravel(Arg x);                                   // to 1 axis
[[nodiscard]] WAYMARK_API Tensor broadcast_to(Arg x, const Shape& size);
[[nodiscard]] WAYMARK_API Tensor expand_as(Arg x, Arg other);

}  // namespace waymark
