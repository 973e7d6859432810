// For tests of single values: leaves from lists, comparison with NaN and infinities.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/autograd/state.h"
#include "tests/tensors.h"

namespace waymark::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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
