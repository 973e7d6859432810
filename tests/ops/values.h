// More for tests of values: leaves of any shape, exact zeros, fused ops and their twins.
#pragma once

#include <doctest/doctest.h>

#include "core/autograd/state.h"
#include "tests/ops/expect.h"

namespace waymark::test {

// leaf({2, 2}, {1, 2, 3, 4}): the values of an f64 leaf in row-major order; empty shapes, too.
inline Tensor leaf(const Shape& shape, std::initializer_list<double> v) {
  Tensor t = make<double>(shape, v);
  t.requires_grad_();
  return t;
}

// All elements, in logical order: NaN where NaN is wanted, zeros and infinities exactly, others to `relative`.
inline void check_values(const Tensor& t, const std::vector<double>& want, double relative = 1e-6) {
  REQUIRE(t.defined());
  const std::vector<double> got = t.to_vector<double>();
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(want[i])) CHECK(std::isnan(got[i]));
    else if (want[i] == 0 || std::isinf(want[i])) CHECK(got[i] == want[i]);
    else CHECK(std::abs(got[i] - want[i]) <= relative * std::abs(want[i]));
  }
}

// Values and gradient of the sum of f at these places, with and without a recorded backward pass.
template <class F>
void check_values_of(F f, std::initializer_list<double> at, const Numbers& value, const Numbers& gradient,
                     double relative = 1e-6) {
  for (const bool create_graph : {false, true}) {
    const Tensor x = leaf({static_cast<i64>(at.size())}, at);
    const Tensor y = f(x);
    check_values(y, value, relative);
    y.sum().backward({.create_graph = create_graph});
    check_values(x.grad(), gradient, relative);
  }
}

// Values that no two elements share.
template <class T = double> Tensor counted(const Shape& shape, double first = 1, double step = 0.7) {
  const Tensor t = make_empty(shape, dtype_of<T>);
  for (i64 i = 0; i < t.numel(); ++i) t.data<T>()[i] = static_cast<T>(std::sin(first + static_cast<double>(i) * step));
  return t;
}

// Relative to the largest finite element of b; dtypes, NaN and infinities must agree, and what is undefined.
inline double distance(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return kInf;
  if (!a.defined()) return 0;
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return kInf;
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double scale = 1e-30, worst = 0;
  for (const double v : y)
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::abs(x[i] - y[i]) / scale;
    worst = std::isfinite(d) ? std::max(worst, d) : kInf;
  }
  return worst;
}

// For values that hold for a fused op and for its twin.
template <class F> void fused_and_twin(F f) {
  f();
  const ExplainMode explain;
  f();
}

}  // namespace waymark::test
