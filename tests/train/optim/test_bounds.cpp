// Parameters with bounds: every optimizer projects after its step; a value outside is evaluated at the bound.
#include <doctest/doctest.h>

#include "core/autograd/bounds.h"
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/projection.h"
#include "core/ops/reduce.h"
#include "tests/train/optim/fixture.h"
#include "train/optim/registry.h"

using namespace waymark;
using namespace waymark::train;
using test::error_text;
using test::make;
using test::parameter;

TEST_CASE("every optimizer projects parameters with bounds after its step, and only those") {
  for (const std::string& name : optimizer_tables().names()) {
    CAPTURE(name);
    const auto run = [&](bool bounded) {
      const Tensor w = parameter(make<double>({4}, {0.5, 0.5, 0.02, 1.99}), "w"), free = parameter(make<double>({2}, {0.5, 0.02}), "free");
      if (bounded) set_bounds(w, {0.01, 2});
      auto optimizer = make_optimizer(one_group({w, free}), optimizer_tables().resolve(nn::parse_spec(name + "(lr=0.2)")));
      for (int t = 0; t < 3; ++t) {
        w.set_grad(make<double>({4}, {1, -0.1, 3, -3}));
        free.set_grad(make<double>({2}, {1, 3}));
        optimizer->step();
      }
      return std::pair(w.to_vector<double>(), free.to_vector<double>());
    };
    const auto [plain, plain_free] = run(false);
    const auto [kept, kept_free] = run(true);
    CHECK(plain[2] < 0.01);
    CHECK(plain[3] > 2);
    CHECK(kept[2] == 0.01);
    CHECK(kept[3] == 2);
    for (const double v : kept) CHECK((v >= 0.01 && v <= 2));
    CHECK(kept_free[1] < 0.01);
  }
}

TEST_CASE("bounds: the projected value passes its gradient on unchanged") {
  const Tensor w = parameter(make<double>({3}, {-1, 0.5, 7}));
  CHECK(projected(w).is(w));
  set_bounds(w, {0, 2});
  const Tensor y = projected(w);
  CHECK(y.to_vector<double>() == std::vector<double>{0, 0.5, 2});
  sum(mul(y, y)).backward();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{0, 1, 4});
  CHECK(w.to_vector<double>() == std::vector<double>{-1, 0.5, 7});
  project(w);
  CHECK(w.to_vector<double>() == std::vector<double>{0, 0.5, 2});
  CHECK(projected(w).is(w));
  CHECK(bounds_of(w) == Bounds{0, 2});
  CHECK(!bounds_of(mul(w, w)));
  CHECK(error_text([&] { set_bounds(w, {2, 1}); }) == "set_bounds: [2, 1] is no interval");
  CHECK(error_text([&] { set_bounds(w, {test::kNan, 1}); }) == "set_bounds: [nan, 1] is no interval");
  CHECK(test::has(error_text([&] { set_bounds(mul(w, w), {0, 1}); }), "bounds belong to a leaf of a float dtype"));
}
