// TensorStats: facts about the values of a tensor, as cards, traces and stop points show them.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "core/tensor/tensor.h"

namespace waymark {

struct TensorStats {
  i64 count = 0, nan = 0, positive_inf = 0, negative_inf = 0, zeros = 0;
  // Of the finite values; NaN if there is none. sd: with n - 1 in the denominator.
  double min = NAN, max = NAN, mean = NAN, sd = NAN;
  double norm = 0;  // 2-norm; NaN or inf if a value is
  // Row-major positions of the first NaN, +inf and -inf; -1: there is none.
  i64 first_nan = -1, first_positive_inf = -1, first_negative_inf = -1;
  // Bin k counts 2^(k−24) ≤ |x| < 2^(k−23); the first and last also take what lies beyond; zeros are not counted.
  std::array<i64, 32> histogram{};

  i64 nonfinite() const { return nan + positive_inf + negative_inf; }
  double zero_share() const { return count ? static_cast<double>(zeros) / static_cast<double>(count) : 0; }
  bool all_zero() const { return count > 0 && zeros == count; }
};

// Of a defined tensor of any dtype and layout; an expanded tensor counts its repeated elements.
WAYMARK_API TensorStats stats_of(const Tensor& t);

// 0: all finite, 1: ±inf but no NaN, 2: NaN. 0 for i64 and b8, and for an undefined tensor.
WAYMARK_API int nonfinite_level(const Tensor& t);

// Σ a·b and Σ b² over two tensors of one shape, and the cosine of the angle between them; NaN where a norm is 0.
struct Alignment {
  double dot = 0, squares = 0, cosine = NAN;
};
WAYMARK_API Alignment alignment_of(const Tensor& a, const Tensor& b);

// "norm 0.031   [-0.008, 0.0076]   3 NaN": what fits on a line; "empty" without elements.
WAYMARK_API std::string short_text(const TensorStats& s);

}  // namespace waymark
