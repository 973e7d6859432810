// Softmax over the rows of a dense [rows, n] matrix, with its relatives and derivatives. Parallel over rows.
//
// Outputs may be the inputs themselves. The largest entry is subtracted first; NaN, rows of nothing but -inf, and +inf
// give NaN (engine.md K41). Sums as in lanes.h. n = 0 and rows = 0 do nothing.
#pragma once

#include <span>

#include "core/tensor/types.h"

namespace waymark::kernels {

// y = e^(x - m) / sum e^(x - m)
template <class T> void softmax(const T* x, T* y, i64 rows, i64 n);
// dx = y (g - sum g y)
template <class T> void softmax_backward(const T* y, const T* g, T* dx, i64 rows, i64 n);

// y = x - m - log sum e^(x - m)
template <class T> void log_softmax(const T* x, T* y, i64 rows, i64 n);
// dx = g - e^y sum g
template <class T> void log_softmax_backward(const T* y, const T* g, T* dx, i64 rows, i64 n);

// Where the mask of a row begins: the row index is taken apart by `axes` (row-major, their extents multiply to the
// number of rows), each with its step in the mask; `column` is the mask's step along the row. Steps may be 0.
struct MaskAxis {
  i64 extent, step;
};
struct MaskRows {
  const bool* keep;
  std::span<const MaskAxis> axes;
  i64 column;
};
// Softmax over the kept entries of scale x; 0 elsewhere, and everywhere in a row that keeps nothing.
template <class T> void masked_softmax(const T* x, const MaskRows& mask, T scale, T* y, i64 rows, i64 n);
// dx = scale y (g - sum g y), exactly 0 where y is 0, whatever g is there.
template <class T> void masked_softmax_backward(const T* y, const T* g, T scale, T* dx, i64 rows, i64 n);

}  // namespace waymark::kernels
