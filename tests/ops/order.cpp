// core/ops/order.cpp, search.cpp, scan.cpp, logcumsumexp.cpp: cases and values.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/order.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/ops/op_case.h"
#include "tests/ops/rows.h"

namespace waymark::test {

OP_CASES(order_cases) {
  op_case("sort", {input({3, 5, 2}).apart(), arg("dim", 1)});
  op_case("sort", {input({4, 3}).apart(), arg("descending", Argument(true))});
  op_case("sort", {input({0, 3})});
  op_case("sort", {input({})});
  bad_input("sort", "sort: dim 1 is outside*", {input({3}), arg("dim", 1)});
  op_case("argsort", {input({3, 5}).apart(), arg("dim", 0), arg("descending", Argument(true))});
  bad_input("argsort", "argsort: dim 1 is outside*", {input({3}), arg("dim", 1)});
  op_case("topk", {input({3, 5, 2}).apart(), arg("k", 2), arg("dim", 1)});
  op_case("topk",
          {input({3, 5}).apart(), arg("k", 5), arg("largest", Argument(false)), arg("sorted", Argument(false))});
  op_case("topk", {input({3, 5}).apart(), arg("k", 0)});
  op_case("topk", {input({}), arg("k", 1)});
  bad_input("topk", "topk: k 4 is outside [0, 3], the extent of axis 0", {input({3}), arg("k", 4)});
  op_case("kthvalue", {input({3, 5}).apart(), arg("k", 2), arg("dim", 0), arg("keepdim", Argument(true))});
  op_case("kthvalue", {input({3, 5}).apart(), arg("k", 5)});
  bad_input("kthvalue", "kthvalue: k 0 is outside [1, 3], the extent of axis 0", {input({3}), arg("k", 0)});
  for (const char* op : {"median", "nanmedian"}) {
    op_case(op, {input({3, 4}).apart(), arg("dim", 1)});
    op_case(op, {input({5, 2}).apart(), arg("dim", 0), arg("keepdim", Argument(true))});
    op_case(op, {input({3, 4}).apart()});
    bad_input(op, std::string(op) + ": axis 0 of [0, 2] is empty, so there is nothing to choose from",
              {input({0, 2}), arg("dim", 0)});
  }
  op_case("quantile", {input({3, 4}).apart(), arg("q", 0.3), arg("dim", 1)});
  op_case("quantile", {input({3, 4}).apart(), arg("q", 0.5), arg("keepdim", Argument(true))});
  op_case("quantile", {input({5}).apart(), arg("q", 1.0)});
  bad_input("quantile", "quantile: q must lie in [0, 1], got 1.5", {input({3}), arg("q", 1.5)});
  op_case("unique",
          {indices("input", {3, 4}, 5), arg("return_inverse", Argument(true)), arg("return_counts", Argument(true))});
  bad_input("unique", "unique: the argument \"input\" (tensor) is missing", {});
  op_case("searchsorted", {arg("sorted_sequence", Argument(f64({1, 2, 2, 3}))), input({2, 3}).no_grad()})
      .f64_only("the sequence stays f64");
  bad_input("searchsorted",
            "searchsorted: the sequence [2, 2] must have 1 axis, or all axes of the values [3] but the last one",
            {tensor_arg("sorted_sequence", {2, 2}), input({3})});
  op_case("bucketize",
          {input({2, 3}).no_grad(), arg("boundaries", Argument(f64({-1, 0, 1}))), arg("right", Argument(true))});
  bad_input("bucketize", "bucketize: the boundaries must have 1 axis, got [2, 2]",
            {input({3}), tensor_arg("boundaries", {2, 2})});
}

OP_CASES(scan_cases) {
  for (const char* op : {"cumsum", "cumprod", "logcumsumexp"}) {
    op_case(op, {input({3, 4, 2}), arg("dim", 1)});
    op_case(op, {input({5}), arg("dim", -1)});
    op_case(op, {input({}), arg("dim", 0)});
    op_case(op, {input({2, 0}), arg("dim", 1)});
    bad_input(op, std::string(op) + ": dim 1 is outside*", {input({3}), arg("dim", 1)});
  }
  for (const char* op : {"cummax", "cummin"}) {
    op_case(op, {input({3, 4, 2}).apart(), arg("dim", 1)});
    op_case(op, {input({}), arg("dim", 0)});
    bad_input(op, std::string(op) + ": dim 1 is outside*", {input({3}), arg("dim", 1)});
  }
  op_case("diff", {input({3, 5}), arg("dim", 1)});
  op_case("diff", {input({5, 2}), arg("dim", 0), arg("n", 2)});
  bad_input("diff", "diff: n must not be negative, got -1", {input({3}), arg("n", -1)});
}

TEST_CASE("V74_order_with_NaN") {
  CHECK_VALUES(sort(f64({kNan, 1, 2})).values, {1, 2, kNan});
  CHECK_VALUES(sort(f64({1, kNan, 2}), 0, true).values, {kNan, 2, 1});
  CHECK_VALUES(topk(f64({kNan, 1, 2}), 1).values, {kNan});
  CHECK_VALUES(topk(f64({kNan, 1, 2}), 2, 0, false).values, {1, 2});
  CHECK_VALUES(sort(f64({1, 2, 1, 2}), 0, true).indices, {1, 3, 0, 2});
  CHECK(sort(tensor({true, false})).values.dtype() == kB8);
}

TEST_CASE("medians at NaN and of nothing") {
  check_rule({1, 1, 1}, [](const Tensor& x) { return median(x); }, {1}, {1. / 3, 1. / 3, 1. / 3});
  check_rule({1, 2, 3, 4}, [](const Tensor& x) { return median(x); }, {2}, {0, 1, 0, 0});
  check_rule({3, 1, 2, 4}, [](const Tensor& x) { return median(x, 0).values; }, {2}, {0, 0, 1, 0});
  check_rule({1, kNan}, [](const Tensor& x) { return median(x); }, {kNan}, {0, 1});
  check_rule({1, kNan, 3}, [](const Tensor& x) { return nanmedian(x); }, {1}, {1, 0, 0});
  CHECK(median(f64({1, kNan, kNan}), 0).indices.item<i64>() == 1);
  CHECK(std::isnan(median(zeros({0})).item<double>()));
}

TEST_CASE("cummax stays at NaN") {
  check_rule({1, 1, 0, 2}, [](const Tensor& x) { return cummax(x, 0).values; }, {1, 1, 1, 2}, {1, 2, 0, 1});
  check_rule({1, 1, 0, 2}, [](const Tensor& x) { return cummin(x, 0).values; }, {1, 1, 0, 0}, {1, 1, 2, 0});
  CHECK_VALUES(cummax(f64({1, kNan, 3}), 0).values, {1, kNan, kNan});
}

TEST_CASE("logcumsumexp of infinities and of large numbers") {
  const auto f = [](const Tensor& x) { return logcumsumexp(x, 0); };
  check_rule({-kInf, 0, 1}, f, {-kInf, 0, 1.313262}, {0, 1.268941, 0.731059});
  check_rule({-kInf, -kInf}, f, {-kInf, -kInf}, {0, 0});
  check_rule({kInf, 0}, f, {kInf, kInf}, {2, 0});
  check_rule({1, kInf, kInf}, f, {1, kInf, kInf}, {1, 1.5, 0.5});
  check_rule({1000, 1000}, f, {1000, 1000.693147}, {1.5, 0.5});
}

TEST_CASE("C07_cumprod_zeros") {
  const auto f = [](const Tensor& x) { return cumprod(x, 0); };
  check_rule({2, 0, 3, 4}, f, {2, 0, 0, 0}, {1, 32, 0, 0});
  check_rule({2, 0, 0, 3}, f, {2, 0, 0, 0}, {1, 2, 0, 0});
  check_rule({-1, 2, -3}, f, {-1, -2, 6}, {-3, 2, -2});
  // K65: d/dx of the gradient (4, 0) of cumprod([0, 3]), summed: 1, 1.
  const Tensor x = leaf({0, 3});
  const GradMap first = grad(sum(cumprod(x, 0)), {x}, {.create_graph = true});
  CHECK_VALUES(first[x], {4, 0});
  CHECK_VALUES(grad(sum(first[x]), {x})[x], {1, 1});
}

TEST_CASE("C71_V10_cumsum") {
  check_rule({1, 2, 3}, [](const Tensor& x) { return cumsum(x, 0); }, {1, 3, 6}, {111, 110, 100}, {1, 10, 100});
  CHECK_VALUES(cumsum(tensor({true, true}), 0), {1, 2});
  CHECK(cumsum(tensor({true, true}), 0).dtype() == kI64);
  CHECK_VALUES(cumsum(f64({1, kInf, 1}), 0), {1, kInf, kInf});
  // The error does not grow with the length, and the bits do not depend on the threads.
  const i64 n = 1'000'000;
  const Tensor x = full({4, n}, 0.1f, kF32);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor one = cumsum(x, 1);
  set_num_threads(3);
  const Tensor three = cumsum(x, 1);
  set_num_threads(before);
  CHECK(one.to_vector<float>() == three.to_vector<float>());
  CHECK(std::abs(double{one.at<float>({3, n - 1})} - 0.1f * double{n}) < 0.01);
}

TEST_CASE("V36_diff_quantile") {
  check_rule({1, 4, 9}, [](const Tensor& x) { return diff(x); }, {3, 5}, {-1, 0, 1});
  check_rule({1, 2, 3, 4}, [](const Tensor& x) { return quantile(x, 0.5); }, {2.5}, {0, 0.5, 0.5, 0});
  CHECK_VALUES(quantile(f64({1, 2, 3, 4}), Numbers{0, 1}), {1, 4});
  CHECK(std::isnan(quantile(f64({1, kNan}), 0.0).item<double>()));
}

TEST_CASE("V72_V73_search_and_unique") {
  CHECK_VALUES(searchsorted(tensor({1, 2, 2, 3}), tensor({2, 0, 9})), {1, 0, 4});
  CHECK(searchsorted(tensor({1, 2, 2, 3}), tensor(2), true).item<i64>() == 3);
  CHECK_VALUES(bucketize(f64({0, 1, 1.5}), tensor({1, 2})), {0, 0, 1});
  CHECK_VALUES(searchsorted(f64({{1, 2}, {3, 4}}), f64({{2}, {2}})), {1, 0});
  CHECK_VALUES(searchsorted(f64({1, 2}), f64({kNan})), {2});
  const Unique u = unique(tensor({3, 1, 3}), true, true, true);
  CHECK_VALUES(u.output, {1, 3});
  CHECK_VALUES(u.inverse_indices, {1, 0, 1});
  CHECK_VALUES(u.counts, {1, 2});
  CHECK(unique(f64({kNan, kNan, 1})).output.numel() == 3);
  CHECK(unique(zeros({0})).output.numel() == 0);
}

}  // namespace waymark::test
