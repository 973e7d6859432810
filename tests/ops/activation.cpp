// Cases of core/ops/activation.cpp; rows K1 to K4, K39, K40, K62, K65, K66, V36, V37, C13.
#include "core/engine/backward.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(activation_cases) {
  for (const char* op : {"gelu", "silu", "mish", "softplus", "softsign", "tanhshrink", "logsigmoid"}) {
    op_case(op, {input({3, 4}).range(-4, 4)});
    op_case(op, {input({2, 0})});
    op_case(op, {input({})});
  }
  for (const char* op : {"relu", "relu6", "leaky_relu", "elu", "celu", "selu"}) {
    op_case(op, {input({3, 40}).range(-2, 3).away_from(0)});
    op_case(op, {input({2, 0})});
  }
  op_case("relu6", {input({20}).range(4, 8).away_from(6)});
  for (const char* op : {"hardsigmoid", "hardswish"}) op_case(op, {input({3, 7}).range(-5, 5).away_from(-3).away_from(3)});
  op_case("gelu", {input({3, 4}).range(-4, 4), arg("approximate", "tanh")});
  op_case("hardtanh", {input({3, 7}).range(-3, 3).away_from(-1).away_from(1)});
  op_case("hardtanh", {input({7}).range(-3, 3).away_from(-2).away_from(0.5), arg("min_val", -2), arg("max_val", 0.5)});
  op_case("leaky_relu", {input({3, 7}).away_from(0), arg("negative_slope", -0.3)});
  op_case("elu", {input({3, 7}).away_from(0), arg("alpha", 0.6)});
  op_case("celu", {input({3, 7}).away_from(0), arg("alpha", 0.6)});
  op_case("softplus", {input({3, 7}).away_from(0.75), arg("beta", 2.0), arg("threshold", 1.5)});
  op_case("threshold", {input({3, 7}).away_from(0.3), arg("threshold", 0.3), arg("value", -2.5)});
  op_case("prelu", {input({2, 4, 3}).away_from(0), tensor_arg("weight", {4})});
  op_case("prelu", {input({2, 4}).away_from(0), tensor_arg("weight", {1})});
  op_case("prelu", {input({5}).away_from(0), tensor_arg("weight", {})});
  op_case("glu", {input({3, 4, 2}), arg("dim", 1)});
  op_case("glu", {input({3, 6})});
  op_case("glu", {input({3, 0})});

  for (const char* op : {"gelu", "silu", "mish", "softplus", "softsign", "tanhshrink", "logsigmoid", "relu6", "leaky_relu", "elu",
                         "celu", "selu", "hardsigmoid", "hardswish", "hardtanh", "glu"})
    bad_input(op, std::string(op) + ": needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {4}, 9)});
  bad_input("threshold", "threshold: needs a float tensor, got b8; convert it with .to(kF32)",
            {mask("input", {4}), arg("threshold", 1), arg("value", 2)});
  bad_input("relu", "relu: b8 is not supported; convert with to(...)", {mask("input", {4})});
  bad_input("gelu", "gelu: approximate is \"none\" or \"tanh\", not \"fast\"", {input({4}), arg("approximate", "fast")});
  bad_input("hardtanh", "hardtanh: min_val 2 is greater than max_val 1", {input({4}), arg("min_val", 2), arg("max_val", 1)});
  bad_input("celu", "celu: alpha must not be 0", {input({4}), arg("alpha", 0)});
  bad_input("prelu", "prelu: the weight must have 1 element, or 4 for axis 1 of [2, 4, 3]; got [3]",
            {input({2, 4, 3}), tensor_arg("weight", {3})});
  bad_input("glu", "glu: axis 1 of [3, 5] has the odd extent 5; it must have two halves", {input({3, 5})});
}

TEST_CASE("V36 V37 glu and softplus with beta") {
  check_values_of([](const Tensor& x) { return glu(x); }, {1, 0}, {0.5}, {0.5, 0.25});
  check_values_of([](const Tensor& x) { return softplus(x, 2); }, {0, 10, 10.5}, {0.346574, 10, 10.5}, {0.5, 1, 1}, 2e-6);
}

TEST_CASE("relu of i64; relu saves its output and nothing else") {
  CHECK(relu(make<i64>({3}, {-2, 0, 5})).to_vector<i64>() == std::vector<i64>{0, 0, 5});
  Tensor x = leaf({2}, {1, -1});
  const Tensor y = relu(x);
  const Node& n = *ensure_meta(y).history.node;
  REQUIRE(n.saved.size() == 1);
  CHECK(n.saved[0].kind == SaveKind::output);
}

TEST_CASE("C13 gelu in f32 against f64, 100,000 points of [-10, 10]") {
  const i64 n = 100000;
  const Tensor x = make_empty({n}, kF32);
  for (i64 i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(-10 + 20 * static_cast<double>(i) / static_cast<double>(n - 1));
  for (const char* form : {"none", "tanh"}) {
    const auto single = gelu(x, form).to_vector<double>(), exact = gelu(to(x, kF64), form).to_vector<double>();
    double worst = 0;
    for (size_t i = 0; i < single.size(); ++i) {
      const double at = std::abs(static_cast<double>(x.data<float>()[i]));
      const double unit = std::max(std::abs(exact[i]), std::ldexp(at, -24)) * std::ldexp(1.0, -23);
      worst = std::max(worst, std::abs(single[i] - exact[i]) / unit);
    }
    CHECK(worst <= 4);
  }
}

TEST_CASE("activations have the same bits in any layout and at any place") {
  const Tensor x = make_empty({2, 67}, kF32);
  for (i64 i = 0; i < x.numel(); ++i) x.data<float>()[i] = 5 * std::sin(0.37f * static_cast<float>(i));
  const Tensor row = x.select(0, 0);
  const std::vector<Tensor (*)(const Tensor&)> all = {
      [](const Tensor& t) { return gelu(t); },        [](const Tensor& t) { return gelu(t, "tanh"); },
      [](const Tensor& t) { return silu(t); },        [](const Tensor& t) { return mish(t); },
      [](const Tensor& t) { return elu(t); },         [](const Tensor& t) { return softplus(t); },
      [](const Tensor& t) { return logsigmoid(t); },  [](const Tensor& t) { return tanhshrink(t); },
      [](const Tensor& t) { return softsign(t); },    [](const Tensor& t) { return hardswish(t); }};
  for (const auto f : all) {
    const Tensor whole = f(row), other_way = f(x.mT()).mT().select(0, 0);
    CHECK(difference(whole.clone(), other_way.contiguous()) == "");
    for (i64 at = 0; at < 67; ++at)
      CHECK(difference(f(row.slice(0, at, at + 1).clone()), whole.slice(0, at, at + 1).clone()) == "");
  }
}

}  // namespace waymark::test
