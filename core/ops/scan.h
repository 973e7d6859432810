// Scans along one axis.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// Running sum and product; b8 and i64 give i64.
[[nodiscard]] WAYMARK_API Tensor cumsum(Arg x, i64 dim);
[[nodiscard]] WAYMARK_API Tensor cumprod(Arg x, i64 dim);
// Running log Σ eˣ, stable.
[[nodiscard]] WAYMARK_API Tensor logcumsumexp(Arg x, i64 dim);
// Running extreme and the last index that reached it. NaN wins from where it occurs.
[[nodiscard]] WAYMARK_API ValuesIndices cummax(Arg x, i64 dim);
[[nodiscard]] WAYMARK_API ValuesIndices cummin(Arg x, i64 dim);
// x[i + 1] − x[i], n times over.
[[nodiscard]] WAYMARK_API Tensor diff(Arg x, i64 n = 1, i64 dim = -1);

namespace ops {

// y_i = b_i + a_i·y_(i−1) along dim, y before the first = 0 (a of the first is not read); reverse: from the end. The
// building block of rules of scans: its own rule is another one.
Tensor linear_recurrence(Arg a, Arg b, int dim, bool reverse);
// y_i = x_(i−by) along dim, 0 where there is none.
Tensor shifted(Arg x, int dim, i64 by);
// Products of the others along an axis, without a division: exclusive products from both ends.
Tensor product_before(Arg x, int dim, bool reverse);

}  // namespace ops
}  // namespace waymark
