// Small tensors from lists, and exact comparison, without ops.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

#include "core/tensor/strided.h"

namespace waymark::test {

template <class T> using Listed = std::conditional_t<std::is_floating_point_v<T>, double, T>;
template <class T> Tensor make(const Shape& shape, std::initializer_list<Listed<T>> values) {
  const Tensor t = make_empty(shape, dtype_of<T>);
  if (static_cast<size_t>(t.numel()) != values.size()) fail("make", "{} values for {}", values.size(), shape);
  T* to = t.data<T>();
  for (const auto v : values) *to++ = static_cast<T>(v);
  return t;
}

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

}  // namespace waymark::test
