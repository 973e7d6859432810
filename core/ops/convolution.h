// One-dimensional convolutions: y[n,o,t] = b_o + Σ_(c,k) w[o,c,k]·x[n,c,t·stride + k·dilation − pad].
#pragma once

#include <optional>
#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// Zeros on both sides; "valid": none; "same": as many as keep the length, an odd one on the right.
class ConvPadding {
 public:
  ConvPadding(i64 both) : both_(both) {}                        // NOLINT: implicit on purpose
  ConvPadding(int both) : both_(both) {}                        // NOLINT
  ConvPadding(std::string_view word) : word_(word) {}           // NOLINT
  ConvPadding(const char* word) : word_(word) {}                // NOLINT
  i64 both() const { return both_; }
  std::string_view word() const { return word_; }  // empty: a number

 private:
  i64 both_ = 0;
  std::string_view word_;
};

// x (N, Ci, L) or (Ci, L), weight (Co, Ci/groups, K), bias (Co). "same" needs stride 1.
[[nodiscard]] WAYMARK_API Tensor conv1d(Arg x, Arg weight, const Tensor& bias = {}, i64 stride = 1, ConvPadding padding = 0,
                                        i64 dilation = 1, i64 groups = 1);
// The adjoint of conv1d: x (N, Ci, L) or (Ci, L), weight (Ci, Co/groups, K), bias (Co); the length becomes
// (L − 1)·stride − 2·padding + dilation·(K − 1) + output_padding + 1.
[[nodiscard]] WAYMARK_API Tensor conv_transpose1d(Arg x, Arg weight, const Tensor& bias = {}, i64 stride = 1, i64 padding = 0,
                                                  i64 output_padding = 0, i64 groups = 1, i64 dilation = 1);

}  // namespace waymark
