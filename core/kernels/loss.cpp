#include "core/kernels/loss.h"

#include "core/kernels/elementwise_macros.h"
#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

template <class T> WAYMARK_INLINE T magnitude(T x) { return x < T(0) ? -x : x; }
template <class T> WAYMARK_INLINE T smooth_l1(T d, T beta) {
  const T a = magnitude(d);
  return a < beta ? T(0.5) * a * a / beta : a - T(0.5) * beta;
}
template <class T> WAYMARK_INLINE T huber(T d, T delta) {
  const T a = magnitude(d);
  return a <= delta ? T(0.5) * a * a : delta * (a - T(0.5) * delta);
}
template <class T> WAYMARK_INLINE T kl_div(T x, T t) {
  const T entropy = t == T(0) ? T(0) : t * vmath::log(t);
  return entropy - t * x;
}
template <class T> WAYMARK_INLINE T kl_div_log(T x, T t) {
  const T p = vmath::exp(t);
  return t == -std::numeric_limits<T>::infinity() ? T(0) : p * (t - x);
}
// The comparison keeps NaN.
template <class T> WAYMARK_INLINE T not_below(T x, T low) { return x < low ? low : x; }
template <class T> WAYMARK_INLINE T bce(T x, T t) {
  return -t * not_below(vmath::log(x), T(-100)) - (T(1) - t) * not_below(vmath::log1p(-x), T(-100));
}
template <class T> WAYMARK_INLINE T bce_logits(T x, T t) { return (T(1) - t) * x + vmath::softplus(-x); }

#define WAYMARK_LOSSES(S, T)                                                                 \
  namespace S {                                                                              \
  WAYMARK_BINARY_LOOP(mse, T, T, (a - b) * (a - b))                                          \
  WAYMARK_BINARY_LOOP(l1, T, T, magnitude(a - b))                                             \
  WAYMARK_BINARY_LOOP(smooth_l1, T, T, (kernels::smooth_l1<T>(a - b, static_cast<T>(p[0])))) \
  WAYMARK_BINARY_LOOP(huber, T, T, (kernels::huber<T>(a - b, static_cast<T>(p[0]))))         \
  WAYMARK_BINARY_LOOP(kl_div, T, T, kernels::kl_div<T>(a, b))                                \
  WAYMARK_BINARY_LOOP(kl_div_log, T, T, kernels::kl_div_log<T>(a, b))                        \
  WAYMARK_BINARY_LOOP(bce, T, T, kernels::bce<T>(a, b))                                      \
  WAYMARK_BINARY_LOOP(bce_logits, T, T, kernels::bce_logits<T>(a, b))                        \
  }
WAYMARK_LOSSES(f32, float)
WAYMARK_LOSSES(f64, double)

}  // namespace

BinaryLoop loss_loop(Loss f, DType t) {
  if (!is_float(t)) return nullptr;
  switch (f) {
#define WAYMARK_ROW(NAME) \
  case Loss::NAME: return t == kF32 ? f32::NAME : f64::NAME;
    WAYMARK_ROW(mse) WAYMARK_ROW(l1) WAYMARK_ROW(smooth_l1) WAYMARK_ROW(huber)
    WAYMARK_ROW(kl_div) WAYMARK_ROW(kl_div_log) WAYMARK_ROW(bce) WAYMARK_ROW(bce_logits)
#undef WAYMARK_ROW
  }
  return nullptr;
}

}  // namespace waymark::kernels
