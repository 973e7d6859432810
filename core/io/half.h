// Internal. IEEE binary16 (f16) and bfloat16 numbers, which exist in files only: exact to f32, and from f64 (or f32,
// which f64 holds exactly) with one rounding.
#pragma once

#include <bit>

#include "core/tensor/types.h"

namespace waymark {

// kFraction bits of fraction after a sign and kExponent bits of exponent, as the high bits of a u16.
template <int kExponent, int kFraction> struct Half {
  static_assert(1 + kExponent + kFraction == 16);
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr u32 kInfinity = ((1u << kExponent) - 1) << kFraction;

  static float to_f32(u16 bits) {
    const u32 sign = u32{bits} >> 15 << 31, exponent = (u32{bits} & kInfinity) >> kFraction;
    u32 fraction = bits & ((1u << kFraction) - 1);
    if (exponent == kInfinity >> kFraction)  // infinities, and NaN with what it carries
      return std::bit_cast<float>(sign | 0x7f800000u | fraction << (23 - kFraction));
    if (exponent > 0)
      return std::bit_cast<float>(sign | (exponent + 127 - kBias) << 23 | fraction << (23 - kFraction));
    if constexpr (kBias == 127) return std::bit_cast<float>(sign | fraction << (23 - kFraction));  // in f32 one too
    if (fraction == 0) return std::bit_cast<float>(sign);
    const int shift = std::countl_zero(fraction) - (31 - kFraction);  // until the leading 1 is the hidden one
    fraction = (fraction << shift) & ((1u << kFraction) - 1);
    return std::bit_cast<float>(sign | static_cast<u32>(128 - kBias - shift) << 23 | fraction << (23 - kFraction));
  }

  // Nearest, ties to even; too large becomes infinite; NaN stays NaN.
  static u16 from_f64(double value) {
    const u64 bits = std::bit_cast<u64>(value);
    const u32 sign = static_cast<u32>(bits >> 63) << 15;
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
    u64 fraction = bits & ((u64{1} << 52) - 1);
    if (exponent == 1024) {
      const u32 quiet = 1u << (kFraction - 1);  // so that a NaN whose high bits are 0 does not become an infinity
      const u32 carried = fraction ? quiet | static_cast<u32>(fraction >> (52 - kFraction)) : 0;
      return static_cast<u16>(sign | kInfinity | carried);
    }
    if (exponent > kBias) return static_cast<u16>(sign | kInfinity);
    // Below the normal range the last place stays where it is, so more bits fall off.
    const int below = 1 - kBias - exponent;
    const int drop = 52 - kFraction + (below > 0 ? below : 0);
    if (drop > 53) return static_cast<u16>(sign);  // less than half of the smallest denormal
    fraction |= u64{1} << 52;
    u64 kept = fraction >> drop;
    const u64 rest = fraction & ((u64{1} << drop) - 1), half = u64{1} << (drop - 1);
    if (rest > half || (rest == half && (kept & 1))) ++kept;
    // A normal number keeps its hidden bit, which adds 1 to the exponent; so does a carry, up to infinity.
    if (below <= 0) kept += static_cast<u64>(exponent + kBias - 1) << kFraction;
    return static_cast<u16>(sign | static_cast<u32>(kept));
  }
};
using F16 = Half<5, 10>;
using BF16 = Half<8, 7>;

}  // namespace waymark
