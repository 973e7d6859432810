// Walking over the elements of a tensor on the host, in logical (row-major) order. For printing, files and checks; the
// loops of ops are core/kernels' own.
#pragma once

#include "core/tensor/tensor.h"

namespace waymark {

// f(offset) for each element: its place counted in elements from t.raw().
template <class F> void for_each_offset(const Tensor& t, F&& f) {
  if (t.numel() == 0) return;
  const Shape &shape = t.shape(), &strides = t.strides();
  Shape index(shape.size());
  i64 at = 0;
  for (i64 n = t.numel(); n > 0; --n) {
    f(at);
    for (int i = shape.size() - 1; i >= 0; --i) {
      at += strides[i];
      if (++index[i] < shape[i]) break;
      at -= index[i] * strides[i];
      index[i] = 0;
    }
  }
}

// Row-major position of element `flat` in a tensor of this shape, for messages: "[1, 0]".
WAYMARK_API std::string position_text(const Shape& shape, i64 flat);

}  // namespace waymark
