// Bounds of a parameter: the interval that its values must stay in. They belong to the tensor: whoever changes values,
// an optimizer above all, projects them back. A forward that reads a parameter with bounds takes projected()
// (core/ops/projection.h): a state that was loaded may lie outside.
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace waymark {

struct Bounds {
  double low = 0, high = 0;  // both allowed
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// Of a leaf of a float dtype. Error unless low <= high; infinities are fine, NaN is not.
WAYMARK_API void set_bounds(const Tensor& t, Bounds bounds);
WAYMARK_API std::optional<Bounds> bounds_of(const Tensor& t);

}  // namespace waymark
