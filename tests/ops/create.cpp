// core/ops/create.cpp: cases and values.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "tests/ops/expect.h"
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(create_cases) {
  op_case("empty", {arg("size", List{2, 0})});
  op_case("zeros", {arg("size", List{2, 3})});
  op_case("ones", {arg("size", List{2, 3}), arg("dtype", "b8")});
  op_case("full", {arg("size", List{2}), arg("fill_value", 2.5)});
  for (const char* op : {"empty", "zeros", "ones"})
    bad_input(op, std::string(op) + ": negative extent in [-1]", {arg("size", List{-1})});
  bad_input("full", "full: negative extent in [2, -3]", {arg("size", List{2, -3}), arg("fill_value", 1)});
  op_case("eye", {arg("n", 3), arg("m", 5)});
  bad_input("eye", "eye: negative extent in [-1, -1]", {arg("n", -1)});
  op_case("arange", {arg("start", 0.5), arg("end", -3.2), arg("step", -0.7)});
  bad_input("arange", "arange: the step must not be 0", {arg("end", 3), arg("step", 0)});
  op_case("linspace", {arg("start", 0), arg("end", 1), arg("steps", 5)});
  bad_input("linspace", "linspace: steps must not be negative, got -1", {arg("start", 0), arg("end", 1), arg("steps", -1)});
  op_case("logspace", {arg("start", 0), arg("end", 1), arg("steps", 5), arg("base", 2.0)});
  bad_input("logspace", "logspace: steps must not be negative, got -1", {arg("start", 0), arg("end", 1), arg("steps", -1)});
  for (const char* op : {"tril_indices", "triu_indices"}) {
    op_case(op, {arg("row", 3), arg("col", 4), arg("offset", -1)});
    bad_input(op, std::string(op) + ": row -1 and col 2 must not be negative", {arg("row", -1), arg("col", 2)});
  }
  op_case("scalar_tensor", {arg("s", 2)});
  bad_input("scalar_tensor", "scalar_tensor: the argument \"s\" (number) is missing", {});
}

TEST_CASE("V01_arange_linspace_logspace") {
  CHECK_VALUES(arange(5, 1, -2), {5, 3});
  CHECK(arange(0, 1, 0.1).numel() == 10);
  CHECK_VALUES(linspace(0, 1, 1), {0});
  CHECK(linspace(0, 1, 0).shape() == Shape{0});
  CHECK_VALUES(logspace(0, 2, 3), {1, 10, 100});
  CHECK(arange(3).dtype() == kI64);
  CHECK(arange(3.).dtype() == kF32);
  CHECK(arange(3, {.dtype = kF64}).dtype() == kF64);
  CHECK(arange(3, 3).numel() == 0);
  // One multiplication an element, no accumulated error.
  CHECK(arange(0, 1e6, 0.1, {.dtype = kF64}).at<double>({9'999'999}) == 9'999'999 * 0.1);
  CHECK_VALUES(linspace(-1, 1, 5), {-1, -0.5, 0, 0.5, 1});
  const Tensor up = linspace(0.1, 0.7, 8, {.dtype = kF64}), down = linspace(0.7, 0.1, 8, {.dtype = kF64});
  for (i64 i = 0; i < 8; ++i) CHECK(up.at<double>({i}) == down.at<double>({7 - i}));
}

TEST_CASE("V02_creation_errors") {
  CHECK_ERROR(arange(5, 1), "arange: the end 1 lies before the start 5 for a step of 1");
  CHECK_ERROR(arange(0, 5, 0), "arange: the step must not be 0");
  CHECK_ERROR(arange(0, kNan), "arange: start 0, end nan and step 1 must be finite");
  CHECK_ERROR(arange(0, kInf), "arange: start 0, end inf and step 1 must be finite");
  CHECK_ERROR(linspace(0, 1, -1), "linspace: steps must not be negative, got -1");
  CHECK_ERROR(zeros({-1}), "zeros: negative extent in [-1]");
  CHECK_ERROR(arange(INT64_MIN, INT64_MAX, 1), "arange: from -9.223372036854776e+18 to 9.223372036854776e+18 by 1 has more than 2^63-1 elements");
}

TEST_CASE("C24_overflow") {
  const i64 live = memory_counters().bytes_live;
  CHECK_ERROR(zeros({i64{1} << 31, i64{1} << 32}), "zeros: [2147483648, 4294967296] has more than 2^63-1 bytes");
  CHECK_ERROR(empty({INT64_MAX, 2}), "empty: [9223372036854775807, 2] has more than 2^63-1 bytes");
  CHECK(memory_counters().bytes_live == live);
}

TEST_CASE("V03_eye_triangles") {
  CHECK_VALUES(eye(2, 3), {1, 0, 0, 0, 1, 0});
  CHECK_VALUES(eye(3, 2), {1, 0, 0, 1, 0, 0});
  CHECK_VALUES(tril_indices(3, 3, -1), {1, 2, 2, 0, 0, 1});
  CHECK_VALUES(triu_indices(2, 3, 1), {0, 0, 1, 1, 2, 2});
  CHECK(triu_indices(2, 3, INT64_MAX).shape() == Shape{2, 0});
  CHECK(tril_indices(2, 3, INT64_MAX).shape() == Shape{2, 6});
  CHECK(tril_indices(2, 3, INT64_MIN).shape() == Shape{2, 0});
}

TEST_CASE("options: dtype, requires_grad, default float") {
  CHECK(zeros({2, 3}).dtype() == kF32);
  CHECK(zeros({2}, kF64).dtype() == kF64);
  CHECK(zeros({2, 3}, {.dtype = kF64}).dtype() == kF64);
  CHECK(ones({2}, {.requires_grad = true}).requires_grad());
  CHECK_ERROR(ones({2}, {.dtype = kI64, .requires_grad = true}), "requires_grad_: only f32 and f64 tensors have gradients, this one is i64");
  CHECK(full({2}, 1).dtype() == kI64);
  CHECK(full({2}, true).dtype() == kB8);
  CHECK(full({2}, 1.5).dtype() == kF32);
  CHECK_VALUES(full({2}, 2.5, kI64), {2, 2});
  CHECK(scalar_tensor(2).dtype() == kF32);
  set_default_dtype(kF64);
  CHECK(full({2}, 1.5).dtype() == kF64);
  CHECK(arange(3.).dtype() == kF64);
  set_default_dtype(kF32);
  const Tensor x = zeros({2, 3}, kF64).mT();
  CHECK(ones_like(x).strides() == x.strides());
  CHECK(ones_like(x).dtype() == kF64);
  CHECK(zeros_like(x, {.dtype = kI64}).dtype() == kI64);
  CHECK(x.new_full({2}, 3).dtype() == kF64);
}

TEST_CASE("tensor from lists") {
  CHECK(tensor({1, 2}).dtype() == kI64);
  CHECK(tensor({1.5}).dtype() == kF32);
  CHECK(tensor({true}).dtype() == kB8);
  CHECK(tensor({1, 2.5}).dtype() == kF32);
  CHECK(tensor({true, 2}).dtype() == kI64);
  CHECK(tensor(1.5).shape() == Shape{});
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({{1, 2}, {3, 4}, {5, 6}}).shape() == Shape{3, 2});
  CHECK_VALUES(tensor({{{1.}, {2.}}}), {1, 2});
  CHECK(tensor({{{1.}, {2.}}}).shape() == Shape{1, 2, 1});
  CHECK(tensor({{1, 2}}).shape() == Shape{1, 2});
  CHECK(tensor({1}).shape() == Shape{1});
  CHECK(tensor(std::vector<double>{1, 2}).dtype() == kF32);
  CHECK(tensor(std::vector<int>{1, 2}).dtype() == kI64);
  CHECK(tensor(std::vector<bool>{true, false}).dtype() == kB8);
  CHECK(tensor(std::vector<double>{1, 2}, kF64).dtype() == kF64);
  CHECK(tensor(std::vector<std::vector<double>>{{1, 2}, {3, 4}}).shape() == Shape{2, 2});
  CHECK(tensor({INT64_MAX}).at<i64>({0}) == INT64_MAX);
  CHECK_ERROR(tensor({{1, 2}, {3}}), "tensor: the lists are ragged: [1] is a list of shape [1], but [0] is a list of shape [2]");
  CHECK_ERROR(tensor({{{1}, {2}}, {{1}, {2, 3}}}),
              "tensor: the lists are ragged: [1, 1] is a list of shape [2], but [1, 0] is a list of shape [1]");
  CHECK_ERROR(tensor({1, {2}}), "tensor: the lists are ragged: [1] is a list of shape [1], but [0] is a number");
}

TEST_CASE("from_blob borrows") {
  std::vector<double> memory = {0, 1, 2, 3, 4, 5};
  int released = 0;
  {
    const Tensor t = from_blob(memory.data(), {2, 3}, [&](void* p) { released += p == memory.data(); });
    CHECK_VALUES(t, {0, 1, 2, 3, 4, 5});
    t.add_(10);
    CHECK(memory[5] == 15);
    const Tensor row = t.select(0, 1);
    CHECK(released == 0);
  }
  CHECK(released == 1);
  const Tensor columns = from_blob(memory.data(), {3, 2}, {1, 3});
  CHECK_VALUES(columns, {10, 13, 11, 14, 12, 15});
  const Tensor reversed = from_blob(memory.data() + 5, {6}, {-1});
  CHECK_VALUES(reversed, {15, 14, 13, 12, 11, 10});
  CHECK(from_blob(memory.data(), {0, 3}).numel() == 0);
  CHECK_ERROR(from_blob(reinterpret_cast<std::byte*>(memory.data()) + 1, Shape{2}, Shape{1}, kF64),
              "from_blob: the data is not aligned to the 8 bytes of an element of f64");
  u8 bytes[] = {0, 2};
  CHECK_ERROR(from_blob(bytes, Shape{2}, Shape{1}, kB8), "from_blob: byte 1 is 2; b8 is 0 or 1");
  CHECK_ERROR(from_blob(static_cast<double*>(nullptr), {2}), "from_blob: the data of a tensor of shape [2] is null");
}

}  // namespace waymark::test
