#include "core/ops/rows.h"

namespace waymark::ops {
namespace {

// Axis `from` of a view moved to place `to`.
Tensor move_axis(const Tensor& t, int from, int to) {
  Shape shape = t.shape(), strides = t.strides();
  const i64 n = shape[from], step = strides[from];
  shape.erase(from);
  strides.erase(from);
  shape.insert(to, n);
  strides.insert(to, step);
  return alias(t, shape, strides, t.offset());
}

}  // namespace

Tensor axis_last(Tensor x, int dim) {
  if (x.dim() == 0) return alias(x, {1}, {1}, x.offset());
  if (dim != x.dim() - 1) return contiguous_value(move_axis(x, dim, x.dim() - 1));
  return x.is_contiguous() ? std::move(x) : contiguous_value(x);
}

Tensor axis_back(const Tensor& y, int dim, const Shape& shape) {
  if (shape.empty()) return alias(y, {}, {}, y.offset());
  return dim == y.dim() - 1 ? y : contiguous_value(move_axis(y, y.dim() - 1, dim));
}

RowCount row_count(const Tensor& t, int axes) {
  RowCount c{1, 1};
  for (int i = 0; i < t.dim(); ++i) (i < t.dim() - axes ? c.rows : c.n) *= t.shape()[i];
  return c;
}

Tensor output_like(Tensor&& t) {
  if (t.is_contiguous() && Arg(std::move(t)).reusable()) return std::move(t);
  return make_empty(t.shape(), t.dtype());
}

Tensor constant_max(const Tensor& x, int dim) {
  // Halves against each other: the upper half may overlap the lower one, since max(a, a) = a.
  Tensor t = alias(x);
  if (x.dim() == 0) return t;
  const auto part = [&](i64 start, i64 n) {
    Shape shape = t.shape();
    shape[dim] = n;
    return alias(t, shape, t.strides(), t.offset() + start * t.strides()[dim]);
  };
  for (i64 n = x.shape()[dim]; n > 1;) {
    const i64 half = (n + 1) / 2;
    t = binary_value("max", kernels::Binary::maximum, part(0, half), part(n - half, half), t.dtype());
    n = half;
  }
  return t;
}

}  // namespace waymark::ops
