// Cases of core/ops/softmax.cpp; rows K41 to K43, case C3.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(softmax_cases) {
  for (const char* op : {"softmax", "log_softmax", "softmin"}) {
    for (const auto& [shape, dim] : std::vector<std::pair<Shape, int>>{
             {{4, 33}, -1}, {{3, 4, 5}, 1}, {{3, 4}, 0}, {{5}, 0}, {{}, 0}, {{2, 1}, 1}, {{0, 3}, 1}, {{3, 0}, 1}, {{2, 0, 3}, 0}})
      op_case(op, {input(shape), arg("dim", dim)});
    const std::string name = op;
    bad_input(op, name + ": dim 2 is outside [-1, 0] of a tensor with 1 axes*", {input({4}), arg("dim", 2)});
    bad_input(op, name + ": needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {4}, 9), arg("dim", 0)});
  }
  op_case("softmax", {indices("input", {2, 5}, 9), arg("dim", 1), arg("dtype", "f64")});
  op_case("masked_softmax", {input({2, 3, 4, 5}), mask("keep", {2, 1, 4, 5}), arg("dim", -1)});
  op_case("masked_softmax", {input({3, 20}), mask("keep", {20}), arg("dim", 1), arg("scale", 0.35)});
  op_case("masked_softmax", {input({3, 4, 2}), mask("keep", {3, 4, 1}), arg("dim", 1), arg("scale", -1.5)});
  op_case("masked_softmax", {input({3, 4}), mask("keep", {}), arg("dim", 0)});
  op_case("masked_softmax", {input({2, 0, 3}), mask("keep", {3}), arg("dim", 1)});
  op_case("masked_softmax", {input({}), mask("keep", {}), arg("dim", 0)});
  bad_input("masked_softmax", "masked_softmax: keep must be b8, got i64; use to(kB8) or a comparison",
            {input({4}), indices("keep", {4}, 2), arg("dim", 0)});
  bad_input("masked_softmax", "masked_softmax: keep [2, 4] does not expand to the input [4]",
            {input({4}), mask("keep", {2, 4}), arg("dim", 0)});
}

TEST_CASE("softmax of a slice of -inf, with +inf, with NaN") {
  fused_and_twin([] {
    check_values(softmax(make<double>({3, 2}, {-kInf, -kInf, kInf, 0, kNan, 1}), 1), std::vector<double>(6, kNan));
  });
}

TEST_CASE("C03 an empty row spoils only itself; masked_softmax gives zeros") {
  fused_and_twin([] {
    Tensor x = leaf({2, 2}, {0, 1, -kInf, -kInf});
    Tensor y = softmax(x, 1);
    y.select(0, 0).select(0, 0).backward();
    CHECK(y.select(0, 0).select(0, 0).item<double>() == doctest::Approx(0.268941).epsilon(1e-5));
    check_values(x.grad(), {0.196612, -0.196612, kNan, kNan}, 1e-5);

    Tensor z = leaf({2, 2}, {0, 1, -kInf, kNan});
    const Tensor keep = make<bool>({2, 2}, {true, true, false, false});
    Tensor p = masked_softmax(z, keep, 1);
    check_values(p, {0.268941, 0.731059, 0, 0}, 1e-5);
    p.select(0, 0).select(0, 0).backward();
    check_values(z.grad(), {0.196612, -0.196612, 0, 0}, 1e-5);
  });
}

TEST_CASE("softmax and log_softmax with -inf entries and huge ones") {
  fused_and_twin([] {
    Tensor x = leaf({3}, {0, -kInf, 1});
    Tensor y = log_softmax(x, 0);
    CHECK(y.select(0, 0).item<double>() == doctest::Approx(-1.313262).epsilon(1e-6));
    y.select(0, 0).backward();
    check_values(x.grad(), {0.731059, 0, -0.731059}, 1e-5);
    Tensor z = leaf({3}, {-kInf, 0, 0});
    Tensor p = softmax(z, 0).select(0, 1);
    CHECK(p.item<double>() == 0.5);
    p.backward();
    check_values(z.grad(), {0, 0.25, -0.25});
    Tensor h = leaf({2}, {1e300, -1e300});
    const Tensor q = softmax(h, 0);
    check_values(q, {1, 0});
    q.select(0, 0).backward();
    check_values(h.grad(), {0, 0});
  });
}

TEST_CASE("masked_softmax: gradients at dropped places are exactly 0, whatever arrives there") {
  fused_and_twin([] {
    Tensor x = leaf({2, 3}, {1, 2, 3, 4, 5, 6});
    const Tensor keep = make<bool>({2, 3}, {true, false, true, false, false, false});
    const Tensor y = masked_softmax(x, keep, 1, 0.5);
    check_values(y, {0.268941, 0, 0.731059, 0, 0, 0}, 1e-5);
    y.backward(make<double>({2, 3}, {1, kNan, 2, kInf, kNan, 1}));
    check_values(x.grad(), {-0.0983059, 0, 0.0983059, 0, 0, 0}, 1e-5);
  });
}

TEST_CASE("softmax along an inner axis gives a contiguous result, as along the last one") {
  const Tensor x = make<double>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor y = softmax(x, 1);
  CHECK(y.is_contiguous());
  check_values(y, {0.119203, 0.119203, 0.880797, 0.880797, 0.119203, 0.119203, 0.880797, 0.880797}, 1e-5);
}

TEST_CASE("softmax saves its output alone") {
  Tensor x = leaf({4, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8});
  for (const Tensor& y : {softmax(x, 1), log_softmax(x, 1), masked_softmax(x, make<bool>({1}, {true}), 1)}) {
    const Node& n = *ensure_meta(y).history.node;
    REQUIRE(n.saved.size() == 1);
    CHECK(n.saved[0].kind == SaveKind::output);
    CHECK(n.saved[0].bytes == y.nbytes());
  }
}

}  // namespace waymark::test
