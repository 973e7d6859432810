// Cases of core/ops/norm.cpp and rows K19 to K21 of the conventions.
#include <doctest/doctest.h>

#include <cmath>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/norm.h"
#include "core/ops/reduce.h"
#include "tests/ops/expect.h"
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(norm_cases) {
  op_case("norm", {input({3, 4})});
  op_case("norm", {input({2, 3, 4}), arg("dim", List{0, 2})});
  op_case("norm", {input({2, 3, 4}).away_from(0, 0.2), arg("p", 3.0), arg("dim", 1), arg("keepdim", Argument(true))});
  op_case("norm", {input({3, 4}).away_from(0, 0.2), arg("p", 1.0), arg("dim", -1)});
  op_case("norm", {input({3, 4}).away_from(0, 0.2), arg("p", 0.5)});
  op_case("norm", {input({3, 4}).range(0.5, 3).apart(), arg("p", INFINITY), arg("dim", 0)}).first_order_only("kinks at ties");
  op_case("norm", {input({3, 4}).range(0.5, 3).apart(), arg("p", -INFINITY)}).first_order_only("kinks at ties");
  op_case("norm", {input({3, 4}), arg("p", 0.0)});
  op_case("norm", {input({0, 4}), arg("dim", 0)});
  bad_input("norm", "norm: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {3}, 5)});
}

TEST_CASE("C01 norm at 0: gradient 0, and 0 at second order") {
  const Tensor x = leaf({0, 0});
  const Tensor g = grad(norm(x), {x}, {.create_graph = true})[x];
  CHECK(g.to_vector<double>() == Numbers{0, 0});
  CHECK(grad(sum(g), {x}, {.allow_unused = true})[x].to_vector<double>() == Numbers{0, 0});
}
TEST_CASE("C11 the norm of 10^7 f32 ones") {
  const Tensor x = make_empty({10000000}, kF32);
  std::fill_n(x.data<float>(), x.numel(), 1.0F);
  CHECK(std::abs(norm(x).item<double>() - 3162.2777) < 1e-3);
}

}  // namespace waymark::test
