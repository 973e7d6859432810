#include "core/io/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

using namespace waymark;

namespace {

// The definition, in f64 arithmetic: sign, and fraction times a power of two.
template <int kExponent, int kFraction> double value_of(u16 bits) {
  const int exponent = (bits >> kFraction) & ((1 << kExponent) - 1), fraction = bits & ((1 << kFraction) - 1);
  const int bias = (1 << (kExponent - 1)) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << kExponent) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - kFraction);
  return sign * std::ldexp(fraction + (1 << kFraction), exponent - bias - kFraction);
}

// Every one of the 65,536 numbers: read by the definition, written back as it was; and all points around the middle
// between neighbours go to the nearer one, the middle itself to the even one.
template <class H, int kExponent, int kFraction> void check_all() {
  int wrong = 0;
  for (u32 i = 0; i < 65536; ++i) {
    const auto bits = static_cast<u16>(i);
    const double expected = value_of<kExponent, kFraction>(bits), read = double{H::to_f32(bits)};
    if (std::isnan(expected)) {
      wrong += !std::isnan(read) || !std::isnan(H::to_f32(H::from_f64(read)));
      wrong += std::signbit(H::to_f32(bits)) != (bits >> 15 != 0);
      continue;
    }
    wrong += read != expected || std::signbit(read) != std::signbit(expected);
    wrong += H::from_f64(expected) != bits;
    const auto next = static_cast<u16>(bits + 1);
    if ((bits & 0x7fff) == H::kInfinity) continue;
    // The neighbour of the largest number is where infinity would stand if it were a number.
    const double up = (next & 0x7fff) == H::kInfinity
                          ? std::copysign(std::ldexp(1.0, H::kBias + 1), expected)
                          : value_of<kExponent, kFraction>(next);
    const double middle = expected + (up - expected) / 2;
    wrong += H::from_f64(middle) != (bits % 2 == 0 ? bits : next);
    wrong += H::from_f64(std::nextafter(middle, expected)) != bits;
    wrong += H::from_f64(std::nextafter(middle, up)) != next;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("f16 and bf16: all numbers both ways, and every tie") {
  check_all<F16, 5, 10>();
  check_all<BF16, 8, 7>();
}

TEST_CASE("f16 and bf16: rows of the reference table (V9)") {
  const auto f16 = [](double v) { return F16::to_f32(F16::from_f64(v)); };
  const auto bf16 = [](double v) { return BF16::to_f32(BF16::from_f64(v)); };
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(f16(65519) == 65504.0f);
  CHECK(f16(65520) == inf);
  CHECK(f16(-65520) == -inf);
  CHECK(f16(1e-8) == 0.0f);
  CHECK(f16(5.97e-8) == 5.9604645e-8f);
  CHECK(bf16(1.00390625) == 1.0f);
  CHECK(bf16(1.01171875) == 1.015625f);
  CHECK(bf16(3.4e38) == inf);
}

TEST_CASE("f16 and bf16: the smallest and largest f64, and zeros") {
  for (const double v : {5e-324, 1e-300, 0.0}) {
    CHECK(F16::from_f64(v) == 0);
    CHECK(F16::from_f64(-v) == 0x8000);
    CHECK(BF16::from_f64(v) == 0);
  }
  CHECK(F16::from_f64(1.7e308) == 0x7c00);
  CHECK(BF16::from_f64(-1.7e308) == 0xff80);
  // One rounding: through f32 this would be a tie and go down to 1.
  CHECK(F16::to_f32(F16::from_f64(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10f);
  // A NaN with only low bits of payload is still a NaN.
  CHECK(F16::from_f64(std::bit_cast<double>(u64{0x7ff0000000000001})) == 0x7e00);
}
