#include "core/tensor/shape.h"

#include <algorithm>
#include <utility>

namespace waymark {

void Shape::assign_far(std::span<const i64> v) {
  // v may alias this object's own elements only through operator=, which excludes self-assignment.
  resize(static_cast<int>(v.size()));
  std::copy(v.begin(), v.end(), data());
}

void Shape::resize_far(int axes, i64 value) {
  if (axes > kMaxAxes) fail("shape", "{} axes are more than the {} that are allowed", axes, kMaxAxes);
  if (axes > kInline && !more_) {
    more_ = std::make_unique<i64[]>(kMaxAxes);
    std::copy(inline_, inline_ + size_, more_.get());
  }
  for (int i = size_; i < axes; ++i) data()[i] = value;
  size_ = axes;
}

void Shape::insert(int at, i64 v) {
  resize(size_ + 1);
  std::copy_backward(begin() + at, end() - 1, end());
  data()[at] = v;
}

void Shape::erase(int at) {
  std::copy(begin() + at + 1, end(), begin() + at);
  --size_;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

i64 checked_numel(std::string_view op, const Shape& shape, i64 element_size) {
  i64 n = 1;
  bool overflow = false, empty = false;
  for (i64 extent : shape) {
    if (extent < 0) fail(op, "negative extent in {}", shape);
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(n, extent ? extent : 1, &n);
  }
  i64 bytes = 0;
  if (overflow || __builtin_mul_overflow(n, element_size, &bytes)) fail(op, "{} has more than 2^63-1 bytes", shape);
  return empty ? 0 : n;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  i64 step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<i64>(shape[i], 1);
  }
  return strides;
}

int wrap_dim(std::string_view op, i64 dim, int axes) {
  const i64 n = std::max(axes, 1);
  if (dim < -n || dim >= n) fail(op, "dim {} is outside [{}, {}] of a tensor with {} axes", dim, -n, n - 1, axes);
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (int i = 1; i <= out.size(); ++i) {
    const i64 x = i <= a.size() ? a.at(-i) : 1, y = i <= b.size() ? b.at(-i) : 1;
    if (x != y && x != 1 && y != 1)
      fail(op, "shapes do not broadcast: {} + {} (axis {}: {} vs {})", a, b, -i, x, y);
    out[out.size() - i] = x == 1 ? y : x;
  }
  return out;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (int i = 1; i <= from.size(); ++i)
    if (from.at(-i) != to.at(-i) && from.at(-i) != 1) return false;
  return true;
}

namespace {

// Axes that matter (extent != 1), by ascending stride.
std::vector<std::pair<i64, i64>> by_stride(const Shape& shape, const Shape& strides) {
  std::vector<std::pair<i64, i64>> axes;  // (|stride|, extent)
  for (int i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.emplace_back(std::abs(strides[i]), shape[i]);
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace

Layout layout_of(const Shape& shape, const Shape& strides) {
  Layout out{.numel = 1, .contiguous = true, .dense = true, .overlaps = false};
  for (i64 extent : shape) out.numel *= extent;
  if (out.numel == 0) return out;
  i64 step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    out.contiguous &= strides[i] == step;
    step *= shape[i];
  }
  if (out.contiguous) return out;
  bool negative = false;
  for (int i = 0; i < shape.size(); ++i) negative |= shape[i] != 1 && strides[i] < 0;
  i64 dense_step = 1, reach = 0;
  for (auto [stride, extent] : by_stride(shape, strides)) {
    out.dense &= stride == dense_step;
    dense_step *= extent;
    // Ascending strides that each step over everything below them cannot collide.
    out.overlaps |= stride <= reach;
    reach += stride * (extent - 1);
  }
  out.dense &= !negative;
  return out;
}

bool view_strides(const Shape& shape, const Shape& strides, const Shape& to, Shape* out, int* bad_axis) {
  *out = contiguous_strides(to);
  i64 n = 1;
  for (i64 extent : shape) n *= extent;
  if (n == 0) return true;
  // Walk both shapes from the right; a group of old axes that is dense in itself maps to a group of new axes.
  int j = to.size() - 1;
  i64 group = 1, made = 1, base = 0;
  int last = -1;  // innermost old axis of the current group
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (last < 0) { base = strides[i]; group = made = 1; last = i; }
    group *= shape[i];
    int next = i - 1;
    while (next >= 0 && shape[next] == 1) --next;
    // The group goes on while the next old axis continues it in memory.
    if (next >= 0 && strides[next] == shape[i] * strides[i]) continue;
    while (j >= 0 && (made < group || to[j] == 1)) {
      (*out)[j] = made * base;
      made *= to[j];
      --j;
    }
    if (made != group) {
      if (bad_axis) *bad_axis = std::max(next, 0);
      return false;
    }
    last = -1;
  }
  return true;
}

}  // namespace waymark

fmt::appender fmt::formatter<waymark::Shape>::format(const waymark::Shape& value, fmt::format_context& c) const {
  return fmt::format_to(c.out(), "{}", waymark::to_string(value));
}
