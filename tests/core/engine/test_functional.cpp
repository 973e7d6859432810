// jacobian, hessian, vjp, jvp, hvp against closed forms.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/functional.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {
const Tensor kPoint = make<double>({2}, {2, 3});
Tensor square_sum(const Tensor& t) { return sum(t * t * t); }
}  // namespace

TEST_CASE("jacobian of a vector function: shape output + input") {
  const Tensor j = jacobian([](const Tensor& t) { return t * t; }, kPoint);
  CHECK(j.shape() == Shape{2, 2});
  CHECK(j.to_vector<double>() == Numbers{4, 0, 0, 6});
  const auto both = jacobian([](const std::vector<Tensor>& v) { return std::vector<Tensor>{sum(v[0] * v[1]), v[1] * 2}; }, {kPoint, kPoint * 10});
  CHECK(both[0][0].to_vector<double>() == Numbers{20, 30});
  CHECK(both[0][1].to_vector<double>() == Numbers{2, 3});
  CHECK(both[1][0].to_vector<double>() == Numbers{0, 0, 0, 0});  // no path
  CHECK(both[1][1].to_vector<double>() == Numbers{2, 0, 0, 2});
}

TEST_CASE("hessian, hvp and the symmetry of both") {
  CHECK(hessian([](const Tensor& t) { return square_sum(t); }, kPoint).to_vector<double>() == Numbers{12, 0, 0, 18});
  const TupleFunction f = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{sum(exp(v[0]) * v[1])}; };
  const Tensor y = make<double>({2}, {1, -1});
  const auto h = hessian(f, {kPoint, y});
  CHECK(h[0][1].to_vector<double>()[0] == doctest::Approx(std::exp(2.0)));
  CHECK(h[0][1].to_vector<double>() == h[1][0].to_vector<double>());
  CHECK(h[1][1].to_vector<double>() == Numbers{0, 0, 0, 0});
  const auto p = hvp(f, {kPoint, y}, {make<double>({2}, {1, 0}), make<double>({2}, {0, 0})});
  CHECK(p.products[1].to_vector<double>()[0] == doctest::Approx(std::exp(2.0)));
  CHECK(p.outputs[0].item<double>() == doctest::Approx(std::exp(2.0) - std::exp(3.0)));
}

TEST_CASE("vjp and jvp are adjoint: <u, J v> = <Jᵀ u, v>") {
  const Tensor a = make<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  const TupleFunction f = [&](const std::vector<Tensor>& v) { return std::vector<Tensor>{tanh(matmul(a, v[0]))}; };
  const Tensor v = make<double>({2}, {0.3, -0.7}), u = make<double>({3}, {1, -2, 0.5}), at = make<double>({2}, {0.1, 0.2});
  const double left = sum(u * jvp(f, {at}, {v}).products[0]).item<double>();
  const double right = sum(vjp(f, {at}, {u}).products[0] * v).item<double>();
  CHECK(left == doctest::Approx(right).epsilon(1e-12));
}

TEST_CASE("create_graph: a hessian as the jacobian of a gradient; .grad stays untouched") {
  const Tensor w = make<double>({2}, {2, 3}).requires_grad_();
  const Tensor j = jacobian([](const Tensor& t) { return t * t * t; }, w, true);
  sum(j).backward();
  CHECK(w.grad().to_vector<double>() == Numbers{12, 18});
  const Tensor fresh = make<double>({2}, {2, 3}).requires_grad_();
  hessian([](const Tensor& t) { return square_sum(t); }, fresh);
  CHECK(!fresh.grad().defined());
}

TEST_CASE("errors of the functional forms") {
  CHECK(error_text([] { hessian([](const Tensor& t) { return t * 2; }, kPoint); }) ==
        "hessian: the function must return one element, it returned 1 tensor ([2])");
  CHECK(error_text([] { hvp([](const std::vector<Tensor>& v) { return std::vector<Tensor>{sum(v[0])}; }, {kPoint}, {}); }) ==
        "hvp: 0 vectors for 1 inputs");
  CHECK(error_text([] { jacobian([](const Tensor& t) { return t; }, make<i64>({1}, {1})); }) == "jacobian: input 0 is no float tensor");
}

}  // namespace waymark::test
