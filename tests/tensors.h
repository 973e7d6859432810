// Small tensors from lists, and exact comparison, without ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/tensor/strided.h"

namespace waymark::test {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

template <class T> using Listed = std::conditional_t<std::is_floating_point_v<T>, double, T>;
template <class T> Tensor make(const Shape& shape, std::initializer_list<Listed<T>> values) {
  const Tensor t = make_empty(shape, dtype_of<T>);
  if (static_cast<size_t>(t.numel()) != values.size()) fail("make", "{} values for {}", values.size(), shape);
  T* to = t.data<T>();
  for (const auto v : values) *to++ = static_cast<T>(v);
  return t;
}

inline std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }

// Same dtype, shape and bits of every element, in logical order. Empty if so, else what differs.
inline std::string difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) return fmt::format("dtypes {} and {}", name_of(a.dtype()), name_of(b.dtype()));
  if (!(a.shape() == b.shape())) return fmt::format("shapes {} and {}", a.shape(), b.shape());
  const auto size = static_cast<size_t>(size_of(a.dtype()));
  const auto bytes = [&](const Tensor& t) {
    std::string out;
    for_each_offset(t, [&](i64 at) {
      out.append(reinterpret_cast<const char*>(t.raw()) + at * static_cast<i64>(size), size);
    });
    return out;
  };
  return bytes(a) == bytes(b) ? "" : fmt::format("values {} and {}", a, b);
}
// Largest difference of two elements; more than any limit where one is NaN.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) fail("largest_difference", "shapes {} and {}", a.shape(), b.shape());
  const std::vector<double> x = values(a), y = values(b);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = std::abs(x[i] - y[i]);
    worst = std::isnan(d) ? kInf : std::max(worst, d);
  }
  return worst;
}
// Bits of lists of results, of which some may be undefined on both sides.
inline std::string difference_of(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return fmt::format("{} tensors and {}", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined()) return fmt::format("number {} is undefined on one side", i);
    if (!a[i].defined()) continue;
    const std::string text = difference(a[i].detach(), b[i].detach());
    if (!text.empty()) return fmt::format("number {}: {}", i, text);
  }
  return "";
}

}  // namespace waymark::test
