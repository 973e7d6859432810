#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/parallel/parallel.h"
#include "tests/train/optim/fixture.h"
#include "train/optim/clip.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {
Tensor with_grad(const Tensor& g) {
  const Tensor p = parameter(make_empty(g.shape(), g.dtype()));
  p.set_grad(g);
  return p;
}
}  // namespace

TEST_CASE("clip_grad_norm_ as PyTorch does it, and returns the norm before") {
  const Tensor a = with_grad(make<double>({1}, {3})), b = with_grad(make<double>({1}, {4}));
  const Tensor without = parameter(make<double>({1}, {7}));
  CHECK(clip_grad_norm_({a, without, b}, 1) == 5);
  CHECK(a.grad().item<double>() == doctest::Approx(0.59999988).epsilon(1e-8));
  CHECK(b.grad().item<double>() == doctest::Approx(0.79999984).epsilon(1e-8));
  CHECK(clip_grad_norm_({a, b}, 10) == doctest::Approx(0.9999998));
  CHECK(a.grad().item<double>() == doctest::Approx(0.59999988).epsilon(1e-8));
  CHECK(clip_factor(5, 1) == doctest::Approx(0.19999996));
  CHECK(clip_factor(0.5, 1) == 1);
}

TEST_CASE("other norms") {
  const Tensor p = with_grad(make<double>({3}, {1, -2, 3}));
  CHECK(grad_norm({p}, 1) == doctest::Approx(6));
  CHECK(grad_norm({p}, 3) == doctest::Approx(std::cbrt(36)));
  CHECK(grad_norm({p}, kInf) == 3);
  CHECK(grad_norm({}) == 0);
  CHECK(has(error_text([&] { grad_norm({p}, 0); }), "norm_type must be"));
  CHECK(has(error_text([&] { clip_grad_norm_({p}, -1); }), "max_norm must be"));
}

TEST_CASE("a norm that is not finite") {
  const Tensor p = with_grad(make<double>({2}, {1, NAN}));
  CHECK(std::isnan(grad_norm({p})));
  CHECK(std::isnan(grad_norm({p}, kInf)));
  CHECK(has(error_text([&] { clip_grad_norm_({p}, 1, {.error_if_nonfinite = true}); }), "nothing was clipped"));
  CHECK(p.grad().to_vector<double>()[0] == 1);
  CHECK(std::isnan(clip_grad_norm_({p}, 1)));
  CHECK(std::isnan(p.grad().to_vector<double>()[0]));
}

TEST_CASE("the norm is exact in f64 and the same for any number of threads") {
  // f32 sums of 10^6 squares would be off in the fourth digit.
  const Tensor p = with_grad(random_tensor({1000, 1003}, 3, kF32)), q = with_grad(random_tensor({5}, 4, kF32));
  double want = 0;
  for (const Tensor& t : {p.grad(), q.grad()})
    for (const double x : t.to_vector<double>()) want += x * x;
  const int before = num_threads();
  std::vector<double> norms;
  for (const int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    norms.push_back(grad_norm({p, q}));
  }
  set_num_threads(before);
  CHECK(norms[0] == doctest::Approx(std::sqrt(want)).epsilon(1e-13));
  for (const double n : norms) CHECK(n == norms[0]);
}

TEST_CASE("gradients that are not row-major") {
  const Tensor g = alias(random_tensor({4, 6}, 9), {6, 4}, {1, 6}, 0);
  const Tensor p = with_grad(g);
  const double norm = grad_norm({p});
  CHECK(clip_grad_norm_({p}, norm / 2) == norm);
  CHECK(grad_norm({p}) == doctest::Approx(norm / 2).epsilon(1e-5));
}

TEST_CASE("clip_grad_value_") {
  const Tensor p = with_grad(make<double>({3}, {0.5, -2, 3}));
  clip_grad_value_({p, parameter(make<double>({1}, {1}))}, 1);
  CHECK(p.grad().to_vector<double>() == std::vector<double>{0.5, -1, 1});
  CHECK(has(error_text([&] { clip_grad_value_({p}, NAN); }), "clip_value must be"));
}
