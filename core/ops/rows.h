// Internal: tensors as the rows of a kernel, that is with one axis last and dense. Values without history.
#pragma once

#include "core/ops/elementwise.h"

namespace waymark::ops {

// x with axis `dim` (wrapped) moved last, contiguous: x itself if it is so already. A 0-d x becomes (1).
Tensor axis_last(Tensor x, int dim);
// The way back: y (..., n) with its last axis at `dim`, contiguous, of this shape.
Tensor axis_back(const Tensor& y, int dim, const Shape& shape);

struct RowCount {
  i64 rows, n;
};
// Of a tensor whose last axis is the row; `axes` trailing axes make one row.
RowCount row_count(const Tensor& t, int axes = 1);

// A contiguous output of t's shape and dtype: t itself, moved, if nobody else holds it, else a new one (and t stays).
Tensor output_like(Tensor&& t);

// Largest entry along an axis, which stays with extent 1; NaN wins. A constant: softmax and its kin subtract it, and
// their values do not depend on it.
Tensor constant_max(const Tensor& x, int dim);

}  // namespace waymark::ops
