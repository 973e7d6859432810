// More for tests of values: leaves of any shape, exact zeros, fused ops and their twins.
#pragma once

#include <doctest/doctest.h>

#include "core/autograd/state.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

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

// For values that hold for a fused op and for its twin.
template <class F> void fused_and_twin(F f) {
  f();
  const ExplainMode explain;
  f();
}

}  // namespace waymark::test
