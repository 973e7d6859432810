// Rotation of channel pairs of one row by given cosines and sines.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// `rows` rows of d channels; the first 2m are m pairs: (2t, 2t + 1), or (t, t + m) with `halves`; the others are copied.
// (x_a, x_b) -> (x_a c_t - x_b s_t, x_a s_t + x_b c_t). Steps are in elements from row to row; 0 repeats a row.
template <class T> struct Rotation {
  i64 rows, d, m;
  bool halves;
  T* y;
  i64 y_step;
  const T* x;
  i64 x_step;
  const T *cos, *sin;
  i64 cos_step, sin_step;
};
template <class T> void rotate_rows(const Rotation<T>& r);

}  // namespace waymark::kernels
