// Layer and root-mean-square normalisation of the rows of a dense [rows, n] matrix, and their derivatives.
// Parallel over rows; parameter gradients are summed over rows in a fixed tree, the same for any number of threads.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// What the backward pass needs of a row. The mean is kept in two parts, because a mean rounded to T would be wrong by
// more than the deviation of a row like 10000 + small (engine.md 9.2).
template <class T> struct RowMoments {
  T mean;      // as first computed
  T shift;     // mean of x - mean: the row's mean is mean + shift
  T inverse;   // 1 / sqrt(variance + eps)
};

// xhat = ((x - mean) - shift) inverse; y = xhat w + b. w and b have n elements or are null (1 and 0).
// moments: one per row, or null. y may be x.
template <class T>
void layer_norm(const T* x, const T* w, const T* b, T eps, T* y, RowMoments<T>* moments, i64 rows, i64 n);

// With gw = g w: dx = inverse (gw - mean gw - xhat mean(gw xhat)); dw = sum g xhat; db = sum g. Each of dx (may be g),
// dw, db may be null.
template <class T>
void layer_norm_backward(const T* x, const T* w, const RowMoments<T>* moments, const T* g, T* dx, T* dw, T* db,
                         i64 rows, i64 n);

// xhat = x inverse, inverse = 1 / sqrt(mean x^2 + eps); y = xhat w. inverses: one per row, or null.
template <class T> void rms_norm(const T* x, const T* w, T eps, T* y, T* inverses, i64 rows, i64 n);
// dx = inverse (gw - xhat mean(gw xhat)); dw = sum g xhat. dx and dw may be null.
template <class T>
void rms_norm_backward(const T* x, const T* w, const T* inverses, const T* g, T* dx, T* dw, i64 rows, i64 n);

}  // namespace waymark::kernels
