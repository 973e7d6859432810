// Counting elements. Not differentiable. NaN counts as not zero.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor all(Arg x, Dims dim = {}, bool keepdim = false);  // b8; true of nothing
[[nodiscard]] WAYMARK_API Tensor any(Arg x, Dims dim = {}, bool keepdim = false);  // b8; false of nothing
[[nodiscard]] WAYMARK_API Tensor count_nonzero(Arg x, Dims dim = {});              // i64
// How often each of 0, 1, ... occurs in a 1-d i64 tensor (weights: their sums instead); at least minlength counts.
[[nodiscard]] WAYMARK_API Tensor bincount(Arg x, i64 minlength = 0);
[[nodiscard]] WAYMARK_API Tensor bincount(Arg x, Arg weights, i64 minlength = 0);
// Counts in `bins` equal parts of [min, max], the last one closed; min = max: from the smallest to the largest element.
// Elements outside and NaN are left out. x's dtype.
[[nodiscard]] WAYMARK_API Tensor histc(Arg x, i64 bins = 100, double min = 0, double max = 0);

}  // namespace waymark
