// One element of each row, and back: the entries of the targets in rows of log-probabilities.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// y[r] = x[r · row + index[r]], 0 where index[r] < 0. row = 0: all rows are the same one (class weights).
template <class T> void pick(const T* x, i64 row, const i64* index, T* y, i64 rows);
// x[r · n + index[r]] = y[r], zeros elsewhere.
template <class T> void place(const T* y, const i64* index, T* x, i64 rows, i64 n);

}  // namespace waymark::kernels
