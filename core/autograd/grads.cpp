#include "core/autograd/grads.h"

namespace waymark {

Tensor Window::of(const Tensor& t) const {
  Shape shape = t.shape(), strides = t.strides();
  i64 offset = t.offset();
  switch (kind) {
    case Kind::slice:
      offset += start * strides[dim];
      shape[dim] = length;
      strides[dim] *= step;
      break;
    case Kind::select:
      offset += start * strides[dim];
      shape.erase(dim);
      strides.erase(dim);
      break;
    case Kind::diagonal: {
      const i64 rows = shape[dim], columns = shape[dim2], both = strides[dim] + strides[dim2];
      const i64 n = std::max<i64>(0, start >= 0 ? std::min(rows, columns - start) : std::min(rows + start, columns));
      if (n > 0) offset += start >= 0 ? start * strides[dim2] : -start * strides[dim];
      shape.erase(std::max(dim, dim2));
      shape.erase(std::min(dim, dim2));
      strides.erase(std::max(dim, dim2));
      strides.erase(std::min(dim, dim2));
      shape.push_back(n);
      strides.push_back(both);
      break;
    }
    case Kind::unfold: {
      const i64 stride = strides[dim];
      shape[dim] = (shape[dim] - length) / step + 1;
      strides[dim] = stride * step;
      shape.push_back(length);
      strides.push_back(stride);
      break;
    }
  }
  return alias(t, shape, strides, offset);
}

}  // namespace waymark
