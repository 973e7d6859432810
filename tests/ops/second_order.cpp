// C64: derivatives of derivatives stay finite where first derivatives have removable singularities.
#include <functional>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/create.h"
#include "core/ops/loss.h"
#include "core/ops/normalisation.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/similarity.h"
#include "core/ops/softmax.h"
#include "tests/ops/values.h"

namespace waymark::test {

TEST_CASE("C64 second derivatives through softmax, norms, losses and attention are finite") {
  const auto check = [](const char* name, const std::function<Tensor(const Tensor&)>& f, const Tensor& x0) {
    fused_and_twin([&] {
      INFO(name);
      Tensor x = x0.detach().clone();
      x.requires_grad_();
      const Tensor y = f(x);
      const Tensor g = grad(square(y).sum(), {x}, {.create_graph = true})[x];
      for (const double v : g.to_vector<double>()) CHECK(std::isfinite(v));
      const Tensor h = grad(square(g).sum(), {x})[x];
      for (const double v : h.to_vector<double>()) CHECK(std::isfinite(v));
    });
  };
  const Tensor x = make<double>({2, 3}, {1, 2, 3, 0, 0, 0}), zero = zeros({2, 3}, kF64);
  const Tensor keep = make<bool>({2, 3}, {true, false, true, false, false, false}), ids = make<i64>({2}, {2, -100});
  check("softmax", [](const Tensor& t) { return softmax(t, 1); }, x);
  check("log_softmax", [](const Tensor& t) { return log_softmax(t, 1); }, x);
  check("masked_softmax", [&](const Tensor& t) { return masked_softmax(t, keep, 1); }, x);
  check("layer_norm of constant rows", [](const Tensor& t) { return layer_norm(t, {3}); }, zero);
  check("rms_norm of zeros", [](const Tensor& t) { return rms_norm(t, {3}, {}, 1e-6); }, zero);
  check("cross_entropy", [&](const Tensor& t) { return cross_entropy(t, ids, {.label_smoothing = 0.1}); }, x);
  check("cosine_similarity", [&](const Tensor& t) { return cosine_similarity(t, x, 1, 1e-2); }, zero);
  check("cdist", [&](const Tensor& t) { return cdist(t, t.detach()); }, x);
  check("attention", [&](const Tensor& t) { return scaled_dot_product_attention(t, t, t, keep.narrow(1, 0, 2)); }, x);
}

}  // namespace waymark::test
