// Arguments of Tensor::index: Slice, integers, None, Ellipsis, tensors.
#pragma once

#include <limits>
#include <optional>

#include "core/tensor/types.h"

namespace waymark {

inline constexpr i64 kNoBound = std::numeric_limits<i64>::max();

struct NoneIndex {};
// An end of a Slice: a number or None (open).
struct SliceEnd {
  SliceEnd(i64 v) : value(v) {}        // NOLINT: implicit on purpose
  SliceEnd(int v) : value(v) {}        // NOLINT
  SliceEnd(NoneIndex) {}               // NOLINT
  i64 value = kNoBound;
};
// Python's start:stop:step. Ends are clamped; negative ones count from the end; a negative step is allowed (a view).
struct Slice {
  Slice() = default;
  Slice(SliceEnd a, SliceEnd b, i64 by = 1) : start(a.value), stop(b.value), step(by) {}
  i64 start = kNoBound, stop = kNoBound, step = 1;  // kNoBound: from / to the end
};
struct EllipsisIndex {};
inline constexpr NoneIndex None{};
inline constexpr EllipsisIndex Ellipsis{};

}  // namespace waymark
