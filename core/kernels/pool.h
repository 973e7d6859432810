// Windows along the rows of a dense (rows, n) matrix: weighted sums and largest elements.
#pragma once

#include <vector>

#include "core/tensor/types.h"

namespace waymark::kernels {

// A linear map of rows: output j is Σ weight[offset[j] + i]·x[first[j] + i]. Average pooling, interpolation.
struct Taps {
  i64 inputs = 0, outputs = 0;
  std::vector<i64> first, offset;  // offset: outputs + 1 entries
  std::vector<double> weight;
};
// y (rows, outputs) of x (rows, inputs), and its adjoint.
template <class T> void apply_taps(const Taps& taps, const T* x, T* y, i64 rows);
template <class T> void apply_taps_adjoint(const Taps& taps, const T* y, T* x, i64 rows);

// Largest element of every window and its place in the row: the first one on a tie, the first NaN if there is one.
struct MaxWindows {
  i64 inputs, outputs, size, stride, padding, dilation;
};
template <class T> void max_windows(const MaxWindows& w, const T* x, T* y, i64* place, i64 rows);

}  // namespace waymark::kernels
