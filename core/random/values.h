// Internal: Philox words -> values, a batch of blocks at a time, by the rules of the table in draws.h.
// Each function writes all values of `n` blocks in column order: 2 per block where a value takes 64 bits
// (x = w0 | w1 << 32 for the even column, w2 | w3 << 32 for the odd one), 4 where it takes 32.
#pragma once

#include "core/random/philox.h"

namespace waymark::random_values {

void bits(const PhiloxWords& words, int n, u64* out);
void uniform(const PhiloxWords& words, int n, float* out);
void uniform(const PhiloxWords& words, int n, double* out);
void normal(const PhiloxWords& words, int n, float* out);
void normal(const PhiloxWords& words, int n, double* out);
void exponential(const PhiloxWords& words, int n, float* out);
void exponential(const PhiloxWords& words, int n, double* out);
void gumbel(const PhiloxWords& words, int n, float* out);
void gumbel(const PhiloxWords& words, int n, double* out);
// low + floor(x * range / 2^64); range = high - low modulo 2^64.
i64 randint_of(u64 x, i64 low, u64 range);
void randint(const PhiloxWords& words, int n, i64 low, u64 range, i64* out);
// 1 where w < threshold, 0 <= threshold <= 2^32 (32-bit values).
void below(const PhiloxWords& words, int n, u64 threshold, u8* out);
// 1 where w >= threshold.
void not_below(const PhiloxWords& words, int n, u64 threshold, u8* out);

// The standard normal distribution cut to [a, b].
class TruncNormal {
 public:
  TruncNormal(double a, double b);  // a < b, not NaN; may be infinite
  double operator()(double u) const;

 private:
  // P = base + u * width is the lower tail; if the interval is right of 0 it is mirrored, so that tails stay exact.
  double a_, b_, base_, width_, rest_;
  bool mirrored_;
};

}  // namespace waymark::random_values
