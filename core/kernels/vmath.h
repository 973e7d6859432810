// Elementary functions that a plain loop can vectorise: scalar inline functions without branches or tables, to be used
// inside loops of functions marked WAYMARK_CLONES; and, below, array kernels for contiguous data.
//
// * float: polynomials fitted for this file (minimax in the stated interval). Accuracy against f64 (engine.md 9.3):
//   exp, log, log1p, expm1, sin, cos 2 ulp; tanh, sigmoid, erf 4 ulp; gelu, silu, softplus 4 ulp of
//   max(|y|, 2^-24 |x|). NaN in, NaN out. Results below 2^-126 may be 0.
// * double: the C library, about 1 ulp; not vectorised.
// * None of the formulas relies on a fused multiply-add, nor on its absence. The value of an element does not depend
//   on where it lies in an array: array kernels send their tails through the same code in a buffer of 64 bytes.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/tensor/types.h"

// Always inlined, so that the body takes the instruction set of the clone it lands in.
#define WAYMARK_INLINE [[gnu::always_inline]] inline

namespace waymark::kernels::vmath {

namespace detail {

inline constexpr float kInfF = std::numeric_limits<float>::infinity();
inline constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
// x + kRound - kRound is x rounded to an integer, for |x| < 2^22; the low bits of x + kRound hold that integer.
inline constexpr float kRound = 12582912.0f;
inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 = kLn2Hi + kLn2Lo; n * kLn2Hi is exact for |n| < 2^14.
inline constexpr float kLn2Hi = 0.693359375f, kLn2Lo = -2.12194440e-4f;

WAYMARK_INLINE u32 bits(float x) { return std::bit_cast<u32>(x); }
WAYMARK_INLINE float from_bits(u32 x) { return std::bit_cast<float>(x); }
WAYMARK_INLINE float abs(float x) { return from_bits(bits(x) & 0x7fffffffu); }
WAYMARK_INLINE u32 sign_bit(float x) { return bits(x) & 0x80000000u; }
WAYMARK_INLINE float with_sign(float magnitude, u32 sign) { return from_bits(bits(magnitude) | sign); }

// (e^r - 1 - r) / r^2 for |r| <= ln2 / 2
WAYMARK_INLINE float exp_tail(float r) {
  return 0.49999994f + r * (0.166665211f + r * (0.041668389f + r * (0.00836874545f + r * 0.00138145383f)));
}

// e^(x + low) for x in [-87.3365, 88.7228] and a small correction `low`; garbage outside.
WAYMARK_INLINE float exp_core(float x, float low = 0) {
  const float t = x * kLog2E + kRound;
  const float n = t - kRound;
  const float r = ((x - n * kLn2Hi) - n * kLn2Lo) + low;
  const float y = (r * r * exp_tail(r) + r) + 1.0f;
  return from_bits(bits(y) + (bits(t) << 23));  // y * 2^n
}

// log(m 2^e) + c, with f = m - 1, m in [sqrt(1/2), sqrt 2)
WAYMARK_INLINE float log_core(float f, float e, float c) {
  const float s = f * f;
  float p = -0.0763442963f;
  p = p * f + 0.127615497f;
  p = p * f - 0.131601945f;
  p = p * f + 0.142017618f;
  p = p * f - 0.166233569f;
  p = p * f + 0.200012267f;
  p = p * f - 0.250008225f;
  p = p * f + 0.333333313f;
  return e * kLn2Hi + (f - (0.5f * s - (s * f * p + (e * kLn2Lo + c))));
}
inline constexpr u32 kSqrtHalf = 0x3f3504f3u;

// (x, sin and cos of x - n pi/2, n mod 4) for 0 <= x <= 8192
struct Quadrant {
  float sin, cos;
  u32 n;
};
WAYMARK_INLINE Quadrant reduce_quadrant(float a) {
  const float t = a * 0.636619772f + kRound;
  const float n = t - kRound;
  // pi/2 in parts of 11 bits, so that their products are exact; `lost` is what rounding took from the third step
  const float r2 = (a - n * 1.5703125f) - n * 4.837512969970703125e-4f;
  const float r3 = r2 - n * 7.5495336e-8f;
  const float lost = (r2 - r3) - n * 7.5495336e-8f;
  const float r = r3 + (lost - n * 2.56334415e-12f);
  const float s = r * r;
  const float sin = r + r * s * (-0.166666552f + s * (0.00833217707f - s * 0.000195171699f));
  const float cos = (1.0f - 0.5f * s) + s * s * (0.0416666456f + s * (-0.00138873153f + s * 2.44330058e-05f));
  return {sin, cos, bits(t)};
}

// Normal distribution: e^(-x^2/2) and the lower tail P(X < -|x|), both to 3 ulp while they are above 2^-126.
struct NormalTail {
  float e, tail;
};
WAYMARK_INLINE NormalTail normal_tail(float x) {
  const float a = abs(x) < 13.0f ? abs(x) : 13.0f;
  const float high = from_bits(bits(a) & 0xfffff000u);  // 12 bits: its square is exact
  const float square = -0.5f * (high * high), rest = -0.5f * ((a - high) * (a + high));
  const float round = square * kLog2E + kRound;
  const float n = round - kRound;
  const float r = ((square - n * kLn2Hi) - n * kLn2Lo) + rest;
  const float z = r * r * exp_tail(r) + r;
  const float scale = from_bits((bits(round) << 23) + 0x3f800000u);  // e^(-x^2/2) = scale (1 + z)
  // e^(x^2/2) tail = t p(1 - t): a polynomial in 1 - t, computed so that it is exact near 0, where the tail is 1/2
  const float t = 1.0f / (1.0f + 0.5f * a);
  const float s = 0.5f * a * t;
  float p = 0.0451514572f;
  p = p * s - 0.110105924f;
  p = p * s + 0.0828942582f;
  p = p * s - 0.0550207384f;
  p = p * s + 0.0375887603f;
  p = p * s + 0.0498395748f;
  p = p * s + 0.0428630672f;
  p = p * s - 0.0957897976f;
  p = p * s - 0.297884107f;
  p = p * s + 0.5f;
  p *= t;
  const bool far = !(abs(x) <= 13.0f);
  return {far ? 0.0f : scale * (1.0f + z), far ? 0.0f : scale * (p + p * z)};
}

// s = 1 / (1 + e^-w) and 1 - s, both to their own precision.
struct Logistic {
  float s, rest;
};
WAYMARK_INLINE Logistic logistic(float e) {  // e = e^-w
  const float s = 1.0f / (1.0f + e);
  return {s, e < kInfF ? e * s : 1.0f};
}

// w = 2 sqrt(2/pi) (x + 0.044715 x^3): gelu(approximate = "tanh") is x times the logistic of w. w is needed to more
// bits than float has, because its error is the relative error of the exponential. e^-w:
WAYMARK_INLINE float gelu_tanh_exp(float x) {
  const double d = static_cast<double>(x);
  const double exact = d * (-1.5957691216057308 - 1.5957691216057308 * 0.044715 * (d * d));
  double w = exact > 88.5 ? 88.5 : exact;
  w = w < -87.0 ? -87.0 : w;
  const float high = static_cast<float>(w);
  const float low = static_cast<float>(w - static_cast<double>(high));
  return exact > 88.5 ? kInfF : exp_core(high, low);
}

}  // namespace detail

// ---- float ----------------------------------------------------------------------------------------------------------

WAYMARK_INLINE float exp(float x) {
  const float y = detail::exp_core(x);
  const float limited = x > 88.7228394f ? detail::kInfF : x < -87.3365479f ? 0.0f : y;
  return x == x ? limited : x;
}

// For x <= 0 or NaN, as in softmax: one comparison less. Same bits as exp.
WAYMARK_INLINE float exp_not_positive(float x) {
  const float y = detail::exp_core(x);
  const float limited = x < -87.3365479f ? 0.0f : y;
  return x == x ? limited : x;
}

WAYMARK_INLINE float log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const u32 ix = detail::bits(tiny ? x * 8388608.0f : x) - detail::kSqrtHalf;
  const float e = static_cast<float>(static_cast<i32>(ix) >> 23) + (tiny ? -23.0f : 0.0f);
  const float f = detail::from_bits((ix & 0x007fffffu) + detail::kSqrtHalf) - 1.0f;
  const float y = detail::log_core(f, e, 0.0f);
  const float valid = x > 0.0f ? y : x == 0.0f ? -detail::kInfF : detail::kNanF;
  return x < detail::kInfF ? valid : x;
}

WAYMARK_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const float v = u - 1.0f;
  const float rest = (1.0f - (u - v)) + (x - v);  // u + rest = 1 + x exactly
  const u32 iu = detail::bits(u) - detail::kSqrtHalf;
  const i32 e = static_cast<i32>(iu) >> 23;
  const float f = detail::from_bits((iu & 0x007fffffu) + detail::kSqrtHalf) - 1.0f;
  const float c = rest / u;
  const float y = detail::log_core(e == 0 ? x : f, static_cast<float>(e), e == 0 ? 0.0f : c);
  const float valid = x > -1.0f ? y : x == -1.0f ? -detail::kInfF : detail::kNanF;
  const float finite = x < detail::kInfF ? valid : x;
  return x != 0.0f ? finite : x;
}

WAYMARK_INLINE float expm1(float x) {
  const float a = x < -25.0f ? -25.0f : x;
  const float t = a * detail::kLog2E + detail::kRound;
  const float n = t - detail::kRound;
  const float r = (a - n * detail::kLn2Hi) - n * detail::kLn2Lo;
  const float q = r * r * detail::exp_tail(r) + r;                             // e^r - 1
  const float half = detail::from_bits((detail::bits(t) << 23) + 0x3f000000u);  // 2^(n-1): n = 128 must not overflow
  const float y = 2.0f * (half * q + (half - 0.5f));
  const float limited = x > 88.7228394f ? detail::kInfF : y;
  return detail::abs(x) > 1e-8f ? limited : x;
}

WAYMARK_INLINE float tanh(float x) {
  const float a = detail::abs(x);
  const float twice = a > 10.0f ? 20.0f : 2.0f * a;
  const float t = twice * detail::kLog2E + detail::kRound;
  const float n = t - detail::kRound;
  const float r = (twice - n * detail::kLn2Hi) - n * detail::kLn2Lo;
  const float q = r * r * detail::exp_tail(r) + r;
  const float scale = detail::from_bits((detail::bits(t) << 23) + 0x3f800000u);
  const float e = scale * q + (scale - 1.0f);  // e^2a - 1
  const float y = e / (e + 2.0f);
  return detail::with_sign(a > 1.5e-4f ? y : a, detail::sign_bit(x));
}

WAYMARK_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

WAYMARK_INLINE float erf(float x) {
  const float a = detail::abs(x);
  const float s = a * a;
  float p = 8.31677244e-05f;
  p = p * s - 0.000813001185f;
  p = p * s + 0.00519990642f;
  p = p * s - 0.0268589407f;
  p = p * s + 0.112836875f;
  p = p * s - 0.376126319f;
  p = p * s + 0.128379166f;
  const float small = a + a * p;
  const float b = a > 3.95f ? 3.95f : a;
  float l = 0.000194946726f;  // log erfc
  l = l * b - 0.00303369225f;
  l = l * b + 0.0221897755f;
  l = l * b - 0.10385637f;
  l = l * b - 0.637265742f;
  l = l * b - 1.12762737f;
  l = l * b - 0.000207008779f;
  const float large = 1.0f - detail::exp_core(l);
  const float y = a < 0.925f ? small : a > 3.95f ? 1.0f : large;
  return x == x ? detail::with_sign(y, detail::sign_bit(x)) : x;
}

// log(1 + e^x)
WAYMARK_INLINE float softplus(float x) {
  const float e = exp(-detail::abs(x));
  const bool large = e > 0.414213562f;  // 1 + e = 2 (1 + (e - 1) / 2)
  const float y = detail::log_core(large ? 0.5f * (e - 1.0f) : e, large ? 1.0f : 0.0f, 0.0f);
  return (x < 0.0f ? 0.0f : x) + y;
}

// x Phi(x), Phi the normal distribution function
WAYMARK_INLINE float gelu(float x) {
  const detail::NormalTail n = detail::normal_tail(x);
  return x * (x < 0.0f ? n.tail : 1.0f - n.tail);
}
// Phi(x) + x phi(x)
WAYMARK_INLINE float gelu_derivative(float x) {
  const detail::NormalTail n = detail::normal_tail(x);
  return (x < 0.0f ? n.tail : 1.0f - n.tail) + x * (n.e * 0.398942280f);
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3)
WAYMARK_INLINE float gelu_tanh(float x) { return x / (1.0f + detail::gelu_tanh_exp(x)); }
// s + x s (1 - s) 2u', s = (1 + tanh u) / 2
WAYMARK_INLINE float gelu_tanh_derivative(float x) {
  const detail::Logistic l = detail::logistic(detail::gelu_tanh_exp(x));
  return l.s + (x * l.s) * (l.rest * (1.59576912f + 0.214064449f * (x * x)));
}

// x sigma(x)
WAYMARK_INLINE float silu(float x) { return x / (1.0f + exp(-x)); }
// s (1 + x (1 - s)), s = sigma(x)
WAYMARK_INLINE float silu_derivative(float x) {
  const detail::Logistic l = detail::logistic(exp(-x));
  return l.s * (1.0f + x * l.rest);
}

// sin and cos for |x| <= 8192 (2 ulp); anything beyond, also infinities, must go to std::sin, std::cos (NaN may stay).
inline constexpr float kSinLimit = 8192.0f;
WAYMARK_INLINE float sin_reduced(float x) {
  const detail::Quadrant q = detail::reduce_quadrant(detail::abs(x));
  const float y = q.n & 1u ? q.cos : q.sin;
  return detail::from_bits(detail::bits(y) ^ ((q.n & 2u) << 30) ^ detail::sign_bit(x));
}
WAYMARK_INLINE float cos_reduced(float x) {
  const detail::Quadrant q = detail::reduce_quadrant(detail::abs(x));
  const float y = q.n & 1u ? q.sin : q.cos;
  return detail::from_bits(detail::bits(y) ^ (((q.n + 1u) & 2u) << 30));
}
inline float sin(float x) { return detail::abs(x) <= kSinLimit ? sin_reduced(x) : std::sin(x); }
inline float cos(float x) { return detail::abs(x) <= kSinLimit ? cos_reduced(x) : std::cos(x); }

// ---- double ---------------------------------------------------------------------------------------------------------

inline double exp(double x) { return std::exp(x); }
inline double exp_not_positive(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double softplus(double x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }
inline double gelu(double x) { return x * (0.5 * std::erfc(x * -0.70710678118654752)); }
inline double gelu_derivative(double x) {
  return 0.5 * std::erfc(x * -0.70710678118654752) + x * std::exp(-0.5 * x * x) * 0.39894228040143268;
}
inline double gelu_tanh_weight(double x) {
  return 1.0 / (1.0 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}
inline double gelu_tanh(double x) { return x * gelu_tanh_weight(x); }
inline double gelu_tanh_derivative(double x) {
  const double s = gelu_tanh_weight(x);
  return s + x * (s * (1 - s)) * (1.5957691216057308 + 1.5957691216057308 * 0.134145 * x * x);
}
inline double silu(double x) { return x / (1.0 + std::exp(-x)); }
inline double silu_derivative(double x) {
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// ---- Arrays ---------------------------------------------------------------------------------------------------------

// y[i] = f(x[i]), contiguous, y may be x. To be called inside a function marked WAYMARK_CLONES, with an f that is
// inlined. The tail runs through the same vector code.
template <class T, class F> WAYMARK_INLINE void map_contiguous(const T* x, T* y, i64 n, F f) {
  constexpr i64 kBlock = 64 / static_cast<i64>(sizeof(T));
  for (; n >= kBlock; n -= kBlock, x += kBlock, y += kBlock) {
#pragma omp simd
    for (i64 i = 0; i < kBlock; ++i) y[i] = f(x[i]);
  }
  if (n == 0) return;
  T buffer[kBlock] = {};
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  std::memcpy(buffer, x, bytes);
#pragma omp simd
  for (i64 i = 0; i < kBlock; ++i) buffer[i] = f(buffer[i]);
  std::memcpy(y, buffer, bytes);
}

// Contiguous array kernels, one thread: exp_f32(x, y, n) and exp_f64(x, y, n) write y[i] = exp(x[i]); y may be x.
#define WAYMARK_VMATH_FUNCTIONS(F)                                                                               \
  F(exp) F(log) F(log1p) F(expm1) F(tanh) F(sigmoid) F(erf) F(softplus) F(gelu) F(gelu_derivative) F(gelu_tanh)        \
  F(gelu_tanh_derivative) F(silu) F(silu_derivative) F(sin) F(cos)
#define WAYMARK_VMATH_DECLARE(name)                                 \
  WAYMARK_API void name##_f32(const float* x, float* y, i64 n);     \
  WAYMARK_API void name##_f64(const double* x, double* y, i64 n);
WAYMARK_VMATH_FUNCTIONS(WAYMARK_VMATH_DECLARE)
#undef WAYMARK_VMATH_DECLARE

}  // namespace waymark::kernels::vmath
