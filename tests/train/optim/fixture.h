// The golden problem of the optimizers, and small parameters.
#pragma once

#include "core/autograd/meta.h"
#include "core/random/draws.h"
#include "tests/error_text.h"
#include "tests/tensors.h"
#include "train/optim/optimizer.h"

namespace waymark::test {

inline Tensor parameter(const Tensor& values, const std::string& name = "") {
  values.requires_grad_();
  if (!name.empty()) set_name(values, name);
  return values;
}

// f64 or f32 parameter with random values, and a random gradient for an update number.
inline Tensor random_tensor(const Shape& shape, u64 key, DType dtype = kF64) {
  const Tensor t = make_empty(shape, dtype);
  Draw draw;
  draw.key = key;
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    fill_normal(draw, draw_grid(shape), 0, t.numel(), t.data<T>());
  });
  return t;
}

// θ₀ = (1, −2, 0.5), g_t = (0.1 t, −0.2, 0.3/t); θ after three updates.
inline std::vector<double> golden_run(train::Optimizer& optimizer) {
  const Tensor theta = optimizer.parameters()[0];
  for (int t = 1; t <= 3; ++t) {
    theta.set_grad(make<double>({3}, {0.1 * t, -0.2, 0.3 / t}));
    optimizer.step();
  }
  return theta.to_vector<double>();
}
inline std::vector<Tensor> golden_parameters() { return {parameter(make<double>({3}, {1, -2, 0.5}))}; }

}  // namespace waymark::test
