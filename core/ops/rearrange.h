// Copies of a tensor with its elements repeated, moved, padded or left out.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// Copies side by side, so many along each axis; new axes in front. tile: missing repeats count as 1.
[[nodiscard]] WAYMARK_API Tensor repeat(Arg x, const Shape& repeats);
[[nodiscard]] WAYMARK_API Tensor tile(Arg x, const Shape& repeats);
// Each element (slice) `repeats` times in a row, or counts[i] times; without dim: of the flattened x.
[[nodiscard]] WAYMARK_API Tensor repeat_interleave(Arg x, i64 repeats, std::optional<i64> dim = {});
[[nodiscard]] WAYMARK_API Tensor repeat_interleave(Arg x, Arg counts, std::optional<i64> dim = {});

// Elements moved on by shifts, those pushed out coming in at the other end; without dims: of the flattened x.
[[nodiscard]] WAYMARK_API Tensor roll(Arg x, const std::vector<i64>& shifts, const std::vector<i64>& dims = {});
[[nodiscard]] WAYMARK_API Tensor flip(Arg x, const std::vector<i64>& dims);
// k quarter turns in the plane from dims[0] towards dims[1].
[[nodiscard]] WAYMARK_API Tensor rot90(Arg x, i64 k = 1, const std::vector<i64>& dims = {0, 1});

// pads: before and after the last axis, then the one before it, ...; negative ones crop. mode: "constant", "reflect"
// (pads below the extent), "replicate", "circular" (pads up to the extent). Any rank.
[[nodiscard]] WAYMARK_API Tensor pad(Arg x, const std::vector<i64>& pads, std::string_view mode = "constant",
                                     Scalar value = 0);

// The lower (upper) triangle of the last two axes, the rest 0.
[[nodiscard]] WAYMARK_API Tensor tril(Arg x, i64 diagonal = 0);
[[nodiscard]] WAYMARK_API Tensor triu(Arg x, i64 diagonal = 0);
// 1-d: a square matrix with x on a diagonal. 2-d: that diagonal, copied.
[[nodiscard]] WAYMARK_API Tensor diag(Arg x, i64 diagonal = 0);
// The last axis on a diagonal of two new axes.
[[nodiscard]] WAYMARK_API Tensor diag_embed(Arg x, i64 offset = 0, i64 dim1 = -2, i64 dim2 = -1);
[[nodiscard]] WAYMARK_API Tensor trace(Arg x);  // of a matrix

}  // namespace waymark
