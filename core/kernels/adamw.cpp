#include "core/kernels/adamw.h"

#include <cmath>

#include "core/kernels/clones.h"

namespace waymark::kernels {

// target_clones needs named, non-template functions. The coefficients are copied to locals: the compiler cannot know
// that the arrays do not overlap them.
#define WAYMARK_ADAM_UPDATE(NAME, T)                                                                            \
  WAYMARK_CLONES static void NAME(const AdamCoefficients& c, i64 n, T* theta, const T* grad, T* m, T* v) {      \
    const T b1 = static_cast<T>(c.beta1), b2 = static_cast<T>(c.beta2);                                         \
    const T a1 = static_cast<T>(1 - c.beta1), a2 = static_cast<T>(1 - c.beta2);                                 \
    const T eps = static_cast<T>(c.eps), scale = static_cast<T>(c.grad_scale), l2 = static_cast<T>(c.l2);       \
    const T keep = static_cast<T>(1 - c.decay), step = static_cast<T>(c.step_size);                             \
    const T root = static_cast<T>(c.root_bias2);                                                                \
    _Pragma("omp simd") for (i64 i = 0; i < n; ++i) {                                                           \
      const T g = grad[i] * scale + l2 * theta[i];                                                              \
      const T first = b1 * m[i] + a1 * g, second = b2 * v[i] + a2 * g * g;                                      \
      m[i] = first;                                                                                             \
      v[i] = second;                                                                                            \
      theta[i] = keep * theta[i] - step * (first / (std::sqrt(second) / root + eps));                           \
    }                                                                                                           \
  }
WAYMARK_ADAM_UPDATE(adam_f32, float)
WAYMARK_ADAM_UPDATE(adam_f64, double)

void adam_update(const AdamCoefficients& c, i64 n, float* theta, const float* grad, float* m, float* v) {
  adam_f32(c, n, theta, grad, m, v);
}
void adam_update(const AdamCoefficients& c, i64 n, double* theta, const double* grad, double* m, double* v) {
  adam_f64(c, n, theta, grad, m, v);
}

// Sixteen running sums, whatever the width of a register: the same order on every instruction set.
#define WAYMARK_SUM_OF_SQUARES(NAME, T)                                                                         \
  WAYMARK_CLONES static double NAME(i64 n, const T* x) {                                                        \
    constexpr i64 kLanes = 16;                                                                                  \
    double lane[kLanes] = {};                                                                                   \
    i64 i = 0;                                                                                                  \
    for (; i + kLanes <= n; i += kLanes) {                                                                      \
      _Pragma("omp simd") for (i64 k = 0; k < kLanes; ++k) {                                                    \
        const double value = static_cast<double>(x[i + k]);                                                     \
        lane[k] += value * value;                                                                               \
      }                                                                                                         \
    }                                                                                                           \
    for (; i < n; ++i) {                                                                                        \
      const double value = static_cast<double>(x[i]);                                                           \
      lane[i % kLanes] += value * value;                                                                        \
    }                                                                                                           \
    for (i64 width = kLanes / 2; width > 0; width /= 2)                                                         \
      for (i64 k = 0; k < width; ++k) lane[k] += lane[k + width];                                               \
    return lane[0];                                                                                             \
  }
WAYMARK_SUM_OF_SQUARES(squares_f32, float)
WAYMARK_SUM_OF_SQUARES(squares_f64, double)

double sum_of_squares(i64 n, const float* x) { return squares_f32(n, x); }
double sum_of_squares(i64 n, const double* x) { return squares_f64(n, x); }

}  // namespace waymark::kernels
