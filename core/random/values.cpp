#include "core/random/values.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/clones.h"
#include "core/random/elementary.h"

namespace waymark::random_values {

namespace {

__extension__ using u128 = unsigned __int128;

constexpr double kUnit = 0x1p-53;

// x >> 11 as a double, through halves that fit 32-bit integers (conversions that vectorise everywhere); exact.
WAYMARK_RANDOM_INLINE double top53(u32 low, u32 high) {
  const i32 upper = static_cast<i32>(high >> 5);                           // 27 bits
  const i32 lower = static_cast<i32>((high & 31u) << 21 | low >> 11);      // 26 bits
  return static_cast<double>(upper) * 0x1p26 + static_cast<double>(lower);
}
WAYMARK_RANDOM_INLINE float top24(u32 high) { return static_cast<float>(static_cast<i32>(high >> 8)); }

template <class T> WAYMARK_RANDOM_INLINE void normal_of(const PhiloxWords& words, int n, T* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const double u1 = (top53(words.w[0][i], words.w[1][i]) + 1.0) * kUnit;
    const double u2 = top53(words.w[2][i], words.w[3][i]) * kUnit;
    const double r = std::sqrt(-2.0 * elementary::log(u1));
    const elementary::SinCos turn = elementary::sin_cos_turn(u2);
    out[2 * i] = static_cast<T>(r * turn.cos);
    out[2 * i + 1] = static_cast<T>(r * turn.sin);
  }
}

WAYMARK_RANDOM_INLINE double exponential_of(u32 low, u32 high) {
  return 0.0 - elementary::log((top53(low, high) + 1.0) * kUnit);
}

template <class T> WAYMARK_RANDOM_INLINE void exponential_of(const PhiloxWords& words, int n, T* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = static_cast<T>(exponential_of(words.w[0][i], words.w[1][i]));
    out[2 * i + 1] = static_cast<T>(exponential_of(words.w[2][i], words.w[3][i]));
  }
}

// u = (k + 1/2) 2^-53 needs 54 bits when k >= 2^52; 1 - u does not, and is what ln u depends on near u = 1.
WAYMARK_RANDOM_INLINE double gumbel_of(u32 low, u32 high) {
  const double k = top53(low, high), below_one = ((9007199254740992.0 - k) - 0.5) * kUnit;
  elementary::LogParts parts = elementary::log_parts((k + 0.5) * kUnit);
  const bool near_one = below_one <= 0.25;
  parts.f = near_one ? -below_one : parts.f;
  parts.e = near_one ? 0.0 : parts.e;
  return 0.0 - elementary::log(0.0 - elementary::log_of(parts));
}

template <class T> WAYMARK_RANDOM_INLINE void gumbel_of(const PhiloxWords& words, int n, T* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = static_cast<T>(gumbel_of(words.w[0][i], words.w[1][i]));
    out[2 * i + 1] = static_cast<T>(gumbel_of(words.w[2][i], words.w[3][i]));
  }
}

}  // namespace

WAYMARK_CLONES
void bits(const PhiloxWords& words, int n, u64* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = u64{words.w[0][i]} | u64{words.w[1][i]} << 32;
    out[2 * i + 1] = u64{words.w[2][i]} | u64{words.w[3][i]} << 32;
  }
}

WAYMARK_CLONES
void uniform(const PhiloxWords& words, int n, float* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = top24(words.w[1][i]) * 0x1p-24f;
    out[2 * i + 1] = top24(words.w[3][i]) * 0x1p-24f;
  }
}
WAYMARK_CLONES
void uniform(const PhiloxWords& words, int n, double* __restrict out) {
  for (int i = 0; i < n; ++i) {
    out[2 * i] = top53(words.w[0][i], words.w[1][i]) * kUnit;
    out[2 * i + 1] = top53(words.w[2][i], words.w[3][i]) * kUnit;
  }
}

WAYMARK_CLONES
void normal(const PhiloxWords& words, int n, float* out) { normal_of(words, n, out); }
WAYMARK_CLONES
void normal(const PhiloxWords& words, int n, double* out) { normal_of(words, n, out); }

WAYMARK_CLONES
void exponential(const PhiloxWords& words, int n, float* out) { exponential_of(words, n, out); }
WAYMARK_CLONES
void exponential(const PhiloxWords& words, int n, double* out) { exponential_of(words, n, out); }

WAYMARK_CLONES
void gumbel(const PhiloxWords& words, int n, float* out) { gumbel_of(words, n, out); }
WAYMARK_CLONES
void gumbel(const PhiloxWords& words, int n, double* out) { gumbel_of(words, n, out); }

i64 randint_of(u64 x, i64 low, u64 range) {
  return static_cast<i64>(static_cast<u64>(low) + static_cast<u64>(u128{x} * range >> 64));
}

void randint(const PhiloxWords& words, int n, i64 low, u64 range, i64* out) {
  u64 x[2 * kPhiloxBatch];
  bits(words, n, x);
  for (int i = 0; i < 2 * n; ++i) out[i] = randint_of(x[i], low, range);
}

WAYMARK_CLONES
void not_below(const PhiloxWords& words, int n, u64 threshold, u8* __restrict out) {
  if (threshold > 0xffffffffu) {
    std::fill_n(out, 4 * n, u8{0});
    return;
  }
  const u32 bound = static_cast<u32>(threshold);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 4; ++j) out[4 * i + j] = words.w[j][i] >= bound;
}

void below(const PhiloxWords& words, int n, u64 threshold, u8* out) {
  not_below(words, n, threshold, out);
  for (int i = 0; i < 4 * n; ++i) out[i] ^= 1;
}

TruncNormal::TruncNormal(double a, double b) : a_(a), b_(b), mirrored_(a > 0.0) {
  using elementary::normal_cdf_lower;
  if (mirrored_) {
    base_ = normal_cdf_lower(-a);
    width_ = normal_cdf_lower(-b) - base_;
    rest_ = 0.0;
    return;
  }
  base_ = normal_cdf_lower(a);
  rest_ = b > 0.0 ? normal_cdf_lower(-b) : 0.0;  // the tail above b
  width_ = b > 0.0 ? (0.5 - base_) + (0.5 - rest_) : normal_cdf_lower(b) - base_;
}

double TruncNormal::operator()(double u) const {
  constexpr double kLeast = 0x1p-54;  // half a step of u: keeps draws of a half-infinite interval finite
  const bool open = mirrored_ ? b_ > 38.0 : a_ < -38.0;
  double p = base_ + u * width_;
  if (open) p = std::max(p, kLeast * std::abs(width_));
  double x;
  if (mirrored_) {
    x = -elementary::normal_quantile_lower(p);
  } else if (p <= 0.5) {
    x = elementary::normal_quantile_lower(p);
  } else {
    x = -elementary::normal_quantile_lower(std::max(rest_ + (1.0 - u) * width_, kLeast));
  }
  return std::clamp(x, a_, b_);
}

}  // namespace waymark::random_values
