// Verified values of the engine, row by row (V100 to V108; V109 stands with the in-place ops).
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/rows.h"

namespace waymark::test {

TEST_CASE("V100_backward_twice") {
  const Tensor x = leaf({1, 2});
  const Tensor linear = (x + 1).sum();
  linear.backward();
  linear.backward();
  CHECK_VALUES(x.grad(), {2, 2});
  const Tensor square = (x * x).sum();
  square.backward();
  CHECK(has(error_text([&] { square.backward(); }), "freed by the first backward; pass retain_graph = true there"));
}

TEST_CASE("V101_products_of_one_tensor") {
  row({3}, [](const Tensor& x) { return x * x; }, {9}, {6});
  row({3}, [](const Tensor& x) { return (x * x) * (x * x); }, {81}, {108});
  const Tensor x = leaf(3);
  Tensor y;
  {
    const Tensor middle = x * x;
    y = middle * middle;
  }
  y.backward();
  CHECK_VALUES(x.grad(), {108});
  const Tensor z = leaf(2);
  const Tensor first = grad(z * z, {z}, {.create_graph = true})[z];
  CHECK_VALUES(first, {4});
  CHECK_VALUES(grad(first, {z})[z], {2});
}

TEST_CASE("V102_gradient_of_an_inner_tensor") {
  const Tensor x = leaf(1);
  const Tensor y = x * 2, z = y * 3, w = y + z;
  CHECK_VALUES(grad(w, {y})[y], {4});
  CHECK(!x.grad().defined());
}

TEST_CASE("V103_two_backward_calls_into_one_leaf") {
  const Tensor x = leaf(1);
  (x * 2).backward();
  const Tensor handle = x.grad();
  (x * 3).backward();
  CHECK_VALUES(x.grad(), {5});
  CHECK_VALUES(handle, {5});
}

TEST_CASE("V104_layout_of_the_gradient") {
  const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}});
  (x.t() * f64({{1, 2}, {3, 4}, {5, 6}})).sum().backward();
  CHECK(x.grad().strides() == Shape{3, 1});
  CHECK_VALUES(x.grad(), {1, 3, 5, 2, 4, 6});
  const Tensor w = leaf({{1, 0}, {0, 1}, {1, 1}});
  matmul(w.t(), f64({{1, 2}, {3, 4}, {5, 6}})).sum().backward();
  CHECK(w.grad().strides() == Shape{2, 1});
}

TEST_CASE("V105_dtype_of_the_gradient") {
  const Tensor x = leaf({1, 2});
  x.to(kF32).sum().backward();
  CHECK(x.grad().dtype() == kF64);
  CHECK_VALUES(x.grad(), {1, 1});
}

TEST_CASE("V106_which_results_require_grad") {
  const Tensor x = leaf({1, 2});
  for (const Tensor& t : {floor(x), round(x), sign(x), ceil(x), trunc(x)}) {
    CHECK(t.requires_grad());
    const Tensor g = grad(t.sum(), {x})[x];
    CHECK_VALUES(g, {0, 0});
  }
  for (const Tensor& t : {x > 1, argmax(x), x.to(kI64), x.detach()}) CHECK(!t.requires_grad());
}

TEST_CASE("V107_seeds_hooks_and_grads_of_other_shapes") {
  const Tensor x = leaf({1, 2});
  CHECK(error_text([&] { (x * 2).backward(f64({1})); }).starts_with("backward: "));
  CHECK(error_text([&] { (x * 2).backward(tensor({1, 1}, kF32)); }).starts_with("backward: "));
  const Tensor y = x * 2;
  y.register_hook([](const Tensor&) { return f64({1, 2, 3}); });
  CHECK(error_text([&] { y.sum().backward(); }) != "(no error)");
  CHECK(!x.grad().defined());
  CHECK(error_text([&] { x.set_grad(f64({1})); }) != "(no error)");
  CHECK(error_text([&] { x.set_grad(tensor({1, 2}, kF32)); }) != "(no error)");
  x.set_grad(f64({1, 2}));
  CHECK_VALUES(x.grad(), {1, 2});
  x.set_grad({});
  CHECK(!x.grad().defined());
}

TEST_CASE("V108_integers_times_a_leaf") {
  const Tensor x = tensor({1.5, 2.5}, {.dtype = kF32, .requires_grad = true});
  const Tensor y = tensor({2, 3}) * x;
  CHECK(y.requires_grad());
  CHECK(y.dtype() == kF32);
  y.sum().backward();
  CHECK_VALUES(x.grad(), {2, 3});
}

// Rows of the README's table of differences that no other test holds.
TEST_CASE("create_graph: .grad is detached, the map carries the history") {
  const Tensor x = leaf({1, 2});
  const i64 nodes = Node::live();
  {
    const GradMap map = (x * x * x).sum().backward({.create_graph = true});
    CHECK(!x.grad().requires_grad());
    CHECK(x.grad().is_leaf());
    CHECK(map[x].requires_grad());
    CHECK_VALUES(grad(map[x].sum(), {x})[x], {6, 12});
  }
  CHECK(Node::live() == nodes);
}

TEST_CASE("post-accumulate hooks run when all leaves are committed") {
  const Tensor x = leaf(2), y = leaf(3);
  std::vector<double> seen;
  const auto look = [&](const Tensor&) {
    seen.push_back(x.grad().defined() ? x.grad().item<double>() : -1);
    seen.push_back(y.grad().defined() ? y.grad().item<double>() : -1);
  };
  const HookHandle a = x.register_post_accumulate_grad_hook(look), b = y.register_post_accumulate_grad_hook(look);
  (x * y).backward();
  CHECK(seen == Numbers{3, 2, 3, 2});
}

TEST_CASE("a rule that throws leaves every .grad as it was") {
  const Tensor x = leaf(2), y = leaf(3);
  (x * y).backward();
  y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("stop"); });
  CHECK_THROWS_AS((x * y * y).backward(), std::exception);
  CHECK_VALUES(x.grad(), {3});
  CHECK_VALUES(y.grad(), {2});
}

TEST_CASE("scatter of a source longer than its index: the part that is not read gets 0") {
  const Tensor at = tensor({1, 0});
  for (const int kind : {0, 1, 2}) {
    const Tensor x = leaf({10, 20, 30}), s = leaf({1, 2, 3, 4});
    const Tensor y = kind == 0   ? scatter(x, 0, at, s)
                     : kind == 1 ? scatter_add(x, 0, at, s)
                                 : scatter_reduce(x, 0, at, s, "sum");
    backward_of(y);
    CHECK_VALUES(s.grad(), {1, 1, 0, 0});
    if (kind == 0) CHECK_VALUES(y, {2, 1, 30});
    else CHECK_VALUES(y, {12, 21, 30});
  }
}

}  // namespace waymark::test
