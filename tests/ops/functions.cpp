// core/ops/functions.cpp, pairs.cpp, blends.cpp: cases and values.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/functions.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "tests/ops/op_case.h"
#include "tests/ops/rows.h"

namespace waymark::test {

OP_CASES(function_cases) {
  for (const char* op : {"exp2", "expm1", "atan", "sinh", "cosh", "asinh", "erfc"}) op_case(op, {input({3, 4})});
  for (const char* op : {"log2", "log10", "log1p"}) op_case(op, {input({3, 4}).range(0.3, 3)});
  for (const char* op : {"asin", "acos", "atanh", "erfinv"})
    op_case(op, {input({3, 4}).range(-0.8, 0.8)}).tolerance(1e-5, 1e-7, "steep near the ends");
  op_case("tan", {input({3, 4}).range(-1, 1)});
  op_case("acosh", {input({3, 4}).range(1.3, 3)});
  op_case("logit", {input({3, 4}).range(0.2, 0.8)});
  op_case("logit", {input({3, 4}).range(-0.5, 1.5).away_from(0.25).away_from(0.75), arg("eps", 0.25)});
  op_case("nan_to_num", {input({3, 4})});
  op_case("positive", {input({3, 4})});
  for (const char* op : {"trunc", "frac"}) {
    op_case(op, {input({8}).range(0.1, 0.9)});
    op_case(op, {input({8}).range(-1.9, -1.1)});
  }
  op_case("round", {input({8}).range(0.6, 1.4)});
  op_case("round", {input({8}).range(0.16, 0.24), arg("decimals", 1)});
  for (const char* op : {"exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh",
                         "asinh", "acosh", "atanh", "erfc", "erfinv", "logit", "nan_to_num"})
    bad_input(op, std::string(op) + ": the argument \"input\" (tensor) is missing", {});
  for (const char* op : {"positive", "trunc", "round"})
    bad_input(op, std::string(op) + ": b8 is not supported; convert with to(...)", {mask("input", {2})});
  bad_input("frac", "frac: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {3}, 5)});
  for (const char* op : {"isinf", "isposinf", "isneginf", "signbit"}) {
    op_case(op, {input({3, 4})});
    bad_input(op, std::string(op) + ": the argument \"input\" (tensor) is missing", {});
  }
}

OP_CASES(pair_cases) {
  for (const char* op : {"atan2", "hypot", "logaddexp", "copysign", "fmax", "fmin"}) {
    op_case(op, {input({3, 4}).range(0.5, 2).apart(), other({4}).range(-3, -0.4).apart()});
    op_case(op, {input({3, 1}).range(-3, -2.1).apart(), other({1, 4}).range(0.5, 2).apart()});
  }
  for (const char* op : {"xlogy", "xlog1py"}) op_case(op, {input({3, 4}), other({4}).range(0.3, 2)});
  op_case("remainder", {input({6}).range(3.2, 3.8), other({6}).range(0.96, 0.98)});
  op_case("fmod", {input({6}).range(-3.8, -3.2), other({6}).range(0.97, 0.99)});
  op_case("remainder", {input({6}).range(3.2, 3.8), arg("other", -1.0)});
  op_case("fmod", {input({6}).range(3.2, 3.8), arg("other", -1.0)});
  op_case("floor_divide", {input({6}).range(3.2, 3.8), arg("other", 1.0)});
  op_case("div_rounded", {input({6}).range(3.2, 3.8), other({1}).range(0.97, 0.99), arg("rounding_mode", "floor")});
  op_case("div", {input({6}).range(3.2, 3.8), arg("other", 1.0), arg("rounding_mode", "trunc")});
  for (const char* op : {"atan2", "hypot", "logaddexp", "xlogy", "xlog1py", "copysign", "fmax", "fmin", "heaviside",
                         "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}) {
    const bool step = std::string(op) == "heaviside";
    bad_input(op, std::string(op) + ": shapes do not broadcast: [2] + [3] (axis -1: 2 vs 3)",
              {input({2}), step ? tensor_arg("values", {3}) : other({3})});
  }
  for (const char* op : {"remainder", "fmod", "floor_divide"})
    bad_input(op, std::string(op) + ": integer division by 0 at position [1] of the divisor",
              {arg("input", Argument(tensor({1, 2}))), arg("other", Argument(tensor({1, 0})))});
  bad_input("div_rounded", "div: rounding_mode must be floor or trunc, got \"up\"",
            {input({2}), other({2}), arg("rounding_mode", "up")});
  op_case("heaviside", {input({3, 4}), tensor_arg("values", {4})});
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"})
    op_case(op, {indices("input", {3, 4}, 9), indices("other", {4}, 5)});
  op_case("bitwise_not", {indices("input", {3, 4}, 9)});
  bad_input("bitwise_not", "bitwise_not: f64 is not supported; convert with to(...)", {input({2})});
}

OP_CASES(blend_cases) {
  op_case("lerp", {input({3, 4}), tensor_arg("end", {4}), tensor_arg("weight", {3, 1}).away_from(0.5)});
  op_case("lerp", {input({3, 4}), tensor_arg("end", {4}), arg("weight", 0.75)});
  bad_input("lerp", "lerp: needs a float tensor, got i64; convert it with .to(kF32)",
            {indices("input", {2}, 3), tensor_arg("end", {2}), arg("weight", 0.5)});
  op_case("addcmul", {input({3, 4}), tensor_arg("tensor1", {4}), tensor_arg("tensor2", {3, 1}), arg("value", -0.6)});
  op_case("addcdiv", {input({3, 4}), tensor_arg("tensor1", {4}), tensor_arg("tensor2", {3, 1}).away_from(0, 0.4),
                      arg("value", 1.4)});
  bad_input("addcmul", "addcmul: value is a float, but the result is i64",
            {indices("input", {2}, 3), indices("tensor1", {2}, 3), indices("tensor2", {2}, 3), arg("value", 0.5)});
  bad_input("addcdiv", "addcdiv: needs float tensors, got i64; convert with to(...)",
            {indices("input", {2}, 3), indices("tensor1", {2}, 3), indices("tensor2", {2}, 3)});
  for (const char* op : {"clamp_tensor", "clamp"}) {
    op_case(op, {input({3, 4}).apart(), tensor_arg("min", {4}).range(-2.9, -0.6).apart(),
                 tensor_arg("max", {3, 1}).range(0.7, 2.9).apart()});
    op_case(op, {input({3, 4}).apart(), tensor_arg("max", {4}).range(-2.9, 2.9).apart()});
  }
  bad_input("clamp_tensor", "clamp: at least one of min and max is needed", {input({2})});
  op_case("masked_fill_tensor", {input({3, 4}), mask("mask", {4}), tensor_arg("value", {})});
  op_case("masked_fill", {input({3, 4}), mask("mask", {3, 1}), tensor_arg("value", {})});
  bad_input("masked_fill_tensor", "masked_fill: the value must be 0-d, got [2]",
            {input({2}), mask("mask", {2}), tensor_arg("value", {2})});
  op_case("isclose", {input({3, 4}), other({4}), arg("equal_nan", Argument(true))});
  bad_input("isclose", "isclose: rtol -1 and atol 1e-08 must not be negative",
            {input({2}), other({2}), arg("rtol", -1.0)});
}

namespace {

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

}  // namespace

TEST_CASE("fmax of NaN alone") {
  check_pair({0, kNan}, {0, 1}, F2(fmax), {0, 1}, {1, 0}, {0, 1});
  CHECK(std::isnan(fmin(f64({kNan}), f64({kNan})).item<double>()));
  CHECK_VALUES(fmin(f64({1, 2}), f64({kNan, 1})), {1, 1});
}

TEST_CASE("logit outside its domain") {
  check_rule({-1}, F1(log1p), {-kInf}, {kInf});
  check_rule({0, 1}, F1(logit), {-kInf, kInf}, {kInf, kInf});
  check_rule({1}, F1(asin), {1.5707963267948966}, {kInf});
  check_rule({1}, F1(acos), {0}, {-kInf});
  check_rule({1}, F1(acosh), {0}, {kInf});
  check_rule({1}, F1(atanh), {kInf}, {kInf});
  check_rule({1, -1}, F1(erfinv), {kInf, -kInf}, {kInf, kInf});
  check_rule({-0.5, 1.5}, F1(logit), {kNan, kNan}, {kNan, kNan});
}

TEST_CASE("xlogy of NaN, xlog1py at -1") {
  check_pair({0}, {0}, F2(xlogy), {0}, {0}, {kNan});
  check_pair({0}, {2}, F2(xlogy), {0}, {0.693147}, {0});
  check_pair({1}, {0}, F2(xlogy), {-kInf}, {-kInf}, {kInf});
  check_rule({0}, [](const Tensor& p) { return xlogy(p, p); }, {0}, {kNan});
  check_pair({0}, {-1}, F2(xlog1py), {0}, {0}, {kNan});
  CHECK(std::isnan(xlogy(f64({0}), f64({kNan})).item<double>()));
}

TEST_CASE("V04_remainders") {
  check_pair({1}, {0}, F2(remainder), {kNan}, {1}, {-kInf});
  check_pair({-5}, {3}, [](const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }, {-2}, {0}, {0});
  const Tensor a = tensor({-5, 5}), b = tensor({3, -3});
  CHECK_VALUES(floor_divide(a, b), {-2, -2});
  CHECK_VALUES(remainder(a, b), {1, -1});
  CHECK_VALUES(fmod(a, b), {-2, 2});
  CHECK_VALUES(div(a, b, "trunc"), {-1, -1});
  CHECK_VALUES(floor_divide(f64({-5, 5}), f64({3, -3})), {-2, -2});
  CHECK_VALUES(remainder(f64({-5, 5}), f64({3, -3})), {1, -1});
  CHECK(floor_divide(tensor({INT64_MIN}), tensor({-1})).at<i64>({0}) == INT64_MIN);
  CHECK(remainder(tensor({INT64_MIN}), tensor({-1})).at<i64>({0}) == 0);
  CHECK(!floor_divide(leaf({5}), 2).requires_grad());
  CHECK_ERROR(floor_divide(tensor({1}), 0), "floor_divide: integer division by 0");
}

TEST_CASE("V05_V06_integers") {
  CHECK_VALUES(pow(tensor({2, 1, -1}), tensor({-1, -1, -1})), {0, 1, -1});
  CHECK_ERROR(pow(tensor({2}), -1), "pow: an integer to the negative power -1 is no integer; convert with .to(kF32)");
  CHECK(abs(tensor({INT64_MIN})).at<i64>({0}) == INT64_MIN);
  CHECK(neg(tensor({INT64_MIN})).at<i64>({0}) == INT64_MIN);
  CHECK((tensor({INT64_MAX}) + 1).at<i64>({0}) == INT64_MIN);
}

TEST_CASE("V07_bits_V08_closeness_V10_decimals") {
  const Tensor six = tensor({6}), three = tensor({3});
  CHECK_VALUES(bitwise_and(six, three), {2});
  CHECK_VALUES(bitwise_or(six, three), {7});
  CHECK_VALUES(bitwise_xor(six, three), {5});
  CHECK_VALUES(left_shift(tensor({1}), three), {8});
  CHECK_VALUES(right_shift(tensor({-8}), tensor({1})), {-4});
  CHECK_VALUES(left_shift(tensor({1, 1}), tensor({64, -1})), {0, 0});
  CHECK_VALUES(bitwise_not(tensor({0, 5})), {-1, -6});
  CHECK_VALUES(bitwise_not(tensor({true, false})), {0, 1});
  const Tensor nan = f64({kNan});
  CHECK(!eq(nan, nan).item<bool>());
  CHECK(!allclose(nan, nan));
  CHECK(allclose(nan, nan, 1e-5, 1e-8, true));
  CHECK(allclose(f64({kInf}), f64({kInf})));
  CHECK(!allclose(f64({kInf}), f64({1})));
  CHECK(!equal(f64({1}), f64({1, 1})));
  CHECK(equal(f64({1, 2}), f64({1, 2})));
  const Tensor r = round(tensor({1.235, 2.345}), 2);
  CHECK(r.at<float>({0}) == 1.24f);
  CHECK(r.at<float>({1}) == 2.34f);
}

TEST_CASE("V37_lerp_logit") {
  check_pair({1}, {5}, [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.25); }, {2}, {0.75}, {0.25});
  check_rule({0, 0.5, 1}, [](const Tensor& x) { return logit(x, 0.1); }, {-2.197225, 0, 2.197225}, {0, 4, 0});
}

TEST_CASE("V68_masked_fill_by_a_tensor") {
  const Tensor x = leaf({1, 2, 3}), v = leaf(5);
  const Tensor y = masked_fill(x, tensor({true, false, true}), v) * f64({1, 10, 100});
  CHECK_VALUES(y, {5, 20, 500});
  backward_of(y);
  CHECK_VALUES(x.grad(), {0, 10, 0});
  CHECK_VALUES(v.grad(), {101});
}

TEST_CASE("erfinv inverts erf to the last digits") {
  for (double x : {1e-300, 1e-9, 0.1, 0.5, 0.84, 0.86, 0.99, 0.999999, 1 - 1e-12, 1 - 1e-16}) {
    const double y = erfinv(f64({x})).item<double>();
    if (x < 0.9)
      CHECK(std::abs(std::erf(y) - x) <= 4e-16 * x);
    else
      CHECK(std::abs(std::erfc(y) - (1 - x)) <= 1e-14 * (1 - x));
    CHECK(erfinv(f64({-x})).item<double>() == -y);
  }
}

}  // namespace waymark::test
