// Indexing, gathering, scattering. All indices are checked before anything is written. Negative
// indices count from the end in index, index_put, index_fill and take; elsewhere they are out of range. What several
// sources add to one place is summed in ascending source position, with the same bits for any number of threads.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// x.index({Slice(1, 3), 0, None, Ellipsis, positions, mask}): PyTorch's rules. Tensor indices broadcast together; if
// they are apart, their axes come first. An integer is applied first. Without tensors a view, else a copy.
[[nodiscard]] WAYMARK_API Tensor index(Arg x, const std::vector<IndexItem>& indices);
// x with values (broadcast) at these places. Of several values for one place the last wins, or all are added.
[[nodiscard]] WAYMARK_API Tensor index_put(Arg x, const std::vector<IndexItem>& indices, Arg values,
                                           bool accumulate = false);
WAYMARK_API const Tensor& index_put_(const Tensor& x, const std::vector<IndexItem>& indices, Arg values,
                                     bool accumulate = false);

// Slices of one axis by a 1-d i64 index.
[[nodiscard]] WAYMARK_API Tensor index_select(Arg x, i64 dim, Arg index);
// x with alpha·source added, source copied, or a value written at these slices of axis dim.
[[nodiscard]] WAYMARK_API Tensor index_add(Arg x, i64 dim, Arg index, Arg source, Scalar alpha = 1);
[[nodiscard]] WAYMARK_API Tensor index_copy(Arg x, i64 dim, Arg index, Arg source);
[[nodiscard]] WAYMARK_API Tensor index_fill(Arg x, i64 dim, Arg index, Scalar value);
[[nodiscard]] WAYMARK_API Tensor index_fill(Arg x, i64 dim, Arg index, Arg value);  // 0-d
WAYMARK_API const Tensor& index_add_(const Tensor& x, i64 dim, Arg index, Arg source, Scalar alpha = 1);
WAYMARK_API const Tensor& index_copy_(const Tensor& x, i64 dim, Arg index, Arg source);
WAYMARK_API const Tensor& index_fill_(const Tensor& x, i64 dim, Arg index, Scalar value);
WAYMARK_API const Tensor& index_fill_(const Tensor& x, i64 dim, Arg index, Arg value);  // 0-d

// y[i][j][k] = x[i][index[i][j][k]][k] for dim = 1; index may be smaller than x on the other axes.
[[nodiscard]] WAYMARK_API Tensor gather(Arg x, i64 dim, Arg index);
// The same after x and indices are broadcast on all other axes. Without dim: of the flattened x.
[[nodiscard]] WAYMARK_API Tensor take_along_dim(Arg x, Arg indices, std::optional<i64> dim = {});
// Elements of the flattened x.
[[nodiscard]] WAYMARK_API Tensor take(Arg x, Arg index);

// y[i][index[i][j][k]][k] = src[i][j][k] for dim = 1. The last source for a place wins.
[[nodiscard]] WAYMARK_API Tensor scatter(Arg x, i64 dim, Arg index, Arg src);
[[nodiscard]] WAYMARK_API Tensor scatter(Arg x, i64 dim, Arg index, Scalar value);
[[nodiscard]] WAYMARK_API Tensor scatter_add(Arg x, i64 dim, Arg index, Arg src);
// reduce: "sum", "mean", "prod", "amax", "amin"; include_self: x itself takes part.
[[nodiscard]] WAYMARK_API Tensor scatter_reduce(Arg x, i64 dim, Arg index, Arg src, std::string_view reduce,
                                                bool include_self = true);
WAYMARK_API const Tensor& scatter_(const Tensor& x, i64 dim, Arg index, Arg src);
WAYMARK_API const Tensor& scatter_(const Tensor& x, i64 dim, Arg index, Scalar value);
WAYMARK_API const Tensor& scatter_add_(const Tensor& x, i64 dim, Arg index, Arg src);

// 1-d: the elements where the mask (broadcast with x) is true, in row-major order.
[[nodiscard]] WAYMARK_API Tensor masked_select(Arg x, Arg mask);
// x with the elements of source, in order, where the mask is true. Too few elements: Error.
[[nodiscard]] WAYMARK_API Tensor masked_scatter(Arg x, Arg mask, Arg source);
// Positions of the elements that are not 0, in row-major order: [count, axes].
[[nodiscard]] WAYMARK_API Tensor nonzero(Arg x);
[[nodiscard]] WAYMARK_API Tensor argwhere(Arg x);
// The same by axis: one 1-d tensor each.
[[nodiscard]] WAYMARK_API std::vector<Tensor> where(Arg condition);

}  // namespace waymark
