// Shape: extents or strides of up to 64 axes; the first 6 lie in the object itself.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/error.h"
#include "core/tensor/types.h"

namespace waymark {

class WAYMARK_API Shape {
 public:
  static constexpr int kInline = 6, kMaxAxes = 64;

  Shape() = default;
  Shape(std::initializer_list<i64> v) : Shape(std::span<const i64>(v.begin(), v.size())) {}
  Shape(std::span<const i64> v) { assign(v); }                                     // NOLINT: implicit on purpose
  Shape(const std::vector<i64>& v) : Shape(std::span<const i64>(v)) {}             // NOLINT
  explicit Shape(int axes, i64 value = 0) { resize(axes, value); }
  Shape(const Shape& other) { copy(other); }
  Shape(Shape&& other) noexcept = default;
  Shape& operator=(const Shape& other) { if (this != &other) copy(other); return *this; }
  Shape& operator=(Shape&& other) noexcept = default;

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  i64* begin() { return data(); }
  i64* end() { return data() + size_; }
  const i64* begin() const { return data(); }
  const i64* end() const { return data() + size_; }
  i64& operator[](int i) { return data()[i]; }
  i64 operator[](int i) const { return data()[i]; }
  // Counts from the end for negative i: at(-1) is the last extent. No check; see wrap_dim.
  i64 at(int i) const { return data()[i < 0 ? i + size_ : i]; }
  i64 back() const { return data()[size_ - 1]; }
  operator std::span<const i64>() const { return {data(), static_cast<size_t>(size_)}; }  // NOLINT
  std::vector<i64> vec() const { return {begin(), end()}; }

  void push_back(i64 v) { resize(size_ + 1, v); }
  void insert(int at, i64 v);
  void erase(int at);
  void resize(int axes, i64 value = 0) {
    if (axes > kInline || more_) [[unlikely]] return resize_far(axes, value);
    for (int i = size_; i < axes; ++i) inline_[i] = value;
    size_ = axes;
  }
  bool operator==(const Shape& other) const {
    if (size_ != other.size_) return false;
    const i64 *a = data(), *b = other.data();
    for (int i = 0; i < size_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  // Shapes are copied several times in every op: few axes, the common case, are a copy of fixed size.
  void copy(const Shape& other) {
    if (more_ || other.more_) [[unlikely]] return assign_far(other);
    size_ = other.size_;
    for (int i = 0; i < kInline; ++i) inline_[i] = other.inline_[i];
  }
  void assign(std::span<const i64> v) {
    if (v.size() > kInline || more_) [[unlikely]] return assign_far(v);
    size_ = static_cast<int>(v.size());
    for (int i = 0; i < size_; ++i) inline_[i] = v[static_cast<size_t>(i)];
  }
  void assign_far(std::span<const i64> v);
  void resize_far(int axes, i64 value);
  i64* data() { return more_ ? more_.get() : inline_; }
  const i64* data() const { return more_ ? more_.get() : inline_; }

  int size_ = 0;
  i64 inline_[kInline] = {};
  std::unique_ptr<i64[]> more_;  // all kMaxAxes of them, when there are more than kInline
};

// "[8, 64]"
WAYMARK_API std::string to_string(const Shape& shape);

// Number of elements. Error(op) if an extent is negative or the bytes of `element_size` each exceed 2^63-1.
WAYMARK_API i64 checked_numel(std::string_view op, const Shape& shape, i64 element_size = 1);
// Strides of a dense row-major tensor. Extents of 0 count as 1, so strides stay meaningful.
WAYMARK_API Shape contiguous_strides(const Shape& shape);

// dim in [-axes, axes) -> [0, axes); a 0-d tensor has the dims -1 and 0. Error(op) outside.
WAYMARK_API int wrap_dim(std::string_view op, i64 dim, int axes);

// Common shape of two operands aligned at the right; extents equal or 1. Error(op) names both shapes and the axis.
WAYMARK_API Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);
// True if `from` broadcasts to exactly `to`.
WAYMARK_API bool broadcasts_to(const Shape& from, const Shape& to);

// Facts about a strided layout, computed once per tensor.
struct Layout {
  i64 numel = 0;
  bool contiguous = false;  // dense and row-major; axes of extent 1 and empty tensors do not count
  bool dense = false;       // a permutation of contiguous
  bool overlaps = false;    // two indices may share memory
};
WAYMARK_API Layout layout_of(const Shape& shape, const Shape& strides);

// Strides with which a tensor (shape, strides) can be seen as `to` without a copy; false if it cannot.
// `bad_axis` (may be null) receives the first of the two neighbouring axes that are in the way.
WAYMARK_API bool view_strides(const Shape& shape, const Shape& strides, const Shape& to, Shape* out, int* bad_axis);

}  // namespace waymark

template <> struct WAYMARK_API fmt::formatter<waymark::Shape> : waymark::PlainText {
  fmt::appender format(const waymark::Shape& value, fmt::format_context& c) const;
};
