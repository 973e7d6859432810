// Kinks, ties, infinities of the elementary ops: PyTorch's conventions, row by row.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"

namespace waymark::test {
namespace {

template <class F>
void check(const NestedList& x, F f, const Numbers& value, const Numbers& gradient) {
  const Tensor t = leaf(x);
  const Tensor y = f(t);
  CHECK(mismatch(y, value) == "");
  backward_of(y);
  CHECK(mismatch(t.grad(), gradient) == "");
}
template <class F>
void check_pair(const NestedList& a, const NestedList& b, F f, const Numbers& value, const Numbers& da,
                const Numbers& db) {
  const Tensor x = leaf(a), z = leaf(b);
  const Tensor y = f(x, z);
  CHECK(mismatch(y, value) == "");
  backward_of(y);
  CHECK(mismatch(x.grad(), da) == "");
  CHECK(mismatch(z.grad(), db) == "");
}
#define F1(NAME) [](const Tensor& x) { return NAME(x); }
#define F2(NAME) [](const Tensor& a, const Tensor& b) { return NAME(a, b); }
const auto power = [](const Tensor& a, const Tensor& b) { return pow(a, b); };

}  // namespace

TEST_CASE("K01_K05_abs_clamp") {
  check({0}, F1(abs), {0}, {0});
  check({0, 1, -1, 2, kNan}, [](const Tensor& x) { return clamp(x, 0, 1); }, {0, 1, 0, 1, kNan}, {1, 1, 0, 0, 0});
  check({0, 3}, [](const Tensor& x) { return clamp(x, 2, 1); }, {1, 1}, {0, 0});
}

TEST_CASE("K07_K08_maximum_minimum") {
  check_pair({0, kNan, 1}, {0, 1, 2}, F2(maximum), {0, kNan, 2}, {0.5, 1, 0}, {0.5, 1, 1});
  check_pair({0, kNan, 1}, {0, 1, 2}, F2(minimum), {0, kNan, 1}, {0.5, 1, 1}, {0.5, 1, 0});
}

TEST_CASE("K22_K27_K28_roots_and_logarithms") {
  check({0, -1}, F1(sqrt), {0, kNan}, {kInf, kNan});
  check({0}, F1(rsqrt), {kInf}, {-kInf});
  check({0}, [](const Tensor& x) { return pow(x, 0.5); }, {0}, {kInf});
  check({0, 0}, [](const Tensor& x) { return sqrt(sum(x * x)); }, {0}, {kNan, kNan});
  check({0, -1}, F1(log), {-kInf, kNan}, {kInf, -1});
}

TEST_CASE("K29_division_by_zero") {
  check({0}, F1(reciprocal), {kInf}, {-kInf});
  check_pair({1, 0, -1}, {0, 0, 0}, F2(div), {kInf, kNan, -kInf}, {kInf, kInf, kInf}, {-kInf, kNan, kInf});
}

TEST_CASE("K31_K32_K33_K34_C06_powers") {
  check_pair({0, 0, 0}, {0, 1, 2}, power, {1, 0, 0}, {0, 1, 0}, {0, 0, 0});
  check_pair({-2, -2, 0, -8}, {2, 3, -1, 1. / 3}, power, {4, -8, kInf, kNan}, {-4, 12, -kInf, kNan},
             {kNan, kNan, -kInf, kNan});
  check_pair({2, 0, 1}, {-kInf, kInf, kInf}, power, {0, 0, 1}, {kNan, kNan, kInf}, {0, 0, 0});
  check({0, 1, -1}, [](const Tensor& e) { return pow(Scalar(0.0), e); }, {1, 0, kInf}, {0, 0, -kInf});
  check({0, kNan}, [](const Tensor& x) { return pow(x, 0); }, {1, 1}, {0, 0});
  check({0}, [](const Tensor& x) { return pow(x, 1); }, {0}, {1});
  check({0}, [](const Tensor& x) { return pow(x, -1); }, {kInf}, {-kInf});
}

TEST_CASE("K38_limits") {
  check({1000, -1000}, F1(exp), {kInf, 0}, {kInf, 0});
  check({1000, -1000, kInf, -kInf}, F1(sigmoid), {1, 0, 1, 0}, {0, 0, 0, 0});
  check({1000}, F1(tanh), {1}, {0});
  check({kInf}, F1(erf), {1}, {0});
}

TEST_CASE("K49_K50_K51_C05_C73_branches_that_are_not_taken") {
  check({-1, 4}, [](const Tensor& x) { return where(x > 0, sqrt(x), x); }, {-1, 2}, {kNan, 0.25});
  check({-1, 4}, [](const Tensor& x) { return where(x > 0, sqrt(where(x > 0, x, 1)), x); }, {-1, 2}, {1, 0.25});
  check({0, kInf}, [](const Tensor& x) { return where(x < 1, cos(x), 0); }, {1, 0}, {0, kNan});
  check({0, 1}, [](const Tensor& x) { return (x / f64({0, 1})).select(0, 1); }, {1}, {kNan, 1});
  check({-1, 0.5}, [](const Tensor& x) { return log1p(x).index({x.detach() > -1}); }, {0.405465}, {kNan, 0.666667});
  const Tensor m = tensor({true, false});
  check({3, 1}, [&](const Tensor& x) { return exp(masked_fill(x, m, -kInf)); }, {0, 2.718282}, {0, 2.718282});
  CHECK(std::isnan((f64({0, 1}) * kInf).at<double>({0})));
}

TEST_CASE("K52_a_denominator_of_zero") {
  check({0, 0}, [](const Tensor& q) { return q / sum(q); }, {kNan, kNan}, {kNan, kNan});
}

TEST_CASE("K54_sign") { check({-2, 0, kNan}, F1(sign), {-1, 0, 0}, {0, 0, 0}); }

TEST_CASE("V05_V06_integers") {
  CHECK_VALUES(pow(tensor({2, 1, -1}), tensor({-1, -1, -1})), {0, 1, -1});
  CHECK_ERROR(pow(tensor({2}), -1), "pow: an integer to the negative power -1 is no integer; convert with .to(kF32)");
  CHECK(abs(tensor({INT64_MIN})).at<i64>({0}) == INT64_MIN);
  CHECK(neg(tensor({INT64_MIN})).at<i64>({0}) == INT64_MIN);
  CHECK((tensor({INT64_MAX}) + 1).at<i64>({0}) == INT64_MIN);
}

TEST_CASE("C18_C49_broadcast_gradients") {
  const Tensor a = leaf({{1}, {2}, {3}}), b = leaf({{1, 2, 3, 4}});
  backward_of(a + b);
  CHECK_VALUES(a.grad(), {4, 4, 4});
  CHECK_VALUES(b.grad(), {3, 3, 3, 3});
  // Every pair of shapes, every op: as if the operands had been expanded by hand.
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},        {{}, {3}},           {{3}, {}},           {{1}, {3}},    {{3}, {1}},    {{2, 3}, {3}},
      {{3}, {2, 3}},   {{2, 1}, {1, 3}},    {{2, 1, 3}, {4, 1}}, {{1, 1}, {3}}, {{0, 3}, {3}}, {{4, 0}, {4, 1}},
  };
  for (const auto& pair : shapes)
    for (int op = 0; op < 6; ++op) {
      const auto value = [&](const Tensor& x, const Tensor& y) {
        switch (op) {
          case 0: return x + y;
          case 1: return x - y;
          case 2: return x * y;
          case 3: return x / y;
          case 4: return pow(x, y);
          default: return hypot(x, y);
        }
      };
      const auto made = [](const Shape& shape, double first) {
        Tensor t = empty(shape, kF64);
        for (i64 i = 0; i < t.numel(); ++i) t.data<double>()[i] = first + 0.3 * static_cast<double>(i);
        return t;
      };
      const Shape both = broadcast_shapes("test", pair.first, pair.second);
      const Tensor x = made(pair.first, 1.1).requires_grad_(), y = made(pair.second, 0.7).requires_grad_();
      const Tensor wide_x = x.detach().expand(both).clone().requires_grad_();
      const Tensor wide_y = y.detach().expand(both).clone().requires_grad_();
      const Tensor w = made(both, -0.4);
      sum(value(x, y) * w).backward();
      sum(value(wide_x, wide_y) * w).backward();
      CHECK(mismatch(x.grad(), sum_to_size(wide_x.grad(), pair.first).to_vector<double>(), 1e-12) == "");
      CHECK(mismatch(y.grad(), sum_to_size(wide_y.grad(), pair.second).to_vector<double>(), 1e-12) == "");
    }
}

TEST_CASE("C57_one_tensor_as_both_operands") {
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&, const Tensor&)>>{
           F2(add), F2(mul), F2(div), F2(maximum), F2(pow), F2(hypot), F2(logaddexp), F2(atan2)}) {
    const Tensor x = leaf({0.5, 2}), a = leaf({0.5, 2}), b = leaf({0.5, 2});
    backward_of(f(x, x.view({2})));
    backward_of(f(a, b));
    CHECK(mismatch(x.grad(), (a.grad() + b.grad()).to_vector<double>(), 1e-12) == "");
  }
}

}  // namespace waymark::test
