// Arithmetic, comparison and selection of one or two tensors. Inputs broadcast.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// a + alpha·b
[[nodiscard]] WAYMARK_API Tensor add(Arg a, Arg b, Scalar alpha = 1);
[[nodiscard]] WAYMARK_API Tensor add(Arg a, Scalar b, Scalar alpha = 1);
// a − alpha·b. b8 is refused: use logical_xor or logical_not.
[[nodiscard]] WAYMARK_API Tensor sub(Arg a, Arg b, Scalar alpha = 1);
[[nodiscard]] WAYMARK_API Tensor sub(Arg a, Scalar b, Scalar alpha = 1);
[[nodiscard]] WAYMARK_API Tensor rsub(Arg a, Scalar b);  // b − a
[[nodiscard]] WAYMARK_API Tensor mul(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor mul(Arg a, Scalar b);
// True division: the result is float.
[[nodiscard]] WAYMARK_API Tensor div(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor div(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor neg(Arg x);
// NaN wins; on a tie each operand gets half of the gradient.
[[nodiscard]] WAYMARK_API Tensor maximum(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor minimum(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor pow(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor pow(Arg a, Scalar exponent);
[[nodiscard]] WAYMARK_API Tensor pow(Scalar base, Arg exponent);

// b8 results, no gradient; NaN compares false (ne: true).
[[nodiscard]] WAYMARK_API Tensor eq(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor ne(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor lt(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor le(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor gt(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor ge(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor eq(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor ne(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor lt(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor le(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor gt(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor ge(Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor logical_and(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor logical_or(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor logical_xor(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor logical_not(Arg x);

// condition (b8) ? a : b
[[nodiscard]] WAYMARK_API Tensor where(Arg condition, Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor where(Arg condition, Arg a, Scalar b);
[[nodiscard]] WAYMARK_API Tensor where(Arg condition, Scalar a, Arg b);
[[nodiscard]] WAYMARK_API Tensor where(Arg condition, Scalar a, Scalar b);  // b8, i64 or the default float
// x with v where mask (b8) is true. Never multiply a mask by infinity: that gives NaN.
[[nodiscard]] WAYMARK_API Tensor masked_fill(Arg x, Arg mask, Scalar v);

[[nodiscard]] inline Tensor operator+(Arg a, Arg b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(Arg a, Arg b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(Arg a, Arg b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(Arg a, Arg b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(Arg a, Scalar b) { return add(a, b); }
[[nodiscard]] inline Tensor operator-(Arg a, Scalar b) { return sub(a, b); }
[[nodiscard]] inline Tensor operator*(Arg a, Scalar b) { return mul(a, b); }
[[nodiscard]] inline Tensor operator/(Arg a, Scalar b) { return div(a, b); }
[[nodiscard]] inline Tensor operator+(Scalar a, Arg b) { return add(b, a); }
[[nodiscard]] inline Tensor operator-(Scalar a, Arg b) { return rsub(b, a); }
[[nodiscard]] inline Tensor operator*(Scalar a, Arg b) { return mul(b, a); }
[[nodiscard]] WAYMARK_API Tensor operator/(Scalar a, Arg b);
[[nodiscard]] inline Tensor operator-(Arg a) { return neg(a); }
[[nodiscard]] inline Tensor operator<(Arg a, Arg b) { return lt(a, b); }
[[nodiscard]] inline Tensor operator<=(Arg a, Arg b) { return le(a, b); }
[[nodiscard]] inline Tensor operator>(Arg a, Arg b) { return gt(a, b); }
[[nodiscard]] inline Tensor operator>=(Arg a, Arg b) { return ge(a, b); }
[[nodiscard]] inline Tensor operator==(Arg a, Arg b) { return eq(a, b); }
[[nodiscard]] inline Tensor operator!=(Arg a, Arg b) { return ne(a, b); }
[[nodiscard]] inline Tensor operator<(Arg a, Scalar b) { return lt(a, b); }
[[nodiscard]] inline Tensor operator<=(Arg a, Scalar b) { return le(a, b); }
[[nodiscard]] inline Tensor operator>(Arg a, Scalar b) { return gt(a, b); }
[[nodiscard]] inline Tensor operator>=(Arg a, Scalar b) { return ge(a, b); }
[[nodiscard]] inline Tensor operator==(Arg a, Scalar b) { return eq(a, b); }
[[nodiscard]] inline Tensor operator!=(Arg a, Scalar b) { return ne(a, b); }
[[nodiscard]] inline Tensor operator<(Scalar a, Arg b) { return gt(b, a); }
[[nodiscard]] inline Tensor operator<=(Scalar a, Arg b) { return ge(b, a); }
[[nodiscard]] inline Tensor operator>(Scalar a, Arg b) { return lt(b, a); }
[[nodiscard]] inline Tensor operator>=(Scalar a, Arg b) { return le(b, a); }
[[nodiscard]] inline Tensor operator==(Scalar a, Arg b) { return eq(b, a); }
[[nodiscard]] inline Tensor operator!=(Scalar a, Arg b) { return ne(b, a); }

}  // namespace waymark
