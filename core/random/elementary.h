// Internal: the elementary functions of the random kernels. Only + - * / sqrt and polynomials in a fixed order, so that
// a draw has the same bits on every CPU and with every C library; core/random is compiled with -ffp-contract=off.
// All are branch-free over their domain (and so vectorise) unless said otherwise. The coefficients are minimax fits
// (Remez exchange in 50 digits); the error of each fit is given beside it.
#pragma once

#include <bit>
#include <cmath>

#include "core/tensor/types.h"

#define WAYMARK_RANDOM_INLINE [[gnu::always_inline]] inline

namespace waymark::elementary {

// Horner's rule, c[0] + c[1] x + ...
template <int N> WAYMARK_RANDOM_INLINE double polynomial(const double (&c)[N], double x) {
  double y = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) y = y * x + c[i];
  return y;
}

// x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2). x must be positive, finite and normal.
struct LogParts {
  double f, e;
};
WAYMARK_RANDOM_INLINE LogParts log_parts(double x) {
  constexpr u64 kRootHalf = 0x3fe6a09e00000000u, kOne = 0x3ff0000000000000u, kMantissa = 0x000fffffffffffffu;
  const u64 shifted = std::bit_cast<u64>(x) + (kOne - kRootHalf);
  // The biased exponent as the low bits of 2^52 + exponent: an integer to double conversion that vectorises anywhere.
  const double e = std::bit_cast<double>(0x4330000000000000u | (shifted >> 52)) - (4503599627370496.0 + 1023.0);
  return {std::bit_cast<double>((shifted & kMantissa) + kRootHalf) - 1.0, e};
}

// ln(2^e (1 + f)): s = f/(2+f), ln(1+f) = 2s + s^3 P(s^2) = f - f^2/2 + s (f^2/2 + s^2 P(s^2)).
WAYMARK_RANDOM_INLINE double log_of(LogParts x) {
  constexpr double kP[] = {0.6666666666666735,  0.39999999999411556, 0.28571428743176186, 0.22222198483752095,
                           0.18183569378588454, 0.1531391164356967,  0.14797430530464498};  // 1.3e-18 of ln
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // e * kLn2High is exact
  const double s = x.f / (2.0 + x.f), z = s * s, half = 0.5 * x.f * x.f;
  return x.e * kLn2High - ((half - (s * (half + z * polynomial(kP, z)) + x.e * kLn2Low)) - x.f);
}
WAYMARK_RANDOM_INLINE double log(double x) { return log_of(log_parts(x)); }

// sin and cos of 2 pi u, 0 <= u < 1. The reduction to an eighth of a turn is exact.
struct SinCos {
  double sin, cos;
};
WAYMARK_RANDOM_INLINE SinCos sin_cos_turn(double u) {
  constexpr double kHalfPi = 1.5707963267948966;
  constexpr double kSin[] = {-0.645964097506245,      0.07969262624606252,     -0.004681754132611993,
                             0.00016044115256010872, -3.5986491861092156e-06, 5.634652156225014e-08};  // 3.5e-18
  constexpr double kCos[] = {0.2536695079010476,     -0.02086348076333076,   0.000919260274390402,
                             -2.520203791513838e-05, 4.7106414270011993e-07, -6.324734551270931e-09};  // 4.7e-20
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
  constexpr u64 kSign = u64{1} << 63;
  const double t = 4.0 * u, shifted = t + kRound;
  const u64 quarter = std::bit_cast<u64>(shifted);
  const double r = t - (shifted - kRound), z = r * r;  // |r| <= 1/2, the angle is r pi/2
  const double s = r * (kHalfPi + z * polynomial(kSin, z));
  const double c = (1.0 - 0.5 * kHalfPi * kHalfPi * z) + z * z * polynomial(kCos, z);
  const u64 swap = u64{0} - (quarter & 1), sb = std::bit_cast<u64>(s), cb = std::bit_cast<u64>(c);
  const u64 flip_sin = (quarter << 62) & kSign, flip_cos = ((quarter + 1) << 62) & kSign;
  return {std::bit_cast<double>(((sb & ~swap) | (cb & swap)) ^ flip_sin),
          std::bit_cast<double>(((cb & ~swap) | (sb & swap)) ^ flip_cos)};
}

// e^x for x <= 0 (0 below the smallest normal number). Has branches.
inline double exp_negative(double x) {
  constexpr double kE[] = {0.5000000000000013,     0.166666666666667,     0.041666666666514335,
                           0.008333333333306958,   0.0013888888947329277, 0.00019841269917921346,
                           2.4801489591723637e-05, 2.755721582217459e-06, 2.763141357862081e-07,
                           2.5118011585499763e-08};  // 3.5e-18
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33, kRound = 6755399441055744.0;
  if (x < -708.0) return 0.0;
  const double k = (x * 1.4426950408889634 + kRound) - kRound;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  return std::ldexp(1.0 + (r + r * r * polynomial(kE, r)), static_cast<int>(k));
}

// Phi(x) for x <= 0, the lower tail of the normal distribution, with relative accuracy (about 1e-15) as far as
// doubles reach. Phi(-t) = exp(-t^2/2) G(w) / (1 + t), w = (t - 4)/(t + 4); G by its Chebyshev series. Has branches.
inline double normal_cdf_lower(double x) {
  constexpr double kG[] = {
      0.4655865996963784,      -0.06423751712334332,    -0.011171509596721219,   0.01263630599437623,
      -0.004828490640131744,   0.0010793834106156014,   -0.0001194099520285248,  -6.8485883776766764e-06,
      4.060629718065491e-06,   -1.9527544708338363e-07, -1.1345944386467565e-07, 1.227397138426542e-08,
      3.662441203341559e-09,   -5.088948506210621e-10,  -1.4602402012093163e-10, 1.8321966529064227e-11,
      6.857544400027546e-12,   -5.077272058049455e-13,  -3.458064365204774e-13,  4.412922855809207e-16,
      1.7054866572266912e-14,  1.5123653278115066e-15,  -7.370100783416678e-16,  -1.6124885584264888e-16,
      2.1306926276508118e-17,  1.1734807140572358e-17};  // 1.8e-18
  const double t = -x;
  if (t > 38.0) return 0.0;  // also infinity
  const double w = (t - 4.0) / (t + 4.0);
  double b1 = 0.0, b2 = 0.0;  // Clenshaw
  for (int i = 25; i > 0; --i) {
    const double b = 2.0 * w * b1 - b2 + kG[i];
    b2 = b1;
    b1 = b;
  }
  const double g = w * b1 - b2 + kG[0];
  // t^2 = high^2 + (t - high)(t + high), high^2 exact.
  const double high = std::bit_cast<double>(std::bit_cast<u64>(t) & 0xfffffffff8000000u);
  return exp_negative(-0.5 * high * high) * exp_negative(-0.5 * (t - high) * (t + high)) * g / (1.0 + t);
}

// The x <= 0 with Phi(x) = p, 0 < p <= 1/2: sqrt(2) erfinv(2p - 1). Ranges as in Wichura's AS 241, own fits. Has
// branches.
inline double normal_quantile_lower(double p) {
  constexpr double kCentreNum[] = {3.3871328727963665, 133.14629278687227, 1971.7416204168633, 13733.432684087897,
                                   45930.54268234094,  67283.1895794703,   33442.03941143919,  2510.1804806812315};
  constexpr double kCentreDen[] = {1.0,                42.31469613226501,  687.2355940446942,  5394.825307397258,
                                   21217.433855666186, 39317.19732888664,  28738.060470891105, 5228.576010436226};
  constexpr double kNearNum[] = {1.4234371107496835, 4.626691520735797,  5.758309947113005,   3.635403667717959,
                                 1.2640645633585468, 0.2402163123812589, 0.02255824048123509, 0.0007690596046832319};
  constexpr double kNearDen[] = {1.0,
                                 2.0506299922717472,
                                 1.6715987763672746,
                                 0.6865451826531757,
                                 0.14716468927619283,
                                 0.015087735048647511,
                                 0.00054371532555093,
                                 1.0505555361334674e-09};
  constexpr double kFarNum[] = {6.657904643501103,
                                5.465339341448983,
                                1.7859942119344558,
                                0.2969000995884988,
                                0.02658031626486774,
                                0.0012460809868437054,
                                2.722660805746846e-05,
                                2.0224434512011714e-07};
  constexpr double kFarDen[] = {1.0,
                                0.6000656779508838,
                                0.1370537084516451,
                                0.014899319289464313,
                                0.000788919010978074,
                                1.853743097503105e-05,
                                1.430074033999641e-07,
                                2.079221192243867e-15};  // all three: < 8e-17
  const double q = p - 0.5;
  if (q >= -0.425) {
    const double v = 0.180625 - q * q;
    return q * (polynomial(kCentreNum, v) / polynomial(kCentreDen, v));
  }
  if (p < 0x1p-1022) return -38.0;
  const double t = std::sqrt(-log(p));
  if (t <= 5.0) return -(polynomial(kNearNum, t - 1.6) / polynomial(kNearDen, t - 1.6));
  return -(polynomial(kFarNum, t - 5.0) / polynomial(kFarDen, t - 5.0));
}

}  // namespace waymark::elementary
