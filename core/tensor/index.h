// Arguments of Tensor::index: Slice, integers, None, Ellipsis, tensors.
#pragma once

#include <limits>
#include <optional>

#include "core/tensor/types.h"

namespace waymark {

inline constexpr i64 kNoBound = std::numeric_limits<i64>::max();

// Python's start:stop:step. Ends are clamped; negative ones count from the end; a negative step is allowed (a view).
struct Slice {
  i64 start = kNoBound, stop = kNoBound, step = 1;  // kNoBound: from / to the end
};
struct NoneIndex {};
struct EllipsisIndex {};
inline constexpr NoneIndex None{};
inline constexpr EllipsisIndex Ellipsis{};

}  // namespace waymark
