// Internal: windows of a tensor by shape, strides and offset in its storage.
#pragma once

#include <utility>

#include "core/autograd/record.h"

namespace waymark::ops {

struct Geometry {
  Shape shape, strides;
  i64 offset = 0;
};
inline Geometry geometry_of(const Tensor& t) { return {t.shape(), t.strides(), t.offset()}; }

// Lowest and highest place of a geometry; there is an element.
inline std::pair<i64, i64> reach(const Geometry& g) {
  i64 low = g.offset, high = g.offset;
  for (int i = 0; i < g.shape.size(); ++i) (g.strides[i] < 0 ? low : high) += g.strides[i] * (g.shape[i] - 1);
  return {low, high};
}

// Recorded. x has the shape of `base` and is seen as if it had its layout; `view` lies in it and has no two elements in
// one place. The window, copied; x with `value` in the window.
Tensor read_window(Arg x, const Geometry& base, const Geometry& view);
Tensor write_window(Arg x, Arg value, const Geometry& base, const Geometry& view);

}  // namespace waymark::ops
