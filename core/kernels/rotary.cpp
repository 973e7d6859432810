#include "core/kernels/rotary.h"

#include "core/kernels/clones.h"

namespace waymark::kernels {

namespace {

template <class T> [[gnu::always_inline]] inline void rotate(const Rotation<T>& r) {
  for (i64 i = 0; i < r.rows; ++i) {
    T* __restrict y = r.y + i * r.y_step;
    const T *__restrict x = r.x + i * r.x_step, *__restrict c = r.cos + i * r.cos_step, *__restrict s = r.sin + i * r.sin_step;
    const i64 a = r.halves ? 1 : 2, b = r.halves ? r.m : 1;
#pragma omp simd
    for (i64 t = 0; t < r.m; ++t) {
      const T u = x[a * t], v = x[a * t + b];
      y[a * t] = u * c[t] - v * s[t];
      y[a * t + b] = u * s[t] + v * c[t];
    }
    for (i64 t = 2 * r.m; t < r.d; ++t) y[t] = x[t];
  }
}

WAYMARK_CLONES void rotate_f32(const Rotation<float>& r) { rotate(r); }
WAYMARK_CLONES void rotate_f64(const Rotation<double>& r) { rotate(r); }

}  // namespace

template <> void rotate_rows(const Rotation<float>& r) { rotate_f32(r); }
template <> void rotate_rows(const Rotation<double>& r) { rotate_f64(r); }

}  // namespace waymark::kernels
