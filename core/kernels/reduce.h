// Reductions of dense memory over one axis: x is [outer, n, inner], the result [outer, inner].
//
// Sums follow the one tree of lanes.h and column_sums.h: |error| <= 2 (16 + log2 n) u sum |x|, the same bits for any
// number of threads. The sum of an axis of extent 0 is 0. i64 sums wrap.
#pragma once

#include <type_traits>

#include "core/tensor/types.h"

namespace waymark::kernels {

template <class T> using SumOf = std::conditional_t<std::is_floating_point_v<T>, T, i64>;

// T: float, double, i64, bool.
template <class T> void sum_axis(const T* x, i64 outer, i64 n, i64 inner, SumOf<T>* y);
template <class T> SumOf<T> sum_all(const T* x, i64 n);

// Entries that are not 0 (NaN is not); any = count > 0, all = count == n. T: float, double, i64, bool.
template <class T> void count_nonzero_axis(const T* x, i64 outer, i64 n, i64 inner, i64* y);

// Sums of squares; float accumulates in double, so that nothing overflows early. T: float, double.
template <class T> void sum_squares_axis(const T* x, i64 outer, i64 n, i64 inner, double* y);

// y[r] = sum_i a[r, i] b[r, i]. T: float, double.
template <class T> void dot_rows(const T* a, const T* b, i64 rows, i64 n, T* y);

// mean, and the sum of squared deviations from it: with m = mean x, d = x - m, c = mean d, they are m + c and
// sum d^2 - n c^2, which stays exact for rows of large mean (engine.md 9.2). Either may be null. n = 0: NaN and 0.
template <class T> void moments_axis(const T* x, i64 outer, i64 n, i64 inner, T* mean, T* squares);

// Largest (smallest) entry and its index on the axis; the first one of equals; the first NaN wins. n >= 1. Either
// result may be null. T: float, double, i64.
template <class T> void max_axis(const T* x, i64 outer, i64 n, i64 inner, T* values, i64* indices);
template <class T> void min_axis(const T* x, i64 outer, i64 n, i64 inner, T* values, i64* indices);

}  // namespace waymark::kernels
