#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/elementwise_macros.h"
#include "core/kernels/truth.h"
#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

template <class T> inline T sign_of(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x; }

#define WAYMARK_REAL_UNARY(S, T)                                                              \
  WAYMARK_UNARY_LOOP(neg_##S, T, T, -x)                                                       \
  WAYMARK_UNARY_LOOP(abs_##S, T, T, std::fabs(x))                                             \
  WAYMARK_UNARY_LOOP(sign_##S, T, T, x != x ? T(0) : sign_of(x))                              \
  WAYMARK_UNARY_LOOP(square_##S, T, T, x * x)                                                 \
  WAYMARK_UNARY_LOOP(reciprocal_##S, T, T, T(1) / x)                                          \
  WAYMARK_UNARY_LOOP(sqrt_##S, T, T, std::sqrt(x))                                            \
  WAYMARK_UNARY_LOOP(rsqrt_##S, T, T, T(1) / std::sqrt(x))                                    \
  WAYMARK_UNARY_LOOP(relu_##S, T, T, x <= T(0) ? T(0) : x)                                    \
  WAYMARK_UNARY_LOOP(floor_##S, T, T, std::floor(x))                                          \
  WAYMARK_UNARY_LOOP(ceil_##S, T, T, std::ceil(x))                                            \
  WAYMARK_UNARY_LOOP(add_scalar_##S, T, T, x + static_cast<T>(p[0]))                          \
  WAYMARK_UNARY_LOOP(mul_scalar_##S, T, T, x * static_cast<T>(p[0]))                          \
  WAYMARK_UNARY_LOOP(pow_scalar_##S, T, T, std::pow(x, static_cast<T>(p[0])))                 \
  WAYMARK_UNARY_LOOP(clamp_##S, T, T,                                                         \
                     x != x ? x : std::min(std::max(x, static_cast<T>(p[0])), static_cast<T>(p[1]))) \
  WAYMARK_UNARY_LOOP(isnan_##S, T, bool, x != x)                                              \
  WAYMARK_UNARY_LOOP(isfinite_##S, T, bool, std::fabs(x) <= std::numeric_limits<T>::max())    \
  WAYMARK_UNARY_LOOP(logical_not_##S, T, bool, !is_true(x))
WAYMARK_REAL_UNARY(f32, float)
WAYMARK_REAL_UNARY(f64, double)

// Elementary functions: the array kernels of vmath. Strided operands go through a buffer, so that an element has the
// same bits in any layout.
template <class T> void map_math(void (*kernel)(const T*, T*, i64), i64 n, T* y, i64 sy, const T* x, i64 sx) {
  if (sy == 1 && sx == 1) return kernel(x, y, n);
  constexpr i64 kBlock = 256;
  T buffer[kBlock];
  for (i64 begin = 0; begin < n; begin += kBlock) {
    const i64 m = std::min(kBlock, n - begin);
    for (i64 i = 0; i < m; ++i) buffer[i] = x[(begin + i) * sx];
    kernel(buffer, buffer, m);
    for (i64 i = 0; i < m; ++i) y[(begin + i) * sy] = buffer[i];
  }
}
#define WAYMARK_MATH_LOOP(NAME, T)                                                                           \
  void NAME(i64 n, std::byte* y, i64 sy, const std::byte* x, i64 sx, const double*) {                        \
    map_math<T>(vmath::NAME, n, reinterpret_cast<T*>(y), sy, reinterpret_cast<const T*>(x), sx);             \
  }
#define WAYMARK_MATH_LOOPS(NAME) WAYMARK_MATH_LOOP(NAME##_f32, float) WAYMARK_MATH_LOOP(NAME##_f64, double)
WAYMARK_MATH_LOOPS(exp) WAYMARK_MATH_LOOPS(log) WAYMARK_MATH_LOOPS(sin) WAYMARK_MATH_LOOPS(cos)
WAYMARK_MATH_LOOPS(tanh) WAYMARK_MATH_LOOPS(sigmoid) WAYMARK_MATH_LOOPS(erf) WAYMARK_MATH_LOOPS(gelu)
WAYMARK_MATH_LOOPS(gelu_tanh) WAYMARK_MATH_LOOPS(silu)

inline i64 negate(i64 x) { return static_cast<i64>(u64{0} - static_cast<u64>(x)); }
WAYMARK_UNARY_LOOP(neg_i64, i64, i64, negate(x))
WAYMARK_UNARY_LOOP(abs_i64, i64, i64, x < 0 ? negate(x) : x)
WAYMARK_UNARY_LOOP(sign_i64, i64, i64, sign_of(x))
WAYMARK_UNARY_LOOP(square_i64, i64, i64, static_cast<i64>(static_cast<u64>(x) * static_cast<u64>(x)))
WAYMARK_UNARY_LOOP(relu_i64, i64, i64, x < 0 ? 0 : x)
WAYMARK_UNARY_LOOP(copy_i64, i64, i64, x)
WAYMARK_UNARY_LOOP(clamp_i64, i64, i64, std::min(std::max(x, float_to_i64(p[0])), float_to_i64(p[1])))
WAYMARK_UNARY_LOOP(logical_not_i64, i64, bool, x == 0)
WAYMARK_UNARY_LOOP(logical_not_b8, bool, bool, !x)
WAYMARK_UNARY_LOOP(false_i64, i64, bool, x != x)
WAYMARK_UNARY_LOOP(false_b8, bool, bool, x != x)
WAYMARK_UNARY_LOOP(true_i64, i64, bool, x == x)
WAYMARK_UNARY_LOOP(true_b8, bool, bool, x == x)

#define WAYMARK_CONVERT(A, TA)                                              \
  WAYMARK_UNARY_LOOP(A##_to_f32, TA, float, static_cast<float>(x))          \
  WAYMARK_UNARY_LOOP(A##_to_f64, TA, double, static_cast<double>(x))        \
  WAYMARK_UNARY_LOOP(A##_to_b8, TA, bool, is_true(x))
WAYMARK_CONVERT(f32, float)
WAYMARK_CONVERT(f64, double)
WAYMARK_CONVERT(i64, i64)
WAYMARK_CONVERT(b8, bool)
WAYMARK_UNARY_LOOP(f32_to_i64, float, i64, float_to_i64(static_cast<double>(x)))
WAYMARK_UNARY_LOOP(f64_to_i64, double, i64, float_to_i64(x))
WAYMARK_UNARY_LOOP(i64_to_i64, i64, i64, x)
WAYMARK_UNARY_LOOP(b8_to_i64, bool, i64, x ? 1 : 0)

}  // namespace

UnaryLoop unary_loop(Unary op, DType t) {
#define WAYMARK_REAL(NAME) \
  case Unary::NAME: return t == kF32 ? NAME##_f32 : t == kF64 ? NAME##_f64 : nullptr;
#define WAYMARK_NUMBER(NAME) \
  case Unary::NAME: return t == kF32 ? NAME##_f32 : t == kF64 ? NAME##_f64 : t == kI64 ? NAME##_i64 : nullptr;
  switch (op) {
    WAYMARK_NUMBER(neg) WAYMARK_NUMBER(abs) WAYMARK_NUMBER(sign) WAYMARK_NUMBER(square) WAYMARK_NUMBER(relu)
    WAYMARK_NUMBER(clamp)
    WAYMARK_REAL(reciprocal) WAYMARK_REAL(sqrt) WAYMARK_REAL(rsqrt) WAYMARK_REAL(exp) WAYMARK_REAL(log) WAYMARK_REAL(sin)
    WAYMARK_REAL(cos) WAYMARK_REAL(tanh) WAYMARK_REAL(sigmoid) WAYMARK_REAL(erf) WAYMARK_REAL(gelu)
    WAYMARK_REAL(gelu_tanh) WAYMARK_REAL(silu) WAYMARK_REAL(add_scalar) WAYMARK_REAL(mul_scalar) WAYMARK_REAL(pow_scalar)
    case Unary::floor: return t == kF32 ? floor_f32 : t == kF64 ? floor_f64 : t == kI64 ? copy_i64 : nullptr;
    case Unary::ceil: return t == kF32 ? ceil_f32 : t == kF64 ? ceil_f64 : t == kI64 ? copy_i64 : nullptr;
    case Unary::logical_not:
      return t == kF32 ? logical_not_f32 : t == kF64 ? logical_not_f64 : t == kI64 ? logical_not_i64 : logical_not_b8;
    case Unary::isnan: return t == kF32 ? isnan_f32 : t == kF64 ? isnan_f64 : t == kI64 ? false_i64 : false_b8;
    case Unary::isfinite: return t == kF32 ? isfinite_f32 : t == kF64 ? isfinite_f64 : t == kI64 ? true_i64 : true_b8;
  }
  return nullptr;
}

UnaryLoop convert_loop(DType from, DType to) {
#define WAYMARK_ROW(A) {A##_to_f32, A##_to_f64, A##_to_i64, A##_to_b8}
  static constexpr UnaryLoop table[4][4] = {WAYMARK_ROW(f32), WAYMARK_ROW(f64), WAYMARK_ROW(i64), WAYMARK_ROW(b8)};
  return table[static_cast<int>(from)][static_cast<int>(to)];
}

#define WAYMARK_WHERE(S, T) WAYMARK_TERNARY_LOOP(where_##S, bool, T, T, c ? a : b)
WAYMARK_WHERE(f32, float)
WAYMARK_WHERE(f64, double)
WAYMARK_WHERE(i64, i64)
WAYMARK_WHERE(b8, bool)

TernaryLoop ternary_loop(Ternary, DType t) {
  return t == kF32 ? where_f32 : t == kF64 ? where_f64 : t == kI64 ? where_i64 : where_b8;
}

#undef WAYMARK_NUMBER
#undef WAYMARK_REAL

}  // namespace waymark::kernels
