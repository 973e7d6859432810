// Cases of core/ops/pooling.cpp; K18, V51, V52, C51, C52.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pooling.h"
#include "core/ops/reduce.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(pooling_cases) {
  op_case("avg_pool1d", {input({2, 3, 9}), arg("kernel_size", 3), arg("stride", 2), arg("padding", 1)});
  op_case("avg_pool1d", {input({3, 8}), arg("kernel_size", 3), arg("padding", 1), arg("ceil_mode", Argument(true)), arg("count_include_pad", Argument(false))});
  op_case("avg_pool1d", {input({0, 8}), arg("kernel_size", 2)});
  op_case("adaptive_avg_pool1d", {input({2, 3, 7}), arg("output_size", 3)});
  op_case("adaptive_avg_pool1d", {input({3}), arg("output_size", 5)});
  op_case("interpolate", {input({2, 3, 5}), arg("size", 8)});
  op_case("interpolate", {input({2, 5}), arg("size", 8), arg("mode", "linear")});
  op_case("interpolate", {input({2, 5}), arg("size", 3), arg("mode", "linear"), arg("align_corners", Argument(true))});
  op_case("interpolate", {input({1}), arg("size", 3), arg("mode", "linear")});
  op_case("max_pool1d", {input({2, 9}).apart(), arg("kernel_size", 3), arg("stride", 2), arg("padding", 1)});
  op_case("max_pool1d", {input({9}).apart(), arg("kernel_size", 2), arg("stride", 1), arg("dilation", 3)});
  op_case("max_pool1d", {input({7}).apart(), arg("kernel_size", 2), arg("ceil_mode", Argument(true))});
  op_case("max_pool1d", {input({0, 4}), arg("kernel_size", 2)});
  for (const char* op : {"avg_pool1d", "max_pool1d"}) {
    const std::string at = std::string(op) + ": ";
    bad_input(op, at + "the window spans 5 positions, the padded input has only 4", {input({4}), arg("kernel_size", 5)});
    bad_input(op, at + "padding must be at least 0 and at most half of kernel_size, got 2 for 3", {input({4}), arg("kernel_size", 3), arg("padding", 2)});
    bad_input(op, at + "kernel_size, stride and dilation must be at least 1, got 2, 0 and 1", {input({4}), arg("kernel_size", 2), arg("stride", 0)});
    bad_input(op, at + "a 0-d tensor has no axis to pool", {input({}), arg("kernel_size", 2)});
  }
  bad_input("max_pool1d", "max_pool1d: a window of 2 with dilation 3 lies in the padding alone: [2] has nothing to offer it",
            {input({2}), arg("kernel_size", 2), arg("dilation", 3), arg("padding", 1)});
  bad_input("adaptive_avg_pool1d", "adaptive_avg_pool1d: output_size and the last axis must be at least 1, got 0 for [4]", {input({4}), arg("output_size", 0)});
  bad_input("interpolate", "interpolate: mode is \"nearest\" or \"linear\", not \"cubic\"", {input({4}), arg("size", 2), arg("mode", "cubic")});
  bad_input("interpolate", "interpolate: align_corners needs mode \"linear\"", {input({4}), arg("size", 2), arg("align_corners", Argument(true))});
  bad_input("interpolate", "interpolate: size and the last axis must be at least 1, got 2 for [3, 0]", {input({3, 0}), arg("size", 2)});
}

TEST_CASE("V51 averages of windows, zeros of the padding counted; adaptive windows overlap") {
  check_values_of([](const Tensor& x) { return avg_pool1d(x, 2, 1, 1); }, {1, 2, 3}, {.5, 1.5, 2.5, 1.5}, {1, 1, 1});
  check_values_of([](const Tensor& x) { return adaptive_avg_pool1d(x, 2); }, {1, 2, 3}, {1.5, 2.5}, {.5, 1, .5});
  check_values_of([](const Tensor& x) { return avg_pool1d(x, 2, 2, 1, false, false); }, {1, 2, 3}, {1, 2.5}, {1, .5, .5});
  check_values_of([](const Tensor& x) { return avg_pool1d(x, 2, 2, 0, true); }, {1, 2, 5}, {1.5, 5}, {.5, .5, 1});
}

TEST_CASE("V52 interpolation: cell centres, aligned corners, nearest") {
  check_values_of([](const Tensor& x) { return interpolate(x, 4, "linear"); }, {1, 3}, {1, 1.5, 2.5, 3}, {2, 2});
  check_values(interpolate(make<double>({2}, {1, 3}), 3, "linear", true), {1, 2, 3});
  check_values(interpolate(make<double>({3}, {1, 2, 3}), 5), {1, 1, 2, 2, 3});
}

TEST_CASE("C51 max_pool1d: ties go to the first, overlapping windows accumulate") {
  check_values_of([](const Tensor& x) { return max_pool1d(x, 2, 1); }, {1, 1, 0}, {1, 1}, {1, 1, 0});
  check_values_of([](const Tensor& x) { return max_pool1d(x, 2); }, {1, 3, 2, 2}, {3, 2}, {0, 1, 1, 0});
  check_values_of([](const Tensor& x) { return max_pool1d(x, 2, 1); }, {1, 3, 2}, {3, 3}, {0, 2, 0});
  check_values_of([](const Tensor& x) { return max_pool1d(x, 3, 1, 1); }, {1, 5, 2, 4}, {5, 5, 5, 4}, {0, 3, 0, 1});
  check_values_of([](const Tensor& x) { return max_pool1d(x, 3, 2); }, {1, kNan, kNan, 4, 5}, {kNan, kNan}, {0, 1, 1, 0, 0});
}

TEST_CASE("C52 interpolate twice in one loss accumulates") {
  Tensor x = leaf({2}, {1, 3});
  (interpolate(x, 4, "linear").sum() + interpolate(x, 3).sum()).backward();
  check_values(x.grad(), {4, 3});
}

}  // namespace waymark::test
