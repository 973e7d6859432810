#include "core/kernels/activation.h"

#include <algorithm>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

// y = f(a, b) over 256 elements at a time, in whole vectors; `b` may repeat `a` for functions of one operand.
template <class T, class F>
WAYMARK_INLINE void map_blocks(i64 n, T* y, i64 sy, const T* a, i64 sa, const T* b, i64 sb, F f) {
  constexpr i64 kBlock = 256;
  alignas(64) T in_a[kBlock], in_b[kBlock], out[kBlock];
  for (i64 begin = 0; begin < n; begin += kBlock) {
    const i64 m = std::min(kBlock, n - begin), whole = (m + kLanes - 1) / kLanes * kLanes;
    for (i64 i = 0; i < m; ++i) in_a[i] = a[(begin + i) * sa];
    for (i64 i = 0; i < m; ++i) in_b[i] = b[(begin + i) * sb];
    std::fill(in_a + m, in_a + whole, T(0));
    std::fill(in_b + m, in_b + whole, T(0));
    for (i64 i = 0; i < whole; i += kLanes) {
#pragma omp simd
      for (int j = 0; j < kLanes; ++j) out[i + j] = f(in_a[i + j], in_b[i + j]);
    }
    for (i64 i = 0; i < m; ++i) y[(begin + i) * sy] = out[i];
  }
}

// Comparisons are written so that NaN takes the branch that PyTorch gives it (engine.md K66).
template <class T> WAYMARK_INLINE T mish_derivative(T x) {
  const T t = vmath::tanh(vmath::softplus(x));
  return t + x * (vmath::sigmoid(x) * (T(1) - t * t));
}
template <class T> WAYMARK_INLINE T absolute(T x) { return x < T(0) ? -x : x; }
template <class T> WAYMARK_INLINE T hard_sigmoid(T x) {
  const T y = x / T(6) + T(0.5);
  return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
}

// FORWARD: an expression of x; BACKWARD: of g and x; both of p0, p1, p2.
#define WAYMARK_ACTIVATION(NAME, FORWARD, BACKWARD)                                                                    \
  WAYMARK_CLONES void NAME(i64 n, std::byte* y, i64 sy, const std::byte* x_, i64 sx, const double* p) {                \
    [[maybe_unused]] const T p0 = static_cast<T>(p[0]), p1 = static_cast<T>(p[1]), p2 = static_cast<T>(p[2]);          \
    const T* const xs = reinterpret_cast<const T*>(x_);                                                                \
    map_blocks<T>(n, reinterpret_cast<T*>(y), sy, xs, sx, xs, sx, [=](T x, T) WAYMARK_BODY -> T { return FORWARD; });  \
  }                                                                                                                    \
  WAYMARK_CLONES void NAME##_backward(i64 n, std::byte* y, i64 sy, const std::byte* g_, i64 sg, const std::byte* x_,   \
                                      i64 sx, const double* p) {                                                       \
    [[maybe_unused]] const T p0 = static_cast<T>(p[0]), p1 = static_cast<T>(p[1]), p2 = static_cast<T>(p[2]);          \
    map_blocks<T>(n, reinterpret_cast<T*>(y), sy, reinterpret_cast<const T*>(g_), sg, reinterpret_cast<const T*>(x_),  \
                  sx, [=](T g, T x) WAYMARK_BODY -> T { return BACKWARD; });                                           \
  }

#define WAYMARK_ACTIVATIONS                                                                                            \
  WAYMARK_ACTIVATION(hardtanh, x < p0 ? p0 : x > p1 ? p1 : x, ((x <= p0) | (x >= p1)) ? T(0) : g)                        \
  WAYMARK_ACTIVATION(leaky_relu, x > T(0) ? x : p0 * x, x > T(0) ? g : p0 * g)                                         \
  WAYMARK_ACTIVATION(elu, x > T(0) ? p1 * x : (p0 * p1) * vmath::expm1(p2 * x),                                        \
                     x <= T(0) ? g * ((p0 * p1 * p2) * vmath::exp(p2 * x)) : p1 * g)                                   \
  WAYMARK_ACTIVATION(mish, x * vmath::tanh(vmath::softplus(x)), g * mish_derivative(x))                                \
  WAYMARK_ACTIVATION(softplus, p0 * x > p1 ? x : vmath::softplus(p0 * x) / p0,                                         \
                     p0 * x > p1 ? g : g * vmath::sigmoid(p0 * x))                                                     \
  WAYMARK_ACTIVATION(softsign, x / (T(1) + absolute(x)), g / ((T(1) + absolute(x)) * (T(1) + absolute(x))))            \
  WAYMARK_ACTIVATION(tanhshrink, x - vmath::tanh(x), g * (vmath::tanh(x) * vmath::tanh(x)))                            \
  WAYMARK_ACTIVATION(threshold, x <= p0 ? p1 : x, x <= p0 ? T(0) : g)                                                  \
  WAYMARK_ACTIVATION(hardsigmoid, hard_sigmoid(x), ((x > T(-3)) & (x < T(3))) ? g / T(6) : T(0))                         \
  WAYMARK_ACTIVATION(hardswish, x * hard_sigmoid(x), x <= T(-3) ? T(0) : x < T(3) ? g * ((T(2) * x + T(3)) / T(6)) : g) \
  WAYMARK_ACTIVATION(logsigmoid, -vmath::softplus(-x), g * vmath::sigmoid(-x))

#define WAYMARK_PRELU                                                                                                  \
  WAYMARK_CLONES void prelu(i64 n, std::byte* y, i64 sy, const std::byte* x_, i64 sx, const std::byte* w_, i64 sw,      \
                            const double*) {                                                                           \
    map_blocks<T>(n, reinterpret_cast<T*>(y), sy, reinterpret_cast<const T*>(x_), sx, reinterpret_cast<const T*>(w_),  \
                  sw, [](T x, T w) WAYMARK_BODY -> T { return x > T(0) ? x : w * x; });                                \
  }

namespace f32 {
using T = float;
WAYMARK_PRELU
WAYMARK_ACTIVATIONS
}  // namespace f32
namespace f64 {
using T = double;
WAYMARK_PRELU
WAYMARK_ACTIVATIONS
}  // namespace f64

}  // namespace

#define WAYMARK_NAMES(X)                                                                                          \
  X(hardtanh) X(leaky_relu) X(elu) X(mish) X(softplus) X(softsign) X(tanhshrink) X(threshold) X(hardsigmoid)      \
  X(hardswish) X(logsigmoid)

BinaryLoop prelu_loop(DType t) { return t == kF32 ? f32::prelu : t == kF64 ? f64::prelu : nullptr; }

UnaryLoop activation_loop(Activation f, DType t) {
  if (!is_float(t)) return nullptr;
  switch (f) {
#define WAYMARK_ROW(NAME) \
  case Activation::NAME: return t == kF32 ? f32::NAME : f64::NAME;
    WAYMARK_NAMES(WAYMARK_ROW)
#undef WAYMARK_ROW
  }
  return nullptr;
}

BinaryLoop activation_backward_loop(Activation f, DType t) {
  if (!is_float(t)) return nullptr;
  switch (f) {
#define WAYMARK_ROW(NAME) \
  case Activation::NAME: return t == kF32 ? f32::NAME##_backward : f64::NAME##_backward;
    WAYMARK_NAMES(WAYMARK_ROW)
#undef WAYMARK_ROW
  }
  return nullptr;
}

}  // namespace waymark::kernels
