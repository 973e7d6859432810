// Derivatives of derivatives through a whole encoder: grad of grad, and Hessian-vector products.
#include "core/engine/backward.h"
#include "core/engine/functional.h"
#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "core/ops/loss.h"
#include "core/ops/pointwise.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/random/generator.h"
#include "models/language_model.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::models;
using test::make;

namespace {

LanguageModelConfig relative_and_rotary() {
  LanguageModelConfig c{.vocab_size = 7, .encoder = {.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 12,
                                                     .position = "rope + huang-m4(clip=2)", .causal = true}};
  c.encoder.activation = "silu";
  return c;
}

double dot_of(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += sum(a[i] * b[i]).item<double>();
  return total;
}

}  // namespace

TEST_CASE("encoder: grad of grad and Hessian-vector products of the loss") {
  const test::DefaultF64 dtype;
  const RandomScope draws(5);
  LanguageModel model(relative_and_rotary());
  test::randomise(model);
  const Tensor ids = make<i64>({2, 4}, {1, 2, 3, 0, 6, 5, 5, 1}), next = make<i64>({2, 4}, {2, 3, 0, 4, 5, 5, 1, 6});
  const std::vector<Tensor> parameters = model.parameters();
  const auto loss = [&] {
    const Tensor logits = model(ids, {.positions = nn::Positions::range(4)});
    return cross_entropy(logits.transpose(1, 2), next);
  };
  std::vector<Tensor> u, v;
  for (const Tensor& p : parameters) {
    u.push_back(randn(p.shape()));
    v.push_back(randn(p.shape()));
  }
  const auto gradient = [&] {
    const GradMap map = grad(loss(), parameters);
    std::vector<Tensor> out;
    for (const Tensor& p : parameters) out.push_back(map[p]);
    return out;
  };
  // H·v as the gradient of <grad loss, v>.
  const auto product = [&](const std::vector<Tensor>& direction) {
    const GradMap first = grad(loss(), parameters, {.create_graph = true});
    Tensor total;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor part = sum(first[parameters[i]] * direction[i]);
      total = total.defined() ? total + part : part;
    }
    const GradMap second = grad(total, parameters, {.allow_unused = true});
    std::vector<Tensor> out;
    for (const Tensor& p : parameters) out.push_back(second.contains(p) ? second[p] : zeros_like(p));
    return out;
  };
  const auto move = [&](const std::vector<Tensor>& direction, double h) {
    const NoGrad off;
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i] += direction[i] * h;
  };
  const std::vector<Tensor> hv = product(v), hu = product(u);
  // Symmetric.
  const double left = dot_of(u, hv), right = dot_of(v, hu);
  CHECK(std::abs(left - right) <= 1e-10 * (std::abs(left) + 1));
  // Against differences of gradients, by a four-point stencil.
  const double h = 1e-4;
  std::vector<Tensor> numeric;
  for (const Tensor& p : parameters) numeric.push_back(zeros_like(p));
  const double factor[] = {1. / 12, -8. / 12, 8. / 12, -1. / 12}, at[] = {-2, -1, 1, 2};
  for (int k = 0; k < 4; ++k) {
    move(v, at[k] * h);
    const std::vector<Tensor> g = gradient();
    move(v, -at[k] * h);
    for (size_t i = 0; i < g.size(); ++i) numeric[i] += g[i] * (factor[k] / h);
  }
  double scale = 0, worst = 0;
  for (size_t i = 0; i < hv.size(); ++i) {
    scale = std::max(scale, abs(hv[i]).max().item<double>());
    worst = std::max(worst, abs(hv[i] - numeric[i]).max().item<double>());
  }
  CHECK(scale > 1e-3);
  CHECK(worst <= 1e-7 * scale);
  for (const Tensor& p : parameters) CHECK(!p.grad().defined());
}

TEST_CASE("encoder: hvp and hessian of its input") {
  const test::DefaultF64 dtype;
  const RandomScope draws(6);
  Encoder encoder(relative_and_rotary().encoder);
  test::randomise(encoder);
  const Tensor x = randn({1, 3, 8}), v = randn({1, 3, 8}), w = randn({1, 3, 8});
  const TupleFunction f = [&](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{sum(encoder(t[0], {.positions = nn::Positions::range(3)}) * w)};
  };
  const Tensor product = hvp(f, {x}, {v}).products[0];
  const Tensor h = hessian(f, {x})[0][0].reshape({24, 24});
  CHECK(test::largest_difference(product.reshape({24}), h.mv(v.reshape({24}))) < 1e-9);
  CHECK(test::largest_difference(h, h.t()) < 1e-9);
  CHECK(abs(h).max().item<double>() > 1e-3);
  // A gradient penalty: the gradient of the norm of a gradient reaches every parameter of the layers.
  Tensor input = x.clone().requires_grad_();
  const Tensor g = grad(f({input})[0], {input}, {.create_graph = true})[input];
  square(g).sum().backward();
  for (const nn::NamedParameter& p : encoder.named_parameters()) {
    CAPTURE(p.name);
    if (p.name == "norm.bias") continue;  // it shifts the output only
    CHECK(p.tensor.grad().defined());
  }
}
