// core/ops/random_ops.cpp: cases and values. The draws themselves are tested in tests/core/random.
#include <doctest/doctest.h>

#include <set>

#include "core/ops/arithmetic.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(random_cases) {
  const char* drawn = "each call draws new numbers";
  for (const char* op : {"rand", "randn", "gumbel"}) {
    op_case(op, {arg("size", List{2, 3})}).f64_only(drawn);
    op_case(op, {arg("size", List{0, 3}), arg("dtype", "f64")}).f64_only(drawn);
    bad_input(op, std::string(op) + ": the dtype must be f32 or f64, got i64", {arg("size", List{2}), arg("dtype", "i64")});
  }
  op_case("normal", {tensor_arg("mean", {3, 1}), tensor_arg("std", {4}).range(0, 1)}).f64_only(drawn);
  bad_input("normal", "normal: std must not be negative, got -1 at position 1",
            {tensor_arg("mean", {2}), arg("std", Argument(tensor({1., -1.})))});
  op_case("randint", {arg("high", 7), arg("size", List{3})}).f64_only(drawn);
  bad_input("randint", "randint: low 3 must lie below high 3", {arg("low", 3), arg("high", 3), arg("size", List{3})});
  op_case("randperm", {arg("n", 7)}).f64_only(drawn);
  op_case("randperm", {arg("n", 0)}).f64_only(drawn);
  bad_input("randperm", "randperm: n must not be negative, got -1", {arg("n", -1)});
  op_case("multinomial", {input({2, 5}).range(0.1, 1), arg("num_samples", 3)}).f64_only(drawn);
  bad_input("multinomial", "multinomial: 3 samples without replacement, but row 0 has 2 non-zero weights",
            {arg("input", Argument(tensor({1., 0., 2.}))), arg("num_samples", 3)});
  op_case("bernoulli", {input({2, 5}).range(0, 1).no_grad()}).f64_only(drawn);
  op_case("bernoulli", {input({2, 5}).no_grad(), arg("p", 0.25)}).f64_only(drawn);
  bad_input("bernoulli", "bernoulli: p must lie in [0, 1], got 1.5", {input({2}), arg("p", 1.5)});
}

TEST_CASE("V_random_vectors") {
  const RandomScope scope(0);
  const TensorOptions init{.dtype = kF64, .stream = "init"}, data{.stream = "data"};
  CHECK_VALUES(rand({2, 3}, init), {0.2484524799184683, 0.11998813485377813, 0.8484174954809632, 0.6163822745209728,
                                    0.029402938048518235, 0.8811995302573954});
  CHECK_VALUES(randint(0, 10, {5}, data), {7, 1, 4, 7, 3});
  CHECK_VALUES(randperm(6, data), {2, 3, 1, 5, 0, 4});
  const RandomScope again(0);
  CHECK(mismatch(randn({2, 3}, init), {1.2166128895702173, 1.142304878646575, 0.06339367506657077, 0.9670157069271572,
                                       0.18071106044182303, 0.4305564620643782}, 1e-14) == "");
}

TEST_CASE("manual_seed repeats, streams are apart, growth changes nothing") {
  manual_seed(5);
  const Tensor a = rand({3, 4}), b = rand({3, 4}), other = rand({3, 4}, {.stream = "other"});
  manual_seed(5);
  const Tensor c = rand({3, 4});
  CHECK(a.to_vector<double>() == c.to_vector<double>());
  CHECK(a.to_vector<double>() != b.to_vector<double>());
  CHECK(a.to_vector<double>() != other.to_vector<double>());
  manual_seed(5);
  CHECK(rand({3, 9}).slice(1, 0, 4).to_vector<double>() == a.to_vector<double>());
  manual_seed(0);
}

TEST_CASE("distributions: parameters, ranges, moments") {
  const RandomScope scope(3);
  const Tensor u = empty({1000}, kF64);
  u.uniform_(-2, 5);
  for (double v : u.to_vector<double>()) CHECK((v >= -2 && v < 5));
  const Tensor z = normal(3, 0.5, {20000}, {.dtype = kF64});
  CHECK(std::abs(z.mean().item<double>() - 3) < 5 * 0.5 / std::sqrt(20000.0));
  CHECK(std::abs((z - 3).square().mean().item<double>() - 0.25) < 0.02);
  const Tensor t = empty({5000}, kF64);
  trunc_normal_(t, 1, 2, 0, 1.5);
  for (double v : t.to_vector<double>()) CHECK((v >= 0 && v <= 1.5));
  const Tensor e = empty({20000}, kF64);
  e.exponential_(4);
  CHECK(std::abs(e.mean().item<double>() - 0.25) < 5 * 0.25 / std::sqrt(20000.0));
  const Tensor p = bernoulli(full({20000}, 0.3, kF64));
  CHECK(p.dtype() == kF64);
  CHECK(std::abs(p.mean().item<double>() - 0.3) < 5 * std::sqrt(0.21 / 20000));
  CHECK(bernoulli(ones({5})).sum().item<double>() == 5);
  CHECK(bernoulli(zeros({5})).sum().item<double>() == 0);
  const Tensor b = zeros({3, 4}, kI64);
  b.bernoulli_(1);
  CHECK(b.sum().item<i64>() == 12);
  CHECK_VALUES(normal(f64({1, 2}), f64({0, 0})), {1, 2});
  CHECK(randint(3, {100}).dtype() == kI64);
  CHECK(randint_like(zeros({2, 2}), 5, 6).dtype() == kF32);
  // f32 rounding never reaches the excluded end.
  const Tensor narrow_range = empty({100000});
  narrow_range.uniform_(1, 1 + 1e-6);
  for (float v : narrow_range.to_vector<float>()) CHECK(v < static_cast<float>(1 + 1e-6));
}

TEST_CASE("multinomial") {
  const RandomScope scope(1);
  const Tensor w = f64({{0, 3, 1, 0}, {1, 0, 0, 0}});
  const Tensor with = multinomial(w, 4000, true);
  CHECK(with.shape() == Shape{2, 4000});
  i64 ones = 0;
  for (i64 s = 0; s < 4000; ++s) {
    const i64 k = with.at<i64>({0, s});
    CHECK((k == 1 || k == 2));
    ones += k == 1;
    CHECK(with.at<i64>({1, s}) == 0);
  }
  CHECK(std::abs(static_cast<double>(ones) - 3000) < 5 * std::sqrt(4000 * 0.1875));
  for (int i = 0; i < 20; ++i) {
    const auto picked = multinomial(f64({0.5, 0, 2, 1, 0}), 3).to_vector<i64>();
    CHECK(std::set<i64>(picked.begin(), picked.end()) == std::set<i64>{0, 2, 3});
  }
  CHECK_ERROR(multinomial(f64({0, 0}), 1, true), "multinomial: all weights of row 0 are 0");
  CHECK_ERROR(multinomial(f64({1, -1}), 1), "multinomial: weight -1 of class 1 in row 0 must be finite and not negative");
  CHECK_ERROR(multinomial(f64({1, kInf}), 1), "multinomial: weight inf of class 1 in row 0 must be finite and not negative");
  CHECK_ERROR(multinomial(f64({1, 0}), 2), "multinomial: 2 samples without replacement, but row 0 has 1 non-zero weights");
}

TEST_CASE("random in place: checks come before the draw, history is replaced") {
  const RandomScope scope(0);
  const Tensor x = leaf({1, 2});
  CHECK_ERROR(x.normal_(), "normal_: the target is a leaf that requires grad ([2]); change it inside NoGrad");
  CHECK_ERROR(zeros({2}, kI64).normal_(), "normal_: needs a float tensor, got i64; convert it with .to(kF32)");
  CHECK_ERROR(zeros({2}).normal_(0, -1), "normal_: std must not be negative, got -1");
  CHECK(current_generator().count("user") == 0);
  Tensor y = x * 2;
  y.uniform_();
  backward_of(y);
  CHECK_VALUES(x.grad(), {0, 0});
  const Tensor p = leaf({0.5, 0.5});
  backward_of(bernoulli(p));
  CHECK_VALUES(p.grad(), {0, 0});
}

TEST_CASE("capture and injection of draws through the ops") {
  const RandomScope scope(0);
  Generator& g = current_generator();
  g.start_capture({"user"});
  const Tensor a = normal(2, 3, {4}, {.dtype = kF64}), b = bernoulli(f64({0.5, 0.5, 0.5}));
  const auto captured = g.take_captured();
  REQUIRE(captured.size() == 2);
  CHECK(captured[0].name == "rng.user");
  CHECK(captured[1].buffer.dtype == kB8);
  g.inject(captured);
  CHECK(normal(2, 3, {4}, {.dtype = kF64}).to_vector<double>() == a.to_vector<double>());
  CHECK(bernoulli(f64({0.5, 0.5, 0.5})).to_vector<double>() == b.to_vector<double>());
  g.finish_injection();
}

}  // namespace waymark::test
