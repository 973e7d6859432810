// Rows by number: gathering, writing and adding rows of a contiguous array. All indices have been checked.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// y[i, :] = x[start[i] .. start[i] + inner), for i < rows; elements of `size` bytes, starts in elements.
void gather_rows(i64 size, const std::byte* x, const i64* start, i64 rows, i64 inner, std::byte* y);
// y[start[i] .. start[i] + inner) = x[i, :]. Of rows with the same start the last one wins.
void assign_rows(i64 size, std::byte* y, i64 y_elements, const i64* start, i64 rows, i64 inner, const std::byte* x);
// y[start[i] .. start[i] + inner) += x[i, :]; every start is a multiple of inner. Floats as sum_segments; i64 wraps;
// b8: or.
template <class T> void accumulate_rows(T* y, i64 y_elements, const i64* start, i64 rows, i64 inner, const T* x);

}  // namespace waymark::kernels
