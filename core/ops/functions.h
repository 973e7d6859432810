// More elementwise functions. b8 and i64 inputs of exp2, atan, ... give the default float.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor exp2(Arg x);
[[nodiscard]] WAYMARK_API Tensor expm1(Arg x);  // eˣ − 1
[[nodiscard]] WAYMARK_API Tensor log2(Arg x);
[[nodiscard]] WAYMARK_API Tensor log10(Arg x);
[[nodiscard]] WAYMARK_API Tensor log1p(Arg x);  // log(1 + x)
[[nodiscard]] WAYMARK_API Tensor tan(Arg x);
[[nodiscard]] WAYMARK_API Tensor asin(Arg x);
[[nodiscard]] WAYMARK_API Tensor acos(Arg x);
[[nodiscard]] WAYMARK_API Tensor atan(Arg x);
[[nodiscard]] WAYMARK_API Tensor sinh(Arg x);
[[nodiscard]] WAYMARK_API Tensor cosh(Arg x);
[[nodiscard]] WAYMARK_API Tensor asinh(Arg x);
[[nodiscard]] WAYMARK_API Tensor acosh(Arg x);
[[nodiscard]] WAYMARK_API Tensor atanh(Arg x);
[[nodiscard]] WAYMARK_API Tensor erfc(Arg x);  // 1 − erf x
[[nodiscard]] WAYMARK_API Tensor erfinv(Arg x);
// log(x/(1 − x)); with eps of x limited to [eps, 1 − eps], derivative 0 outside. Without: NaN outside [0, 1].
[[nodiscard]] WAYMARK_API Tensor logit(Arg x, std::optional<double> eps = {});
// Unset: the largest and smallest finite numbers of the dtype.
[[nodiscard]] WAYMARK_API Tensor nan_to_num(Arg x, double nan = 0, std::optional<double> posinf = {},
                                            std::optional<double> neginf = {});
[[nodiscard]] WAYMARK_API Tensor positive(Arg x);
// Derivative 0 (frac: 1); requires_grad is kept. round: half to even, at so many decimals.
[[nodiscard]] WAYMARK_API Tensor trunc(Arg x);
[[nodiscard]] WAYMARK_API Tensor frac(Arg x);
[[nodiscard]] WAYMARK_API Tensor round(Arg x, i64 decimals = 0);
// b8, no gradient.
[[nodiscard]] WAYMARK_API Tensor isinf(Arg x);
[[nodiscard]] WAYMARK_API Tensor isposinf(Arg x);
[[nodiscard]] WAYMARK_API Tensor isneginf(Arg x);
[[nodiscard]] WAYMARK_API Tensor signbit(Arg x);

[[nodiscard]] WAYMARK_API Tensor atan2(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor hypot(Arg a, Arg b);      // √(a² + b²), derivative 0 at (0, 0)
[[nodiscard]] WAYMARK_API Tensor logaddexp(Arg a, Arg b);  // log(eᵃ + eᵇ)
[[nodiscard]] WAYMARK_API Tensor xlogy(Arg a, Arg b);      // a·log b, 0 where a = 0 (unless b is NaN)
[[nodiscard]] WAYMARK_API Tensor xlogy(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor xlogy(Scalar a, Arg b);
[[nodiscard]] WAYMARK_API Tensor xlog1py(Arg a, Arg b);    // a·log(1 + b)
[[nodiscard]] WAYMARK_API Tensor copysign(Arg a, Arg b);
// A NaN operand is ignored; on a tie the gradient goes to the first.
[[nodiscard]] WAYMARK_API Tensor fmax(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor fmin(Arg a, Arg b);
// Rounded division: "floor" or "trunc"; derivative 0. i64 stays i64; a divisor of 0 is then an Error with its position.
[[nodiscard]] WAYMARK_API Tensor div(Arg a, Arg b, std::string_view rounding_mode);
[[nodiscard]] WAYMARK_API Tensor div(Arg a, Scalar b, std::string_view rounding_mode);
[[nodiscard]] WAYMARK_API Tensor floor_divide(Arg a, Arg b);  // no gradient
[[nodiscard]] WAYMARK_API Tensor floor_divide(Arg a, Scalar b);
// a − b·⌊a/b⌋, with the divisor's sign; fmod: with the dividend's.
[[nodiscard]] WAYMARK_API Tensor remainder(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor remainder(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor fmod(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor fmod(Arg a, Scalar b);
// [x > 0], and `values` where x = 0. No gradient.
[[nodiscard]] WAYMARK_API Tensor heaviside(Arg x, Arg values);

// a + w·(b − a)
[[nodiscard]] WAYMARK_API Tensor lerp(Arg a, Arg b, Arg weight);
[[nodiscard]] WAYMARK_API Tensor lerp(Arg a, Arg b, Scalar weight);
// x + value·a·b, x + value·a/b
[[nodiscard]] WAYMARK_API Tensor addcmul(Arg x, Arg a, Arg b, Scalar value = 1);
[[nodiscard]] WAYMARK_API Tensor addcdiv(Arg x, Arg a, Arg b, Scalar value = 1);
// Limits that are tensors (one may be undefined); max wins where min > max.
[[nodiscard]] WAYMARK_API Tensor clamp(Arg x, Arg min, Arg max);
// v: 0-d. Its gradient is the sum of g at the mask.
[[nodiscard]] WAYMARK_API Tensor masked_fill(Arg x, Arg mask, Arg v);

// b8 and i64; no gradient. Shifts: i64; right_shift keeps the sign.
[[nodiscard]] WAYMARK_API Tensor bitwise_and(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor bitwise_or(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor bitwise_xor(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor bitwise_not(Arg x);
[[nodiscard]] WAYMARK_API Tensor left_shift(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor right_shift(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor bitwise_and(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor bitwise_or(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor bitwise_xor(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor left_shift(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor right_shift(Arg a, Scalar b);
[[nodiscard]] inline Tensor operator&(Arg a, Arg b) { return bitwise_and(a, b); }
[[nodiscard]] inline Tensor operator|(Arg a, Arg b) { return bitwise_or(a, b); }
[[nodiscard]] inline Tensor operator^(Arg a, Arg b) { return bitwise_xor(a, b); }
[[nodiscard]] inline Tensor operator%(Arg a, Arg b) { return remainder(a, b); }
[[nodiscard]] inline Tensor operator&(Arg a, Scalar b) { return bitwise_and(a, b); }
[[nodiscard]] inline Tensor operator|(Arg a, Scalar b) { return bitwise_or(a, b); }
[[nodiscard]] inline Tensor operator^(Arg a, Scalar b) { return bitwise_xor(a, b); }
[[nodiscard]] inline Tensor operator%(Arg a, Scalar b) { return remainder(a, b); }
[[nodiscard]] inline Tensor operator~(Arg x) { return bitwise_not(x); }

// |a − b| ≤ atol + rtol·|b|; infinities equal themselves, NaN does if equal_nan.
[[nodiscard]] WAYMARK_API Tensor isclose(Arg a, Arg b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
[[nodiscard]] WAYMARK_API bool allclose(Arg a, Arg b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
// Same shape and same values.
[[nodiscard]] WAYMARK_API bool equal(Arg a, Arg b);

}  // namespace waymark
