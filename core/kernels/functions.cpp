#include "core/kernels/functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

// Horner's rule, c[0] + c[1] x + ...
template <size_t N> double polynomial(const double (&c)[N], double x) {
  double y = c[N - 1];
  for (size_t i = N - 1; i-- > 0;) y = y * x + c[i];
  return y;
}

// The inverse of erf: the normal quantile of Wichura's AS 241 at (1 + x)/2, over √2, then one step of Halley's method
// against the C library's erf or erfc.
double inverse_erf(double x) {
  static constexpr double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                 1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                 3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double b[] = {1,
                                 4.2313330701600911252e1,
                                 6.8718700749205790830e2,
                                 5.3941960214247511077e3,
                                 2.1213794301586595867e4,
                                 3.9307895800092710610e4,
                                 2.8729085735721942674e4,
                                 5.2264952788528545610e3};
  static constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                 3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[] = {1,
                                 2.05319162663775882187e0,
                                 1.67638483018380384940e0,
                                 6.89767334985100004550e-1,
                                 1.48103976427480074590e-1,
                                 1.51986665636164571966e-2,
                                 5.47593808499534494600e-4,
                                 1.05075007164441684324e-9};
  static constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[] = {1,
                                 5.99832206555887937690e-1,
                                 1.36929880922735805310e-1,
                                 1.48753612908506148525e-2,
                                 7.86869131145613259100e-4,
                                 1.84631831751005468180e-5,
                                 1.42151175831644588870e-7,
                                 2.04426310338993978564e-15};
  constexpr double kSqrtHalf = 0.70710678118654752440, kSlope = 1.12837916709551257390;  // 2/√π
  const double size = std::fabs(x);
  if (!(size < 1))
    return size == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x)
                     : std::numeric_limits<double>::quiet_NaN();
  double y = 0;
  if (size <= 0.85) {
    const double q = x / 2, r = 0.180625 - q * q;
    y = q * polynomial(a, r) / polynomial(b, r) * kSqrtHalf;
  } else {
    const double r = std::sqrt(-std::log((1 - size) / 2));
    const double z =
        r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6) : polynomial(e, r - 5) / polynomial(f, r - 5);
    y = std::copysign(z * kSqrtHalf, x);
  }
  // In the tails erfc keeps the digits that erf loses.
  const double miss = size <= 0.5 ? std::erf(y) - x : std::copysign((1 - size) - std::erfc(std::fabs(y)), x);
  const double step = miss / (kSlope * std::exp(-y * y));
  return y - step / (1 + y * step);
}

template <class T> T wide(double (*f)(double), T x) { return static_cast<T>(f(static_cast<double>(x))); }

template <class T> T rounded(T x, const double* p) {
  const T scale = static_cast<T>(p[0]);
  if (scale == T(1)) return std::nearbyint(x);
  return p[1] != 0 ? std::nearbyint(x / scale) * scale : std::nearbyint(x * scale) / scale;
}
template <class T> T logit_of(T x, const double* p) {
  if (p[0] == p[0])
    x = x < static_cast<T>(p[0]) ? static_cast<T>(p[0]) : x > static_cast<T>(p[1]) ? static_cast<T>(p[1]) : x;
  return std::log(x / (T(1) - x));
}
template <class T> T number_of(T x, const double* p) {
  if (x != x) return static_cast<T>(p[0]);
  if (std::isinf(x)) return static_cast<T>(x > T(0) ? p[1] : p[2]);
  return x;
}

#define WAYMARK_FUNCTIONS(F)                                                                                           \
  F(exp2, std::exp2(x))                                                                                                \
  F(expm1, vmath::expm1(x)) F(log2, std::log2(x)) F(log10, std::log10(x)) F(log1p, vmath::log1p(x))                    \
      F(tan, std::tan(x)) F(asin, std::asin(x)) F(acos, std::acos(x)) F(atan, std::atan(x)) F(sinh, std::sinh(x))      \
          F(cosh, std::cosh(x)) F(asinh, std::asinh(x)) F(acosh, std::acosh(x)) F(atanh, std::atanh(x))                \
              F(erfc, std::erfc(x)) F(erfinv, wide(inverse_erf, x)) F(trunc, std::trunc(x)) F(frac, x - std::trunc(x)) \
                  F(round, rounded(x, p)) F(logit, logit_of(x, p)) F(nan_to_num, number_of(x, p))

#define WAYMARK_FUNCTION(NAME, EXPR)                                                                              \
  template <class T>                                                                                              \
  void NAME##_loop(i64 n, std::byte* y_, i64 sy, const std::byte* x_, i64 sx, [[maybe_unused]] const double* p) { \
    T* y = reinterpret_cast<T*>(y_);                                                                              \
    const T* xs = reinterpret_cast<const T*>(x_);                                                                 \
    for (i64 i = 0; i < n; ++i) {                                                                                 \
      const T x = xs[i * sx];                                                                                     \
      y[i * sy] = EXPR;                                                                                           \
    }                                                                                                             \
  }
WAYMARK_FUNCTIONS(WAYMARK_FUNCTION)

// ---- two operands ---------------------------------------------------------------------------------------------------

template <class T> T log_add(T a, T b) {
  const T high = a > b ? a : b, low = a > b ? b : a;
  if (a != a || b != b) return a + b;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}
template <class T> T times_log(T a, T b, T log_b) { return b != b ? b : a == T(0) ? T(0) : a * log_b; }

// The quotient that fits `rest`: whole, rounded to -inf, also where (a − rest)/b is a little off.
template <class T> T floor_quotient(T a, T b) {
  if constexpr (std::is_same_v<T, i64>) {
    if (b == -1) return static_cast<i64>(u64{0} - static_cast<u64>(a));
    const i64 q = a / b;
    return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
  } else {
    if (b == T(0)) return a / b;
    const T rest = std::fmod(a, b);
    T q = (a - rest) / b;
    if (rest != T(0) && (b < T(0)) != (rest < T(0))) q -= T(1);
    if (q == T(0)) return std::copysign(T(0), a / b);
    const T whole = std::floor(q);
    return q - whole > T(0.5) ? whole + T(1) : whole;
  }
}
template <class T> T rest_of(T a, T b) {  // the dividend's sign
  if constexpr (std::is_same_v<T, i64>)
    return b == -1 ? 0 : a % b;
  else
    return std::fmod(a, b);
}
template <class T> T floor_rest(T a, T b) {  // the divisor's sign
  const T r = rest_of(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}
i64 shift_left(i64 a, i64 b) { return b < 0 || b > 63 ? 0 : static_cast<i64>(static_cast<u64>(a) << b); }
i64 shift_right(i64 a, i64 b) { return a >> (b < 0 || b > 63 ? 63 : b); }

#define WAYMARK_REAL_PAIRS(F)                                                                                         \
  F(atan2, std::atan2(a, b))                                                                                          \
  F(hypot, std::hypot(a, b)) F(logaddexp, log_add(a, b)) F(xlogy, times_log(a, b, std::log(b)))                       \
      F(xlog1py, times_log(a, b, vmath::log1p(b))) F(copysign, std::copysign(a, b)) F(fmax, b != b || a >= b ? a : b) \
          F(fmin, b != b || a <= b ? a : b) F(heaviside, a == T(0)  ? b                                               \
                                                         : a > T(0) ? T(1)                                            \
                                                                    : T(0)) F(trunc_divide, std::trunc(a / b))
#define WAYMARK_NUMBER_PAIRS(F) \
  F(remainder, floor_rest(a, b)) F(fmod, rest_of(a, b)) F(floor_divide, floor_quotient(a, b))
#define WAYMARK_BIT_PAIRS(F) \
  F(bitwise_and, static_cast<T>(a & b)) F(bitwise_or, static_cast<T>(a | b)) F(bitwise_xor, static_cast<T>(a ^ b))
#define WAYMARK_SHIFT_PAIRS(F) F(left_shift, shift_left(a, b)) F(right_shift, shift_right(a, b))

#define WAYMARK_PAIR(NAME, EXPR)                                                                           \
  template <class T>                                                                                       \
  void NAME##_loop(i64 n, std::byte* y_, i64 sy, const std::byte* a_, i64 sa, const std::byte* b_, i64 sb, \
                   const double*) {                                                                        \
    T* y = reinterpret_cast<T*>(y_);                                                                       \
    const T *as = reinterpret_cast<const T*>(a_), *bs = reinterpret_cast<const T*>(b_);                    \
    for (i64 i = 0; i < n; ++i) {                                                                          \
      const T a = as[i * sa], b = bs[i * sb];                                                              \
      y[i * sy] = EXPR;                                                                                    \
    }                                                                                                      \
  }
WAYMARK_REAL_PAIRS(WAYMARK_PAIR)
WAYMARK_NUMBER_PAIRS(WAYMARK_PAIR)
WAYMARK_BIT_PAIRS(WAYMARK_PAIR)
WAYMARK_SHIFT_PAIRS(WAYMARK_PAIR)

}  // namespace

UnaryLoop function_loop(Function f, DType t) {
#define WAYMARK_CASE(NAME, EXPR) \
  case Function::NAME: return t == kF32 ? NAME##_loop<float> : t == kF64 ? NAME##_loop<double> : nullptr;
  switch (f) { WAYMARK_FUNCTIONS(WAYMARK_CASE) }
  return nullptr;
}

BinaryLoop pair_loop(Pair f, DType t) {
#define WAYMARK_REAL(NAME, EXPR) \
  case Pair::NAME: return t == kF32 ? NAME##_loop<float> : t == kF64 ? NAME##_loop<double> : nullptr;
#define WAYMARK_NUMBER(NAME, EXPR) \
  case Pair::NAME:                 \
    return t == kF32 ? NAME##_loop<float> : t == kF64 ? NAME##_loop<double> : t == kI64 ? NAME##_loop<i64> : nullptr;
#define WAYMARK_BITS(NAME, EXPR) \
  case Pair::NAME: return t == kI64 ? NAME##_loop<i64> : t == kB8 ? NAME##_loop<bool> : nullptr;
#define WAYMARK_SHIFT(NAME, EXPR) \
  case Pair::NAME: return t == kI64 ? NAME##_loop<i64> : nullptr;
  switch (f) {
    WAYMARK_REAL_PAIRS(WAYMARK_REAL)
    WAYMARK_NUMBER_PAIRS(WAYMARK_NUMBER)
    WAYMARK_BIT_PAIRS(WAYMARK_BITS)
    WAYMARK_SHIFT_PAIRS(WAYMARK_SHIFT)
  }
  return nullptr;
}

#undef WAYMARK_NUMBER
#undef WAYMARK_REAL

}  // namespace waymark::kernels
