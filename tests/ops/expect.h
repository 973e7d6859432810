// Short forms for tests of values and gradients.
#pragma once

#include <cmath>
#include <vector>

#include "core/engine/backward.h"
#include "core/ops/create.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {

using Numbers = std::vector<double>;

// An f64 leaf that requires grad.
inline Tensor leaf(const NestedList& values) { return tensor(values, {.dtype = kF64, .requires_grad = true}); }
inline Tensor f64(const NestedList& values) { return tensor(values, kF64); }

// Empty if t has these values in row-major order (NaN equals NaN, relative to 1e-6 by default), else what it has.
inline std::string mismatch(const Tensor& t, const Numbers& wanted, double rtol = 1e-6) {
  if (!t.defined()) return "undefined";
  const std::vector<double> got = t.to_vector<double>();
  bool same = got.size() == wanted.size();
  for (size_t i = 0; same && i < got.size(); ++i)
    same = got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i])) ||
           std::abs(got[i] - wanted[i]) <= rtol * std::max(std::abs(wanted[i]), 1e-3);
  return same ? "" : fmt::format("{} [{}]", t.shape(), fmt::join(got, ", "));
}
// Runs backward from Σ w ⊙ y (w: ones if empty).
void backward_of(const Tensor& y, const Numbers& weights = {});

}  // namespace waymark::test

#define CHECK_VALUES(TENSOR, ...) CHECK(::waymark::test::mismatch((TENSOR), ::waymark::test::Numbers __VA_ARGS__) == "")
#define CHECK_ERROR(EXPRESSION, TEXT) CHECK(::waymark::test::error_text([&] { static_cast<void>(EXPRESSION); }) == (TEXT))
