// Cases of core/ops/divergence.cpp.
#include "core/ops/divergence.h"

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(divergence_cases) {
  for (const char* op : {"softmax_kl", "symmetric_kl"}) {
    const std::string name = op;
    op_case(op, {input({4, 5}), other({4, 5})});
    op_case(op, {input({3, 33}), other({3, 33}), arg("dim", -1)});
    op_case(op, {input({2, 4, 3}), other({2, 4, 3}), arg("dim", 1)});
    op_case(op, {input({6}), other({6}), arg("dim", 0)});
    op_case(op, {input({3, 7}), other({3, 7}), mask("keep", {3, 7})});
    op_case(op, {input({2, 3, 5}), other({2, 3, 5}), mask("keep", {3, 1}), arg("dim", 2)});
    op_case(op, {input({2, 5, 4}), other({2, 5, 4}), arg("dim", 1),
                 arg("keep", Argument(make<bool>({1, 5, 1}, {true, false, true, true, false})))});
    op_case(op, {input({0, 3}), other({0, 3})});
    op_case(op, {input({2, 0}), other({2, 0})});
    bad_input(op, name + ": dtypes differ: f64 x i64; convert one with to(...)",
              {input({2, 3}), indices("other", {2, 3}, 3)});
    bad_input(op, name + ": both inputs must have one shape, got [2, 3] and [3]", {input({2, 3}), other({3})});
    bad_input(op, name + ": the inputs are 0-d; they need an axis of classes", {input({}), other({})});
    bad_input(op, name + ": keep must be b8, got i64; use to(kB8) or a comparison",
              {input({3}), other({3}), indices("keep", {3}, 2)});
    bad_input(op, name + ": keep [2] does not expand to the inputs [3]", {input({3}), other({3}), mask("keep", {2})});
    bad_input(op, name + ": needs a float tensor, got i64; convert it with .to(kF32)",
              {indices("input", {3}, 3), other({3})});
    bad_input(op, name + ": dim 1 is outside [-1, 0] of a tensor with 1 axes*",
              {input({4}), other({4}), arg("dim", 1)});
  }
}

namespace {

// A function of both leaves, and the gradients of its sum.
struct Pair {
  Tensor value, first, second;
};
template <class F> Pair pair_of(F f, const Tensor& u, const Tensor& v) {
  u.set_grad(Tensor());
  v.set_grad(Tensor());
  const Tensor y = f(u, v);
  sum(y).backward();
  return {y.detach(), u.grad(), v.grad()};
}

}  // namespace

// u = (0, 0), v = (ln 3, 0): p = (1/2, 1/2), q = (3/4, 1/4).
TEST_CASE("divergences of softmax distributions by hand") {
  fused_and_twin([] {
    const Tensor u = leaf({1, 2}, {0, 0}), v = leaf({1, 2}, {std::log(3.0), 0});
    const double forward = 0.5 * std::log(4.0 / 3), reverse = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
    CHECK(forward == doctest::Approx(0.143841).epsilon(1e-5));
    CHECK(reverse == doctest::Approx(0.130812).epsilon(1e-5));
    check_values(softmax_kl(u, v), {forward}, 1e-12);
    check_values(softmax_kl(v, u), {reverse}, 1e-12);
    const Pair both = pair_of([](const Tensor& a, const Tensor& b) { return symmetric_kl(a, b); }, u, v);
    check_values(both.value, {(forward + reverse) / 2}, 1e-12);
    check_values(both.first, {-0.262327, 0.262327}, 2e-6);
    check_values(both.second, {0.227995, -0.227995}, 2e-6);
  });
}

TEST_CASE("equal logits have divergence 0 and gradient 0, exactly") {
  for (const DType dtype : {kF64, kF32})
    for (const i64 classes : {2, 10, 1000}) {
      const Tensor u = randn({3, classes}, {.dtype = dtype, .requires_grad = true});
      const Tensor v = clone(u.detach()).requires_grad_();
      for (const Pair& pair : {pair_of([](const Tensor& a, const Tensor& b) { return symmetric_kl(a, b); }, u, v),
                               pair_of([](const Tensor& a, const Tensor& b) { return softmax_kl(a, b); }, u, v)}) {
        CHECK(pair.value.to_vector<double>() == Numbers(3, 0));
        CHECK(pair.first.to_vector<double>() == Numbers(static_cast<size_t>(3 * classes), 0));
        CHECK(pair.second.to_vector<double>() == Numbers(static_cast<size_t>(3 * classes), 0));
      }
    }
}

TEST_CASE("symmetric_kl is symmetric, never negative, and the mean of both directions") {
  const Tensor u = randn({5, 7}, kF64), v = randn({5, 7}, kF64);
  const Numbers one = symmetric_kl(u, v).to_vector<double>(), two = symmetric_kl(v, u).to_vector<double>();
  const Numbers forward = softmax_kl(u, v).to_vector<double>(), reverse = softmax_kl(v, u).to_vector<double>();
  for (size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i] == two[i]);
    CHECK(one[i] > 0);
    CHECK(forward[i] > 0);
    CHECK(one[i] == doctest::Approx((forward[i] + reverse[i]) / 2).epsilon(1e-12));
  }
  // A constant on all logits of a row changes nothing.
  const Numbers shifted = symmetric_kl(add(u, 50), v).to_vector<double>();
  for (size_t i = 0; i < one.size(); ++i) CHECK(shifted[i] == doctest::Approx(one[i]).epsilon(1e-12));
}

TEST_CASE("divergences of large logits") {
  fused_and_twin([] {
    for (const DType dtype : {kF64, kF32}) {
      const Tensor u = to(f64({{80, -80, 0}, {0, 80, 80}}), dtype).requires_grad_();
      const Tensor v = to(f64({{-80, 80, 0}, {0, 80, 80}}), dtype).requires_grad_();
      const Pair pair = pair_of([](const Tensor& a, const Tensor& b) { return symmetric_kl(a, b); }, u, v);
      check_values(pair.value, {160, 0}, 1e-6);  // one-hot against another one-hot
      for (const Tensor& g : {pair.first, pair.second})
        for (const double x : g.to_vector<double>()) CHECK(std::isfinite(x));
    }
  });
}

TEST_CASE("classes that take no part") {
  fused_and_twin([] {
    const Tensor u = leaf({2, 4}, {1, 5, -2, 0.5, 1, 2, 3, 4}), v = leaf({2, 4}, {0, -9, 1, 0.25, 4, 3, 2, 1});
    const Tensor keep = make<bool>({2, 4}, {true, false, true, true, false, false, false, false});
    const Pair some = pair_of([&](const Tensor& a, const Tensor& b) { return symmetric_kl(a, b, -1, keep); }, u, v);
    const Tensor a = leaf({1, 3}, {1, -2, 0.5}), b = leaf({1, 3}, {0, 1, 0.25});
    const Pair part = pair_of([](const Tensor& x, const Tensor& y) { return symmetric_kl(x, y); }, a, b);
    const Numbers g = part.first.to_vector<double>();
    // A row that keeps nothing has value and gradient 0.
    check_values(some.value, {part.value.item<double>(), 0}, 1e-12);
    check_values(some.first, {g[0], 0, g[1], g[2], 0, 0, 0, 0}, 1e-12);
    // −inf on both sides is the same as not kept; what stands in dropped places does not matter.
    const Tensor x = leaf({1, 4}, {1, -kInf, -2, 0.5}), y = leaf({1, 4}, {0, -kInf, 1, 0.25});
    const Pair infinite = pair_of([](const Tensor& p, const Tensor& q) { return symmetric_kl(p, q); }, x, y);
    check_values(infinite.value, {part.value.item<double>()}, 1e-12);
    check_values(infinite.first, {g[0], 0, g[1], g[2]}, 1e-12);
    const Tensor dirty = leaf({1, 4}, {1, kNan, -2, 0.5}), first_row = make<bool>({1, 4}, {true, false, true, true});
    check_values(symmetric_kl(dirty, y, -1, first_row), {part.value.item<double>()}, 1e-12);
  });
}

TEST_CASE("a class that only one side can have") {
  fused_and_twin([] {
    const Tensor u = f64({{0, 0, -kInf}}), v = f64({{0, 0, 0}});
    check_values(softmax_kl(u, v), {std::log(1.5)}, 1e-12);  // Σ ½ log(½ / ⅓)
    check_values(softmax_kl(v, u), {kInf});
    check_values(symmetric_kl(u, v), {kInf});
    CHECK(std::isnan(softmax_kl(f64({{kNan, 0}}), f64({{0, 0}})).item<double>()));
  });
}

}  // namespace waymark::test
