// core/ops/extremes.cpp, counts.cpp, moments.cpp, prod.cpp, nan_sums.cpp, logsumexp.cpp: cases and values.
#include <doctest/doctest.h>

#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/extremes.h"
#include "core/ops/moments.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/op_case.h"
#include "tests/ops/rows.h"

namespace waymark::test {

OP_CASES(extreme_cases) {
  for (const char* op : {"amax", "amin"}) {
    op_case(op, {input({3, 4, 2}).apart(), arg("dim", List{0, 2})});
    op_case(op, {input({3, 4}).apart(), arg("dim", 1), arg("keepdim", Argument(true))});
    op_case(op, {input({3, 4}).apart()});
    op_case(op, {input({}), arg("dim", 0)});
    op_case(op, {input({0, 3}), arg("dim", 1)});
    bad_input(op, std::string(op) + ": axis 1 of [2, 0] is empty, so there is nothing to choose from",
              {input({2, 0}), arg("dim", 1)});
  }
  for (const char* op : {"max", "min"}) {
    op_case(op, {input({3, 4, 2}).apart(), arg("dim", 1)});
    op_case(op, {input({3, 4, 2}).apart(), arg("dim", -1), arg("keepdim", Argument(true))});
    op_case(op, {input({3, 4}).apart()});
    op_case(op, {input({}), arg("dim", 0)});
    op_case(op, {input({0, 3}), arg("dim", 1)});
    op_case(op, {input({3, 4}).apart(), other({4}).range(-3, 3).apart()});
    bad_input(op, std::string(op) + ": axis 0 of [0] is empty, so there is nothing to choose from", {input({0})});
  }
  op_case("aminmax", {input({3, 4}).apart(), arg("dim", 1)});
  op_case("aminmax", {input({3, 4}).apart()});
  bad_input("aminmax", "aminmax: axis 0 of [0, 2] is empty, so there is nothing to choose from",
            {input({0, 2}), arg("dim", 0)});
  for (const char* op : {"argmax", "argmin"}) {
    op_case(op, {input({3, 4}).apart(), arg("dim", 1), arg("keepdim", Argument(true))});
    op_case(op, {input({3, 4}).apart()});
    bad_input(op, std::string(op) + ": b8 is not supported; convert with to(...)", {mask("input", {2})});
  }
}

OP_CASES(count_cases) {
  for (const char* op : {"all", "any"}) {
    op_case(op, {mask("input", {3, 4}), arg("dim", 1)});
    op_case(op, {input({0, 3}), arg("dim", 0), arg("keepdim", Argument(true))});
    bad_input(op, std::string(op) + ": dim 2 is outside*", {mask("input", {3}), arg("dim", 2)});
  }
  op_case("count_nonzero", {mask("input", {3, 4}), arg("dim", 0)});
  bad_input("count_nonzero", "count_nonzero: dim 2 is outside*", {mask("input", {3}), arg("dim", 2)});
  op_case("bincount", {indices("input", {9}, 5), arg("minlength", 7)});
  op_case("bincount", {indices("input", {9}, 5), tensor_arg("weights", {9}).no_grad()});
  bad_input("bincount", "bincount: the numbers must not be negative, got -1 at position [1]",
            {arg("input", Argument(tensor({0, -1})))});
  op_case("histc", {input({30}).no_grad(), arg("bins", 6), arg("min", -1.0), arg("max", 1.0)})
      .f64_only("rounding moves elements over the edges of bins");
  op_case("histc", {input({30}).no_grad()}).f64_only("rounding moves elements over the edges of bins");
  bad_input("histc", "histc: bins must be positive, got 0", {input({3}), arg("bins", 0)});
}

OP_CASES(moment_cases) {
  for (const char* op : {"var", "std", "var_mean", "std_mean"}) {
    op_case(op, {input({3, 4, 2}), arg("dim", List{0, 2})});
    op_case(op, {input({3, 4}), arg("dim", 1), arg("correction", 0), arg("keepdim", Argument(true))});
    op_case(op, {input({5})});
    bad_input(op, std::string(op) + ": needs a float tensor, got i64; convert it with .to(kF32)",
              {indices("input", {3}, 5)});
  }
}

OP_CASES(more_reduce_cases) {
  for (const char* op : {"nansum", "nanmean"}) {
    op_case(op, {input({3, 4, 2}), arg("dim", List{0, 2})});
    op_case(op, {input({3, 4}), arg("dim", 1), arg("keepdim", Argument(true))});
    op_case(op, {input({3, 4})});
  }
  bad_input("nansum", "nansum: a dim appears twice in [0, 0]", {input({3}), arg("dim", List{0, 0})});
  bad_input("nanmean", "nanmean: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {3}, 5)});
  op_case("prod", {input({3, 4})});
  op_case("prod", {input({2, 3, 4}), arg("dim", 1)});
  op_case("prod", {input({3, 4}), arg("dim", -1), arg("keepdim", Argument(true))});
  op_case("prod", {input({})});
  op_case("prod", {input({0, 2}), arg("dim", 0)});
  bad_input("prod", "prod: dim 1 is outside*", {input({3}), arg("dim", 1)});
  op_case("logsumexp", {input({3, 4, 2}), arg("dim", List{0, 2})});
  op_case("logsumexp", {input({3, 400}), arg("dim", 1), arg("keepdim", Argument(true))});
  op_case("logsumexp", {input({3, 0}), arg("dim", 0)});
  op_case("logsumexp", {input({}), arg("dim", 0)});
  bad_input("logsumexp", "logsumexp: dim 1 is outside*", {input({3}), arg("dim", 1)});
}

TEST_CASE("argmax, and max of rows") {
  CHECK(argmax(f64({1, 1})).item<i64>() == 0);
  CHECK(argmax(f64({1, kNan, kNan})).item<i64>() == 1);
  CHECK(argmin(f64({1, kNan})).item<i64>() == 1);
  CHECK_VALUES(max(tensor({{1, 5}, {7, 2}}), 1).indices, {1, 0});
  CHECK(max(tensor({true, false})).dtype() == kB8);
}

TEST_CASE("C20_reductions_of_nothing") {
  CHECK(sum(zeros({0})).item<double>() == 0);
  CHECK(prod(zeros({0})).item<double>() == 1);
  CHECK(std::isnan(mean(zeros({0})).item<double>()));
  CHECK(all(zeros({0})).item<bool>());
  CHECK(!any(zeros({0})).item<bool>());
  CHECK(logsumexp(zeros({0}), 0).item<double>() == -kInf);
  CHECK(std::isnan(var(zeros({0})).item<double>()));
  CHECK(amax(zeros({0, 3}), 1).shape() == Shape{0});
  CHECK(argmax(zeros({3, 0}), 0).shape() == Shape{0});
  CHECK(sum(zeros({2}), List{}).shape() == Shape{});
  CHECK_ERROR(max(zeros({0})), "max: axis 0 of [0] is empty, so there is nothing to choose from");
  const Tensor x = leaf({});
  backward_of(prod(x));
  CHECK(x.grad().shape() == Shape{0});
}

TEST_CASE("variance: large means, second order at 0, pairs") {
  check_rule({1, 1}, [](const Tensor& x) { return std(x); }, {0}, {0, 0});
  check_rule({1, 3}, [](const Tensor& x) { return var(x); }, {2}, {-2, 2});
  check_rule({1, 3}, [](const Tensor& x) { return std(x); }, {1.414214}, {-0.707107, 0.707107});
  check_rule({1}, [](const Tensor& x) { return std(x); }, {kNan}, {0});
  check_rule({1}, [](const Tensor& x) { return var(x); }, {kNan}, {0});
  check_rule({1}, [](const Tensor& x) { return std(x, {}, 0); }, {0}, {0});
  CHECK(var(f64({1, 3}), {}, 2).item<double>() == kInf);
  const SpreadMean both = std_mean(f64({{1, 3}, {2, 2}}), 1);
  CHECK_VALUES(both.spread, {1.414214, 0});
  CHECK_VALUES(both.mean, {2, 2});
  // Second order at a standard deviation of 0 is finite.
  const Tensor x = leaf({1, 1});
  const Tensor first = grad(sum(std(x)), {x}, {.create_graph = true})[x];
  CHECK_VALUES(grad(sum(first), {x}, {.allow_unused = true})[x], {0, 0});
  // A row of large mean in f32.
  std::vector<float> row;
  for (int i = 0; i < 16; ++i) row.push_back(static_cast<float>(10000 + i * 1e-3));
  CHECK(var(tensor(row, kF32), {}, 0).item<double>() == doctest::Approx(2.026558e-5).epsilon(1e-5));
}

TEST_CASE("logsumexp: large numbers, rows with infinities, integers") {
  const auto f = [](const Tensor& x) { return logsumexp(x, 0); };
  check_rule({-kInf, -kInf}, f, {-kInf}, {0, 0});
  check_rule({-kInf, 0}, f, {0}, {0, 1});
  check_rule({kInf, 1}, f, {kInf}, {1, 0});
  check_rule({kInf, kInf}, f, {kInf}, {0.5, 0.5});
  check_rule({1000, 1000}, f, {1000.693147}, {0.5, 0.5});
  const Tensor x = leaf({{kInf, 1}, {0, 0}});
  const Tensor y = logsumexp(x, 1);
  CHECK_VALUES(y, {kInf, 0.693147});
  backward_of(y);
  CHECK_VALUES(x.grad(), {1, 0, 0.5, 0.5});
  CHECK(logsumexp(tensor({1, 2}), 0).dtype() == kF32);
}

TEST_CASE("V35_prod") {
  const auto f = [](const Tensor& x) { return prod(x); };
  check_rule({2, 0, 4}, f, {0}, {0, 8, 0});
  check_rule({2, 0, 0}, f, {0}, {0, 0, 0});
  check_rule({2, 3, 4}, f, {24}, {12, 8, 6});
  check_rule({{2, 0}, {3, 4}}, [](const Tensor& x) { return prod(x, 1); }, {0, 12}, {0, 2, 4, 3});
  // d²(x₀x₁x₂)/dx₀dx₁ = x₂ at [0, 0, 2].
  const Tensor x = leaf({0, 0, 2});
  const GradMap first = grad(prod(x), {x}, {.create_graph = true});
  CHECK_VALUES(grad(first[x].select(0, 0), {x})[x], {0, 2, 0});
  CHECK(prod(tensor({true, true})).dtype() == kI64);
}

TEST_CASE("nanmean of nothing but NaN") {
  check_rule({1, kNan}, [](const Tensor& x) { return nansum(x); }, {1}, {1, 0});
  check_rule({1, kNan, 3}, [](const Tensor& x) { return nanmean(x); }, {2}, {0.5, 0, 0.5});
  CHECK(std::isnan(nanmean(f64({kNan})).item<double>()));
}

TEST_CASE("V11_counts") {
  CHECK(sum(ones({300}, kB8)).item<i64>() == 300);
  CHECK(count_nonzero(f64({0, kNan, 1})).item<i64>() == 2);
  CHECK_VALUES(histc(f64({0, 0.5, 1, 2}), 2, 0, 1), {1, 2});
  CHECK_VALUES(bincount(tensor({0, 2, 2}), 4), {1, 0, 2, 0});
  CHECK_VALUES(bincount(tensor({0, 2, 2}), f64({0.5, 1, 2})), {0.5, 0, 3});
  CHECK(all(tensor({{1., kNan}, {0., 1.}}), 1).to_vector<double>() == Numbers{1, 0});
  CHECK_ERROR(histc(f64({0, kInf})), "histc: the range of x, [0, inf], is not finite; give min and max");
}

}  // namespace waymark::test
