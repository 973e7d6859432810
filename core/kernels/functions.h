// Inner loops of the rarer elementwise functions; those of every step are in elementwise.h. An element has the same
// bits in any layout. Same dtype in and out; null: the function has no such dtype.
#pragma once

#include "core/kernels/elementwise.h"

namespace waymark::kernels {

// f32 and f64. Parameters p in the order given.
enum class Function : u8 {
  exp2,
  expm1,
  log2,
  log10,
  log1p,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  erfc,
  erfinv,
  trunc,
  frac,
  round,       // p0 = 10^|decimals|, p1 = 1 for negative decimals; half to even
  logit,       // log(x / (1 − x)); p0 <= x <= p1 first, unless p0 is NaN
  nan_to_num,  // NaN -> p0, +inf -> p1, -inf -> p2
};
UnaryLoop function_loop(Function f, DType t);

enum class Pair : u8 {
  // f32 and f64
  atan2,
  hypot,
  logaddexp,
  xlogy,
  xlog1py,
  copysign,
  fmax,
  fmin,
  heaviside,
  trunc_divide,
  // f32, f64, i64 (where the divisor is not 0)
  remainder,
  fmod,
  floor_divide,
  // i64; and, or, xor also b8. Shifts by less than 0 or more than 63 bits shift everything out.
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,
  right_shift,
};
BinaryLoop pair_loop(Pair f, DType t);

}  // namespace waymark::kernels
