// The bodies of elementwise inner loops, as macros: target_clones needs named, non-template functions.
#pragma once

#include "core/kernels/clones.h"
#include "core/kernels/elementwise.h"

// One loop for dense operands, which vectorises, and one for any strides.
// `x` is the element (type T), `p` the parameters; EXPR yields type R.
#define WAYMARK_UNARY_LOOP(NAME, T, R, EXPR)                                                                  \
  WAYMARK_CLONES static void NAME(i64 n, std::byte* y_, i64 sy, const std::byte* x_, i64 sx,                  \
                                  [[maybe_unused]] const double* p) {                                         \
    R* y = reinterpret_cast<R*>(y_);                                                                          \
    const T* xs = reinterpret_cast<const T*>(x_);                                                             \
    if (sy == 1 && sx == 1) {                                                                                 \
      _Pragma("omp simd") for (i64 i = 0; i < n; ++i) { const T x = xs[i]; y[i] = static_cast<R>(EXPR); }     \
    } else {                                                                                                  \
      for (i64 i = 0; i < n; ++i) { const T x = xs[i * sx]; y[i * sy] = static_cast<R>(EXPR); }               \
    }                                                                                                         \
  }

// `a`, `b` are the elements. A stride of 0 (a scalar or a broadcast row) stays in a register.
#define WAYMARK_BINARY_LOOP(NAME, T, R, EXPR)                                                                 \
  WAYMARK_CLONES static void NAME(i64 n, std::byte* y_, i64 sy, const std::byte* a_, i64 sa,                  \
                                  const std::byte* b_, i64 sb, [[maybe_unused]] const double* p) {            \
    R* y = reinterpret_cast<R*>(y_);                                                                          \
    const T* as = reinterpret_cast<const T*>(a_);                                                             \
    const T* bs = reinterpret_cast<const T*>(b_);                                                             \
    if (sy == 1 && sa == 1 && sb == 1) {                                                                      \
      _Pragma("omp simd") for (i64 i = 0; i < n; ++i) {                                                       \
        const T a = as[i], b = bs[i];                                                                         \
        y[i] = static_cast<R>(EXPR);                                                                          \
      }                                                                                                       \
    } else if (sy == 1 && sa == 1 && sb == 0) {                                                               \
      const T b = *bs;                                                                                        \
      _Pragma("omp simd") for (i64 i = 0; i < n; ++i) { const T a = as[i]; y[i] = static_cast<R>(EXPR); }     \
    } else if (sy == 1 && sa == 0 && sb == 1) {                                                               \
      const T a = *as;                                                                                        \
      _Pragma("omp simd") for (i64 i = 0; i < n; ++i) { const T b = bs[i]; y[i] = static_cast<R>(EXPR); }     \
    } else {                                                                                                  \
      for (i64 i = 0; i < n; ++i) {                                                                           \
        const T a = as[i * sa], b = bs[i * sb];                                                               \
        y[i * sy] = static_cast<R>(EXPR);                                                                     \
      }                                                                                                       \
    }                                                                                                         \
  }

// `c`, `a`, `b` are the elements of the three inputs in order.
#define WAYMARK_TERNARY_LOOP(NAME, TC, T, R, EXPR)                                                            \
  WAYMARK_CLONES static void NAME(i64 n, std::byte* y_, i64 sy, const std::byte* c_, i64 sc,                  \
                                  const std::byte* a_, i64 sa, const std::byte* b_, i64 sb,                   \
                                  [[maybe_unused]] const double* p) {                                         \
    R* y = reinterpret_cast<R*>(y_);                                                                          \
    const TC* cs = reinterpret_cast<const TC*>(c_);                                                           \
    const T* as = reinterpret_cast<const T*>(a_);                                                             \
    const T* bs = reinterpret_cast<const T*>(b_);                                                             \
    if (sy == 1 && sc == 1 && sa == 1 && sb == 1) {                                                           \
      _Pragma("omp simd") for (i64 i = 0; i < n; ++i) {                                                       \
        const TC c = cs[i];                                                                                   \
        const T a = as[i], b = bs[i];                                                                         \
        y[i] = static_cast<R>(EXPR);                                                                          \
      }                                                                                                       \
    } else {                                                                                                  \
      for (i64 i = 0; i < n; ++i) {                                                                           \
        const TC c = cs[i * sc];                                                                              \
        const T a = as[i * sa], b = bs[i * sb];                                                               \
        y[i * sy] = static_cast<R>(EXPR);                                                                     \
      }                                                                                                       \
    }                                                                                                         \
  }
