// Internal: windows of a tensor by shape, strides and offset in its storage.
#pragma once

#include "core/autograd/record.h"

namespace waymark::ops {

struct Geometry {
  Shape shape, strides;
  i64 offset = 0;
};
inline Geometry geometry_of(const Tensor& t) { return {t.shape(), t.strides(), t.offset()}; }

// Recorded. x has the shape of `base` and is seen as if it had its layout; `view` lies in it and has no two elements in
// one place. The window, copied; x with `value` in the window.
Tensor read_window(Arg x, const Geometry& base, const Geometry& view);
Tensor write_window(Arg x, Arg value, const Geometry& base, const Geometry& view);

}  // namespace waymark::ops
