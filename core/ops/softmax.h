// The softmax family. The largest entry of a slice is subtracted first. Slices of nothing but -inf,
// or with +inf or NaN, give NaN: use masked_softmax where places may be empty.
#pragma once

#include <optional>

#include "core/autograd/arg.h"

namespace waymark {

// e^x / Σ e^x over the axis `dim`. dtype: convert first.
[[nodiscard]] WAYMARK_API Tensor softmax(Arg x, i64 dim, std::optional<DType> dtype = {});
// softmax of -x
[[nodiscard]] WAYMARK_API Tensor softmin(Arg x, i64 dim, std::optional<DType> dtype = {});
// log softmax, without taking the logarithm of a small number
[[nodiscard]] WAYMARK_API Tensor log_softmax(Arg x, i64 dim, std::optional<DType> dtype = {});
// softmax of scale·x over the places where keep (b8, expands to x) is true; 0 elsewhere. A slice that keeps nothing has
// value 0 and gradient 0.
[[nodiscard]] WAYMARK_API Tensor masked_softmax(Arg x, Arg keep, i64 dim, double scale = 1);

}  // namespace waymark
