// Cases of core/ops/matmul.cpp and linear.cpp: values and edge cases of engine.md A.3 and 14.2.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/engine/backward.h"
#include "core/kernels/gemm.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(matmul_cases) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{
           {{3}, {3}},          {{3}, {3, 2}},          {{2, 3}, {3}},       {{3}, {5, 3, 2}}, {{5, 2, 3}, {3}},
           {{2, 3}, {3, 4}},    {{2, 1, 3, 4}, {5, 4, 2}}, {{0, 3, 4}, {0, 4, 2}}, {{2, 0}, {0, 3}}, {{2, 2, 3}, {3, 4}},
           {{2, 3}, {4, 3, 2}}, {{1, 2, 3}, {4, 3, 2}}, {{2, 3}, {1, 3, 2}}, {{3, 1}, {1, 2}}, {{2, 2, 1, 3}, {1, 1, 3, 2}}})
    op_case("matmul", {input(a), other(b)});
  op_case("mm", {input({3, 5}), tensor_arg("mat2", {5, 4})});
  op_case("mm", {input({2, 0}), tensor_arg("mat2", {0, 3})});
  op_case("bmm", {input({3, 2, 5}), tensor_arg("mat2", {3, 5, 4})});
  op_case("mv", {input({3, 5}), tensor_arg("vec", {5})});
  op_case("dot", {input({7}), tensor_arg("tensor", {7})});
  op_case("outer", {input({4}), tensor_arg("vec2", {3})});
  op_case("addmm", {input({4}), tensor_arg("mat1", {3, 5}), tensor_arg("mat2", {5, 4}), arg("beta", 0.6), arg("alpha", -1.4)});
  op_case("addmm", {input({3, 1}), tensor_arg("mat1", {3, 2}), tensor_arg("mat2", {2, 4})});
  op_case("baddbmm", {input({2, 1, 4}), tensor_arg("batch1", {2, 3, 5}), tensor_arg("batch2", {2, 5, 4}), arg("alpha", 0.8)});
  op_case("linear", {input({2, 3, 5}), tensor_arg("weight", {4, 5}), tensor_arg("bias", {4})});
  op_case("linear", {input({5}), tensor_arg("weight", {4, 5})});
  op_case("linear", {input({2, 0}), tensor_arg("weight", {3, 0}), tensor_arg("bias", {3})});
  op_case("linear_packed", {input({2, 3, 5}), list_arg("weights", 0, {4, 5}), list_arg("weights", 1, {2, 5}),
                            list_arg("biases", 0, {4}), list_arg("biases", 1, {2})});
  op_case("linear_packed", {input({3, 5}), list_arg("weights", 0, {4, 5}), list_arg("weights", 1, {4, 5})});

  bad_input("matmul", "matmul: inner sizes differ: [8, 64] x [32, 8] (64 != 32)", {input({8, 64}), other({32, 8})});
  bad_input("matmul", "matmul: batch axes do not broadcast: [2, 3, 4] x [5, 4, 2] (axis -3: 2 vs 5)",
            {input({2, 3, 4}), other({5, 4, 2})});
  bad_input("matmul", "matmul: a 0-d tensor has no axis to sum over: [] x [3]; use mul", {input({}), other({3})});
  bad_input("matmul", "matmul: dtypes differ: f64 x i64; convert one with to(...)", {input({2, 3}), indices("other", {3, 2}, 5)});
  bad_input("matmul", "matmul: b8 is not supported; convert with to(...)", {mask("input", {2, 2}), mask("other", {2, 2})});
  bad_input("mm", "mm: needs a 2-d and a 2-d tensor, got [3] x [3, 2]; matmul takes other ranks", {input({3}), tensor_arg("mat2", {3, 2})});
  bad_input("bmm", "bmm: batch sizes differ: [2, 3, 4] x [3, 4, 2] (2 != 3); matmul broadcasts",
            {input({2, 3, 4}), tensor_arg("mat2", {3, 4, 2})});
  bad_input("mv", "mv: inner sizes differ: [3, 5] x [4] (5 != 4)", {input({3, 5}), tensor_arg("vec", {4})});
  bad_input("dot", "dot: needs a 1-d and a 1-d tensor, got [3] x [3, 1]; matmul takes other ranks", {input({3}), tensor_arg("tensor", {3, 1})});
  bad_input("outer", "outer: needs two 1-d tensors, got [3, 1] x [3]", {input({3, 1}), tensor_arg("vec2", {3})});
  bad_input("addmm", "addmm: the first operand [3] does not expand to the product [2, 4]",
            {input({3}), tensor_arg("mat1", {2, 5}), tensor_arg("mat2", {5, 4})});
  bad_input("addmm", "addmm: beta or alpha is a float, but the operands are i64",
            {indices("input", {2}, 3), indices("mat1", {2, 2}, 3), indices("mat2", {2, 2}, 3), arg("beta", 0.5)});
  bad_input("baddbmm", "baddbmm: dtypes differ: i64 + f64; convert one with to(...)",
            {indices("input", {2}, 3), tensor_arg("batch1", {1, 2, 2}), tensor_arg("batch2", {1, 2, 2})});
  bad_input("linear", "linear: inner sizes differ: [2, 5] x [4, 6] transposed (5 != 6)", {input({2, 5}), tensor_arg("weight", {4, 6})});
  bad_input("linear", "linear: the bias must be [4] for the weight [4, 5], got [5]",
            {input({2, 5}), tensor_arg("weight", {4, 5}), tensor_arg("bias", {5})});
  bad_input("linear", "linear: the weight must be [out, in], got [5]", {input({2, 5}), tensor_arg("weight", {5})});
  bad_input("linear", "linear: the input is 0-d; it needs a last axis of size 5", {input({}), tensor_arg("weight", {4, 5})});
  bad_input("linear_packed", "linear_packed: 2 weights but 1 biases; give one for each weight (undefined: none), or none at all",
            {input({2, 5}), list_arg("weights", 0, {4, 5}), list_arg("weights", 1, {4, 5}), list_arg("biases", 0, {4})});
}

namespace {


// A·B by plain loops, element by element.
double reference(const Tensor& a, const Tensor& b, i64 i, i64 j) {
  double sum = 0;
  for (i64 p = 0; p < a.shape()[1]; ++p) sum += a.at<double>({i, p}) * b.at<double>({p, j});
  return sum;
}
void check_product(const Tensor& a, const Tensor& b) {
  const Tensor c = matmul(a, b);
  REQUIRE(c.shape() == Shape{a.shape()[0], b.shape()[1]});
  for (i64 i = 0; i < c.shape()[0]; ++i)
    for (i64 j = 0; j < c.shape()[1]; ++j) {
      CAPTURE(a.shape());
      CAPTURE(b.shape());
      CHECK(c.at<double>({i, j}) == doctest::Approx(reference(a, b, i, j)).epsilon(1e-13));
    }
}

}  // namespace

TEST_CASE("V40 V41 shapes of products") {
  const auto shape = [](const Shape& a, const Shape& b) { return matmul(counted(a), counted(b)).shape(); };
  CHECK(shape({3}, {3}) == Shape{});
  CHECK(shape({3}, {3, 2}) == Shape{2});
  CHECK(shape({2, 3}, {3}) == Shape{2});
  CHECK(shape({3}, {5, 3, 2}) == Shape{5, 2});
  CHECK(shape({5, 2, 3}, {3}) == Shape{5, 2});
  CHECK(shape({2, 1, 3, 4}, {5, 4, 2}) == Shape{2, 5, 3, 2});
  CHECK(shape({0, 3, 4}, {0, 4, 2}) == Shape{0, 3, 2});
}

TEST_CASE("V42 a product with its own transpose") {
  Tensor a = leaf({2, 2}, {0, 1, 2, 3});
  const Tensor c = matmul(a.mT(), a);
  CHECK(values(c) == Numbers{4, 6, 6, 10});
  c.sum().backward();
  CHECK(values(a.grad()) == Numbers{2, 2, 10, 10});
}

TEST_CASE("V43 inner size 0, beta 0 and alpha 0 over NaN") {
  CHECK(values(matmul(make<double>({2, 0}, {}), make<double>({0}, {}))) == Numbers{0, 0});
  CHECK(values(baddbmm(make<double>({1, 1, 1}, {1}), make<double>({1, 1, 0}, {}), make<double>({1, 0, 1}, {}))) == Numbers{1});
  const Tensor one = make<double>({1, 1}, {1}), nan = make<double>({1, 1}, {kNan});
  CHECK(values(addmm(nan, one, one, 0)) == Numbers{1});
  CHECK(values(addmm(one, nan, one, 1, 0)) == Numbers{1});
  CHECK(std::isnan(matmul(make<double>({1, 1}, {0}), nan).item<double>()));
}

TEST_CASE("C21 products of inner size 0 over memory full of NaN") {
  testing::poison(true);
  for (const DType t : {kF32, kF64}) {
    const Tensor a = make_empty({2, 0}, t), b = make_empty({0, 3}, t);
    a.requires_grad_();
    b.requires_grad_();
    const Tensor c = matmul(a, b);
    CHECK(values(c) == Numbers(6, 0.0));
    c.sum().backward();
    CHECK(a.grad().shape() == Shape{2, 0});
    CHECK(b.grad().shape() == Shape{0, 3});
    CHECK(values(bmm(make_empty({4, 2, 0}, t), make_empty({4, 0, 3}, t))) == Numbers(24, 0.0));
    CHECK(values(addmm(to(make<double>({3}, {1, 2, 3}), t), a.detach(), b.detach())) == Numbers{1, 2, 3, 1, 2, 3});
    CHECK(values(linear(make_empty({2, 0}, t), make_empty({3, 0}, t), to(make<double>({3}, {1, 2, 3}), t))) == Numbers{1, 2, 3, 1, 2, 3});
  }
  testing::poison(false);
}

TEST_CASE("C22 beta = 0 does not read C") {
  const Tensor c = make<double>({2, 2}, {kNan, kNan, kNan, kNan}), a = counted({2, 3}), b = counted({3, 2}, 4);
  CHECK(difference(addmm(c, a, b, 0), matmul(a, b)) == "");
  Tensor g = c.clone();
  g.requires_grad_();
  addmm(g, a, b, 0).sum().backward();
  CHECK(values(g.grad()) == Numbers(4, 0.0));
}

TEST_CASE("C23 expanded, reversed, [1, n], [n, 1] and transposed operands on both sides") {
  std::vector<Tensor> lefts, rights;
  for (const i64 m : {1, 2, 5})
    for (const i64 k : {1, 3}) {
      lefts.push_back(counted({m, k}));
      lefts.push_back(counted({k, m}).mT());
      lefts.push_back(counted({1, k}).expand({m, k}));
      lefts.push_back(counted({m, 1}).expand({m, k}));
      lefts.push_back(counted({2 * m, 2 * k}).slice(0, 0, kNoBound, 2).slice(1, 1, kNoBound, 2));
      lefts.push_back(counted({m, k}).slice(0, kNoBound, kNoBound, -1).slice(1, kNoBound, kNoBound, -1));
    }
  for (const i64 n : {1, 4})
    for (const i64 k : {1, 3}) {
      rights.push_back(counted({k, n}));
      rights.push_back(counted({n, k}).mT());
      rights.push_back(counted({k, 1}).expand({k, n}));
      rights.push_back(counted({1, n}).expand({k, n}));
      rights.push_back(counted({k, 2 * n}).slice(1, 0, kNoBound, 2));
      rights.push_back(counted({k, n}).slice(1, kNoBound, kNoBound, -1));
    }
  for (const Tensor& a : lefts)
    for (const Tensor& b : rights)
      if (a.shape()[1] == b.shape()[0]) check_product(a, b);
  // Axes of extent 1 have no meaningful stride.
  const Tensor odd = alias(counted({40}), {1, 3}, {17, 1}, 2), odd_right = alias(counted({40}), {3, 1}, {1, 23}, 5);
  check_product(odd, counted({3, 4}));
  check_product(counted({4, 3}), odd_right);
}

TEST_CASE("a batched operand against a matrix is one product, forward and backward") {
  Tensor x = counted<float>({6, 5, 4}), w = counted<float>({4, 3});
  x.requires_grad_();
  w.requires_grad_();
  const i64 before = kernels::gemm_calls();
  const Tensor y = matmul(x, w);
  CHECK(kernels::gemm_calls() - before == 1);
  const Tensor g = counted<float>({6, 5, 3});
  y.backward(g);
  CHECK(kernels::gemm_calls() - before == 3);
  reset_peak();
  const i64 live = memory_counters().bytes_live;
  matmul(x, w).backward(g);
  // Neither [6, 4, 3] of dW nor copies of the operands.
  CHECK(memory_counters().bytes_peak - live < x.nbytes() + w.nbytes() + 2 * g.nbytes() + 512);
  // The matrix on the left: its gradient is summed inside one product, too.
  Tensor a = counted({2, 4}), b = counted({6, 4, 3});
  a.requires_grad_();
  const Tensor c = matmul(a, b);
  const i64 start = kernels::gemm_calls();
  const Tensor seed = counted({6, 2, 3}, 9);
  c.backward(seed);
  CHECK(kernels::gemm_calls() - start == 1);
  const Tensor plain = matmul(seed, b.mT()).sum(0);
  for (size_t i = 0; i < 8; ++i) CHECK(values(a.grad())[i] == doctest::Approx(values(plain)[i]).epsilon(1e-13));
}

TEST_CASE("C54 a frozen linear layer saves nothing, and only wanted products run") {
  Tensor x = counted<float>({6, 4}), w = counted<float>({3, 4}), b = counted<float>({3});
  const auto saved_bytes = [](const Tensor& y) {
    i64 n = 0;
    for (const Saved& s : ensure_meta(y).history.node->saved) n += s.bytes;
    return n;
  };
  CHECK(linear(x, w, b).is_leaf());  // no node at all
  const auto products_of_backward = [&](const Tensor& y) {
    const i64 before = kernels::gemm_calls();
    y.sum().backward();
    return kernels::gemm_calls() - before;
  };
  b.requires_grad_();
  CHECK(saved_bytes(linear(x, w, b)) == 0);
  CHECK(products_of_backward(linear(x, w, b)) == 0);
  w.requires_grad_();
  CHECK(saved_bytes(linear(x, w, b)) == x.nbytes());
  CHECK(products_of_backward(linear(x, w, b)) == 1);
  x.requires_grad_();
  CHECK(products_of_backward(linear(x, w, b)) == 2);
  w.requires_grad_(false);
  CHECK(saved_bytes(linear(x, w, b)) == w.nbytes());
}

TEST_CASE("linear: gradients of sums of rows do not depend on the number of threads") {
  const int threads = num_threads();
  Tensor x = counted<float>({4, 1000, 24}), w = counted<float>({48, 24}), b = counted<float>({48});
  w.requires_grad_();
  b.requires_grad_();
  std::vector<Tensor> first;
  for (const int n : {1, 2, 4}) {
    set_num_threads(n);
    w.set_grad(Tensor());
    b.set_grad(Tensor());
    linear(x, w, b).backward(counted<float>({4, 1000, 48}, 3));
    if (first.empty()) first = {w.grad().clone(), b.grad().clone()};
    CHECK(difference(w.grad(), first[0]) == "");
    CHECK(difference(b.grad(), first[1]) == "");
  }
  set_num_threads(threads);
}

TEST_CASE("linear_packed: adjacent weights are one product each way, with the values of linear") {
  const i64 in = 5;
  const std::vector<i64> out{4, 4, 2};
  const Tensor flat = counted<float>({10 * in + 10});
  const Intrusive<waymark::Block>& block = flat.impl()->storage->block();
  std::vector<Tensor> w, b;
  i64 row = 0;
  for (const i64 n : out) {
    w.push_back(tensor_in_block(block, kF32, {n, in}, {in, 1}, row * in));
    b.push_back(tensor_in_block(block, kF32, {n}, {1}, 10 * in + row));
    w.back().requires_grad_();
    b.back().requires_grad_();
    row += n;
  }
  Tensor x = counted<float>({2, 3, in}, 2);
  x.requires_grad_();
  i64 before = kernels::gemm_calls();
  const std::vector<Tensor> y = linear_packed(x, w, b);
  CHECK(kernels::gemm_calls() - before == 1);
  std::vector<Tensor> g;
  Tensor loss;
  for (size_t i = 0; i < 3; ++i) {
    g.push_back(counted<float>({2, 3, out[i]}, 7));
    const Tensor part = (y[i] * g[i]).sum();
    loss = loss.defined() ? loss + part : part;
  }
  before = kernels::gemm_calls();
  loss.backward();
  CHECK(kernels::gemm_calls() - before == 2);
  // Against linear, one by one, in f64.
  Tensor dx;
  for (size_t i = 0; i < 3; ++i) {
    Tensor xd = to(x.detach(), kF64), wd = to(w[i].detach(), kF64), bd = to(b[i].detach(), kF64);
    for (const Tensor& t : {xd, wd, bd}) t.requires_grad_();
    const Tensor value = linear(xd, wd, bd);
    value.backward(to(g[i], kF64));
    const auto close = [](const Tensor& a, const Tensor& c) {
      const Numbers p = values(a), q = values(c);
      REQUIRE(p.size() == q.size());
      for (size_t k = 0; k < p.size(); ++k) CHECK(p[k] == doctest::Approx(q[k]).epsilon(1e-5));
    };
    close(y[i], value);
    close(w[i].grad(), wd.grad());
    close(b[i].grad(), bd.grad());
    dx = dx.defined() ? dx + xd.grad() : xd.grad();
  }
  for (size_t k = 0; k < 30; ++k) CHECK(values(x.grad())[k] == doctest::Approx(values(dx)[k]).epsilon(1e-5));
  // The results are windows of one buffer, yet changing one is nothing to the others.
  const u32 version = y[1].version();
  {
    const NoGrad off;
    y[0].add_(1);
  }
  CHECK(y[1].version() == version);
  // A result that nothing used gives no gradient to its weight: absent, not zero.
  for (const Tensor& t : w) t.set_grad(Tensor());
  linear_packed(x, w, b)[0].sum().backward();
  CHECK(w[0].grad().defined());
  CHECK(!w[1].grad().defined());
}

TEST_CASE("i64 products are exact and wrap") {
  const Tensor a = make<i64>({2, 2}, {INT64_MAX, 1, 2, 3}), b = make<i64>({2, 1}, {2, 5});
  CHECK(matmul(a, b).to_vector<i64>() == std::vector<i64>{3, 19});
  CHECK(matmul(b.mT(), a.expand({3, 2, 2})).shape() == Shape{3, 1, 2});
  CHECK(addmm(make<i64>({1}, {7}), a, b, 2, -1).to_vector<i64>() == std::vector<i64>{11, -5});
}

}  // namespace waymark::test
