// Cases of core/ops/convolution.cpp; V46 to V50.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convolution.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(convolution_cases) {
  const auto w = [](Shape s) { return tensor_arg("weight", std::move(s)); };
  const auto b = [](i64 n) { return tensor_arg("bias", {n}); };
  op_case("conv1d", {input({2, 3, 9}), w({4, 3, 3}), b(4), arg("stride", 2), arg("padding", 1)});
  op_case("conv1d", {input({2, 4, 8}), w({6, 2, 3}), arg("stride", 3), arg("padding", 2), arg("dilation", 2), arg("groups", 2)});
  op_case("conv1d", {input({3, 7}), w({2, 3, 1}), b(2)});
  op_case("conv1d", {input({2, 3, 6}), w({3, 1, 4}), b(3), arg("padding", "same"), arg("groups", 3)});
  op_case("conv1d", {input({2, 2, 9}), w({2, 1, 3}), arg("stride", 2), arg("groups", 2)});
  op_case("conv1d", {input({1, 2, 5}), w({4, 1, 2}), arg("padding", "valid"), arg("groups", 2)});
  op_case("conv1d", {input({0, 3, 5}), w({2, 3, 3}), b(2)});
  op_case("conv_transpose1d", {input({2, 3, 5}), w({3, 4, 3}), b(4), arg("stride", 2), arg("padding", 1), arg("output_padding", 1)});
  op_case("conv_transpose1d", {input({4, 5}), w({4, 3, 2}), b(6), arg("groups", 2), arg("dilation", 3), arg("output_padding", 2)});
  op_case("conv_transpose1d", {input({2, 3, 4}), w({3, 1, 3}), arg("groups", 3), arg("stride", 2)});
  op_case("conv_transpose1d", {input({0, 3, 5}), w({3, 2, 3})});

  bad_input("conv1d", "conv1d: the input must be [N, Ci, L] or [Ci, L], got [5]", {input({5}), w({2, 3, 3})});
  bad_input("conv1d", "conv1d: the weight must be [Co, Ci/groups, K], got [3, 3]", {input({3, 5}), w({3, 3})});
  bad_input("conv1d", "conv1d: the input [4, 5] has 4 channels, but the weight [2, 3, 3] ([Co, Ci/groups, K]) with 1 groups takes 3", {input({4, 5}), w({2, 3, 3})});
  bad_input("conv1d", "conv1d: the kernel spans 5 positions (K = 3, dilation 2), the padded input has only 4", {input({1, 4}), w({1, 1, 3}), arg("dilation", 2)});
  bad_input("conv1d", "conv1d: padding \"same\" needs stride 1, got 2", {input({1, 4}), w({1, 1, 3}), arg("padding", "same"), arg("stride", 2)});
  bad_input("conv1d", "conv1d: padding is a number, \"same\" or \"valid\", not \"full\"", {input({1, 4}), w({1, 1, 3}), arg("padding", "full")});
  bad_input("conv1d", "conv1d: padding must not be negative, got -1", {input({1, 4}), w({1, 1, 3}), arg("padding", -1)});
  bad_input("conv1d", "conv1d: the first extent of the weight [3, 2, 3] cannot be cut into 2 groups", {input({4, 5}), w({3, 2, 3}), arg("groups", 2)});
  bad_input("conv1d", "conv1d: stride, dilation and groups must be at least 1, got 0, 1 and 1", {input({1, 4}), w({1, 1, 3}), arg("stride", 0)});
  bad_input("conv1d", "conv1d: the bias must be [2], got [3]", {input({3, 5}), w({2, 3, 3}), b(3)});
  bad_input("conv_transpose1d", "conv_transpose1d: output_padding must be at least 0 and less than stride or dilation, got 2",
            {input({3, 5}), w({3, 2, 3}), arg("stride", 2), arg("output_padding", 2)});
  bad_input("conv_transpose1d", "conv_transpose1d: the result of length -1 would be empty; the input is [1, 1]", {input({1, 1}), w({1, 1, 1}), arg("padding", 1)});
}

namespace {

Tensor f(const Shape& shape, std::initializer_list<double> v) { return leaf(shape, v); }

}  // namespace

TEST_CASE("V46 conv1d with padding and bias") {
  Tensor x = f({1, 1, 3}, {1, 2, 3}), w = f({1, 1, 3}, {1, 0, -1}), b = f({1}, {0.5});
  const Tensor y = conv1d(x, w, b, 1, 1);
  check_values(y, {-1.5, -1.5, 2.5});
  y.sum().backward();
  check_values(x.grad(), {1, 0, -1});
  check_values(w.grad(), {3, 6, 5});
  check_values(b.grad(), {3});
}

TEST_CASE("V47 V48 stride with dilation; groups") {
  Tensor x = f({1, 1, 5}, {1, 2, 3, 4, 5}), w = f({1, 1, 2}, {1, 10});
  const Tensor y = conv1d(x, w, {}, 2, 0, 2);
  check_values(y, {31, 53});
  y.sum().backward();
  check_values(x.grad(), {1, 0, 11, 0, 10});
  check_values(w.grad(), {4, 8});
  Tensor u = f({1, 2, 2}, {1, 2, 3, 4}), v = f({2, 1, 2}, {1, 2, 3, 4});
  const Tensor z = conv1d(u, v, {}, 1, 0, 1, 2);
  check_values(z, {5, 25});
  z.sum().backward();
  check_values(u.grad(), {1, 2, 3, 4});
  check_values(v.grad(), {1, 2, 3, 4});
}

TEST_CASE("V49 conv_transpose1d") {
  Tensor x = f({1, 1, 2}, {1, 2}), w = f({1, 1, 3}, {1, 10, 100});
  const Tensor y = conv_transpose1d(x, w, {}, 2);
  check_values(y, {1, 10, 102, 20, 200});
  y.sum().backward();
  check_values(x.grad(), {111, 111});
  check_values(w.grad(), {3, 3, 3});
}

TEST_CASE("V50 shapes of conv1d: same, unbatched, batch 0") {
  const auto zeros_of = [](const Shape& s) {
    const Tensor t = make_empty(s, kF64);
    t.zero_();
    return t;
  };
  CHECK(conv1d(zeros_of({1, 1, 5}), zeros_of({1, 1, 4}), {}, 1, "same").shape() == Shape{1, 1, 5});
  CHECK(conv1d(zeros_of({2, 5}), zeros_of({3, 2, 3})).shape() == Shape{3, 3});
  CHECK(conv1d(zeros_of({0, 2, 5}), zeros_of({3, 2, 3})).shape() == Shape{0, 3, 3});
  // The odd zero of "same" is on the right.
  check_values(conv1d(f({1, 1, 3}, {1, 2, 3}), f({1, 1, 2}, {10, 1}), {}, 1, "same"), {12, 23, 30});
}

TEST_CASE("conv1d of many channels against plain loops") {
  const i64 n = 2, ci = 6, co = 8, l = 11, k = 3, groups = 2, stride = 2, dilation = 2, pad = 3;
  const Tensor x = make_empty({n, ci, l}, kF64), w = make_empty({co, ci / groups, k}, kF64);
  for (i64 i = 0; i < x.numel(); ++i) x.data<double>()[i] = std::sin(static_cast<double>(i));
  for (i64 i = 0; i < w.numel(); ++i) w.data<double>()[i] = std::cos(0.7 * static_cast<double>(i));
  const Tensor y = conv1d(x, w, {}, stride, pad, dilation, groups);
  for (i64 i = 0; i < n; ++i)
    for (i64 o = 0; o < co; ++o)
      for (i64 t = 0; t < y.shape()[2]; ++t) {
        double sum = 0;
        for (i64 c = 0; c < ci / groups; ++c)
          for (i64 j = 0; j < k; ++j) {
            const i64 at = t * stride + j * dilation - pad;
            if (at >= 0 && at < l) sum += w.at<double>({o, c, j}) * x.at<double>({i, o / (co / groups) * (ci / groups) + c, at});
          }
        CHECK(y.at<double>({i, o, t}) == doctest::Approx(sum).epsilon(1e-13));
      }
}

}  // namespace waymark::test
