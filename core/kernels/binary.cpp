#include <cmath>

#include "core/kernels/elementwise_macros.h"
#include "core/kernels/truth.h"
#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

template <class T> inline T wrap_add(T a, T b) {
  if constexpr (std::is_same_v<T, i64>) return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b));
  else return a + b;
}
template <class T> inline T wrap_sub(T a, T b) {
  if constexpr (std::is_same_v<T, i64>) return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b));
  else return a - b;
}
template <class T> inline T wrap_mul(T a, T b) {
  if constexpr (std::is_same_v<T, i64>) return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b));
  else return a * b;
}
// The bad operand wins where one is NaN.
template <class T> inline T nan_max(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> inline T nan_min(T a, T b) { return (a < b || a != a) ? a : b; }
inline double power(double a, double b) { return std::pow(a, b); }
inline float power(float a, float b) { return std::pow(a, b); }
// Wraps; a negative exponent gives 0, or ±1 for the bases ±1, as PyTorch.
inline i64 power(i64 a, i64 b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  u64 result = 1, base = static_cast<u64>(a);
  for (u64 e = static_cast<u64>(b); e; e >>= 1, base *= base)
    if (e & 1) result *= base;
  return static_cast<i64>(result);
}

#define WAYMARK_ARITHMETIC(S, T)                              \
  WAYMARK_BINARY_LOOP(add_##S, T, T, wrap_add(a, b))          \
  WAYMARK_BINARY_LOOP(sub_##S, T, T, wrap_sub(a, b))          \
  WAYMARK_BINARY_LOOP(mul_##S, T, T, wrap_mul(a, b))          \
  WAYMARK_BINARY_LOOP(maximum_##S, T, T, nan_max(a, b))       \
  WAYMARK_BINARY_LOOP(minimum_##S, T, T, nan_min(a, b))       \
  WAYMARK_BINARY_LOOP(pow_##S, T, T, power(a, b))
WAYMARK_ARITHMETIC(f32, float)
WAYMARK_ARITHMETIC(f64, double)
WAYMARK_ARITHMETIC(i64, i64)

#define WAYMARK_COMPARE(S, T)                                              \
  WAYMARK_BINARY_LOOP(eq_##S, T, bool, a == b)                             \
  WAYMARK_BINARY_LOOP(ne_##S, T, bool, a != b)                             \
  WAYMARK_BINARY_LOOP(lt_##S, T, bool, a < b)                              \
  WAYMARK_BINARY_LOOP(le_##S, T, bool, a <= b)                             \
  WAYMARK_BINARY_LOOP(gt_##S, T, bool, a > b)                              \
  WAYMARK_BINARY_LOOP(ge_##S, T, bool, a >= b)                             \
  WAYMARK_BINARY_LOOP(logical_and_##S, T, bool, is_true(a) && is_true(b)) \
  WAYMARK_BINARY_LOOP(logical_or_##S, T, bool, is_true(a) || is_true(b))  \
  WAYMARK_BINARY_LOOP(logical_xor_##S, T, bool, is_true(a) != is_true(b))
WAYMARK_COMPARE(f32, float)
WAYMARK_COMPARE(f64, double)
WAYMARK_COMPARE(i64, i64)
WAYMARK_COMPARE(b8, bool)

#define WAYMARK_BACKWARD(S, T)                                                                             \
  WAYMARK_BINARY_LOOP(div_##S, T, T, a / b)                                                                \
  WAYMARK_BINARY_LOOP(relu_backward_##S, T, T, b <= T(0) ? T(0) : a)                                       \
  WAYMARK_BINARY_LOOP(tanh_backward_##S, T, T, a * (T(1) - b * b))                                         \
  WAYMARK_BINARY_LOOP(sigmoid_backward_##S, T, T, a * b * (T(1) - b))                                      \
  WAYMARK_BINARY_LOOP(gelu_backward_##S, T, T, a * vmath::gelu_derivative(b))                              \
  WAYMARK_BINARY_LOOP(gelu_tanh_backward_##S, T, T, a * vmath::gelu_tanh_derivative(b))                    \
  WAYMARK_BINARY_LOOP(silu_backward_##S, T, T, a * vmath::silu_derivative(b))                              \
  WAYMARK_BINARY_LOOP(abs_backward_##S, T, T, b > T(0) ? a : b < T(0) ? -a : T(0) * a)
WAYMARK_BACKWARD(f32, float)
WAYMARK_BACKWARD(f64, double)

}  // namespace

BinaryLoop binary_loop(Binary op, DType t) {
#define WAYMARK_NUMBER(NAME) \
  case Binary::NAME: return t == kF32 ? NAME##_f32 : t == kF64 ? NAME##_f64 : t == kI64 ? NAME##_i64 : nullptr;
#define WAYMARK_ANY(NAME) \
  case Binary::NAME: return t == kF32 ? NAME##_f32 : t == kF64 ? NAME##_f64 : t == kI64 ? NAME##_i64 : NAME##_b8;
#define WAYMARK_REAL(NAME) \
  case Binary::NAME: return t == kF32 ? NAME##_f32 : t == kF64 ? NAME##_f64 : nullptr;
  // b8: sum is "or", product is "and", as PyTorch.
  if (t == kB8) {
    if (op == Binary::add || op == Binary::maximum) return logical_or_b8;
    if (op == Binary::mul || op == Binary::minimum) return logical_and_b8;
  }
  switch (op) {
    WAYMARK_NUMBER(add) WAYMARK_NUMBER(sub) WAYMARK_NUMBER(mul) WAYMARK_NUMBER(maximum) WAYMARK_NUMBER(minimum)
    WAYMARK_NUMBER(pow)
    WAYMARK_ANY(eq) WAYMARK_ANY(ne) WAYMARK_ANY(lt) WAYMARK_ANY(le) WAYMARK_ANY(gt) WAYMARK_ANY(ge)
    WAYMARK_ANY(logical_and) WAYMARK_ANY(logical_or) WAYMARK_ANY(logical_xor)
    WAYMARK_REAL(div) WAYMARK_REAL(relu_backward) WAYMARK_REAL(tanh_backward) WAYMARK_REAL(sigmoid_backward)
    WAYMARK_REAL(gelu_backward) WAYMARK_REAL(gelu_tanh_backward) WAYMARK_REAL(silu_backward) WAYMARK_REAL(abs_backward)
  }
  return nullptr;
}

#undef WAYMARK_NUMBER
#undef WAYMARK_REAL

}  // namespace waymark::kernels
