#include "core/kernels/vmath.h"

#include "core/kernels/clones.h"

namespace waymark::kernels::vmath {
namespace {

// sin and cos of large arguments are rare: the block is computed as if there were none, then repaired.
template <class F, class G> WAYMARK_INLINE void map_trigonometric(const float* x, float* y, i64 n, F reduced, G exact) {
  constexpr i64 kBlock = 1024;
  float large[kBlock];
  for (i64 begin = 0; begin < n; begin += kBlock) {
    const i64 m = n - begin < kBlock ? n - begin : kBlock;
    const float* in = x + begin;
    int found = 0;
    for (i64 i = 0; i < m; ++i) found |= detail::abs(in[i]) > kSinLimit;
    if (found) std::memcpy(large, in, static_cast<std::size_t>(m) * sizeof(float));  // y may be x
    map_contiguous(in, y + begin, m, reduced);
    if (!found) continue;
    for (i64 i = 0; i < m; ++i)
      if (detail::abs(large[i]) > kSinLimit) y[begin + i] = exact(large[i]);
  }
}

}  // namespace

#define WAYMARK_F32(name)                                                                  \
  WAYMARK_CLONES void name##_f32(const float* x, float* y, i64 n) {                        \
    map_contiguous(x, y, n, [](float v) __attribute__((always_inline)) { return name(v); }); \
  }
WAYMARK_F32(exp)
WAYMARK_F32(log)
WAYMARK_F32(log1p)
WAYMARK_F32(expm1)
WAYMARK_F32(tanh)
WAYMARK_F32(sigmoid)
WAYMARK_F32(erf)
WAYMARK_F32(softplus)
WAYMARK_F32(gelu)
WAYMARK_F32(gelu_derivative)
WAYMARK_F32(gelu_tanh)
WAYMARK_F32(gelu_tanh_derivative)
WAYMARK_F32(silu)
WAYMARK_F32(silu_derivative)

WAYMARK_CLONES void sin_f32(const float* x, float* y, i64 n) {
  map_trigonometric(
      x, y, n, [](float v) __attribute__((always_inline)) { return sin_reduced(v); },
      [](float v) { return std::sin(v); });
}
WAYMARK_CLONES void cos_f32(const float* x, float* y, i64 n) {
  map_trigonometric(
      x, y, n, [](float v) __attribute__((always_inline)) { return cos_reduced(v); },
      [](float v) { return std::cos(v); });
}

#define WAYMARK_F64(name)                                   \
  void name##_f64(const double* x, double* y, i64 n) {      \
    for (i64 i = 0; i < n; ++i) y[i] = name(x[i]);          \
  }
WAYMARK_VMATH_FUNCTIONS(WAYMARK_F64)

}  // namespace waymark::kernels::vmath
