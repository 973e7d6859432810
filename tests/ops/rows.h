// Rows of tables of verified values: inputs, the value of f, and the gradients of the sum of its output.
#pragma once

#include <doctest/doctest.h>

#include <functional>

#include "core/autograd/state.h"
#include "tests/ops/expect.h"

namespace waymark::test {

// Calls f with and without a recorded backward pass, by the fused kernels and by their twins.
template <class F> void every_way(F f) {
  for (const bool create_graph : {false, true}) {
    f(create_graph);
    const ExplainMode explain;
    f(create_graph);
  }
}

// One input.
template <class F>
void row(const NestedList& x, F f, const Numbers& value, const Numbers& gradient, double rtol = 2e-6) {
  every_way([&](bool create_graph) {
    const Tensor t = leaf(x);
    const Tensor y = f(t);
    CHECK(mismatch(y, value, rtol) == "");
    y.sum().backward({.create_graph = create_graph});
    CHECK(mismatch(t.grad(), gradient, rtol) == "");
  });
}

// Two inputs.
template <class F>
void row_of_two(const NestedList& a, const NestedList& b, F f, const Numbers& value, const Numbers& da,
                const Numbers& db, double rtol = 2e-6) {
  every_way([&](bool create_graph) {
    const Tensor x = leaf(a), z = leaf(b);
    const Tensor y = f(x, z);
    CHECK(mismatch(y, value, rtol) == "");
    y.sum().backward({.create_graph = create_graph});
    CHECK(mismatch(x.grad(), da, rtol) == "");
    CHECK(mismatch(z.grad(), db, rtol) == "");
  });
}

// One input, once, by the gradient of Σ weights ⊙ f(x).
template <class F>
void check_rule(const NestedList& x, F f, const Numbers& value, const Numbers& gradient, const Numbers& weights = {}) {
  const Tensor t = leaf(x);
  const Tensor y = f(t);
  CHECK(mismatch(y, value) == "");
  backward_of(y, weights);
  CHECK(mismatch(t.grad(), gradient) == "");
}

// The derivative of the sum of the first derivatives.
template <class F> Tensor second_of(const NestedList& x, F f) {
  const Tensor t = leaf(x);
  const Tensor first = grad(f(t).sum(), {t}, {.create_graph = true})[t];
  if (!first.requires_grad()) return zeros(t.shape(), kF64);  // a constant
  const GradMap map = grad(first.sum(), {t}, {.allow_unused = true});
  return map.contains(t) ? map[t] : zeros(t.shape(), kF64);
}

using One = std::function<Tensor(const Tensor&)>;
#define F1(NAME) [](const Tensor& arg_) { return NAME(arg_); }
#define F2(NAME) [](const Tensor& left_, const Tensor& right_) { return NAME(left_, right_); }

}  // namespace waymark::test
