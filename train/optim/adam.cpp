#include "train/optim/adam.h"

#include <cmath>

#include "core/autograd/state.h"
#include "core/kernels/adamw.h"
#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "train/optim/pieces.h"

namespace waymark::train {

namespace {

// The same update, composed of ops: the meaning of the kernel.
void twin(const kernels::AdamCoefficients& c, const Tensor& theta, Tensor g, const Tensor& m, const Tensor& v) {
  if (c.grad_scale != 1) g = mul(g, c.grad_scale);
  if (c.l2 != 0) g = add(g, theta, c.l2);
  mul_(m, c.beta1);
  add_(m, g, 1 - c.beta1);
  mul_(v, c.beta2);
  add_(v, square(g), 1 - c.beta2);
  if (c.decay != 0) mul_(theta, 1 - c.decay);
  sub_(theta, m / (sqrt(v) / c.root_bias2 + c.eps), c.step_size);
}

}  // namespace

AdamBase::AdamBase(const char* name, std::vector<ParamGroup> groups, Group defaults, std::array<double, 2> betas,
                   double eps, Form form)
    : Optimizer(name, {"exp_avg", "exp_avg_sq"}, std::move(groups), defaults), betas_(betas), eps_(eps), form_(form) {
  check_option("betas[0]", betas[0], 0, 1);
  check_option("betas[1]", betas[1], 0, 1);
  check_option("eps", eps, 0, INFINITY);
}

void AdamBase::set_momentum(double value) {
  check_option("betas[0]", value, 0, 1);
  betas_[0] = value;
}

void AdamBase::update(std::span<const Item> items, double grad_scale) {
  std::vector<kernels::AdamCoefficients> coefficients;
  std::vector<i64> sizes;
  for (const Item& item : items) {
    kernels::AdamCoefficients c{.beta1 = betas_[0], .beta2 = betas_[1], .eps = eps_, .grad_scale = grad_scale};
    const double lr = item.group->lr, decay = item.group->weight_decay, t = static_cast<double>(item.t);
    (form_.decoupled ? c.decay : c.l2) = form_.decoupled ? lr * decay : decay;
    c.step_size = form_.bias_correction ? lr / (1 - std::pow(betas_[0], t)) : lr;
    c.root_bias2 = form_.bias_correction ? std::sqrt(1 - std::pow(betas_[1], t)) : 1;
    coefficients.push_back(c);
    const bool fused = !explain_mode() && item.param.is_contiguous();
    sizes.push_back(fused ? item.param.numel() : 0);
    if (!fused) twin(c, item.param, item.grad, state(0, item.index), state(1, item.index));
  }
  const Pieces pieces(sizes);
  pieces.run([&](size_t, const Piece& piece) {
    const Item& item = items[piece.array];
    visit_float(item.param.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const auto at = [&](const Tensor& t) { return reinterpret_cast<T*>(t.raw()) + piece.begin; };
      kernels::adam_update(coefficients[piece.array], piece.end - piece.begin, at(item.param), at(item.grad),
                           at(state(0, item.index)), at(state(1, item.index)));
    });
  });
  for (size_t i = 0; i < items.size(); ++i)
    if (sizes[i] > 0) wrote(items[i].param);
}

Adam::Adam(std::vector<Tensor> params, const AdamOptions& options) : Adam(one_group(std::move(params)), options) {}
Adam::Adam(std::vector<ParamGroup> groups, const AdamOptions& o)
    : AdamBase("Adam", std::move(groups), {o.lr, o.weight_decay}, o.betas, o.eps, {}) {}

AdamW::AdamW(std::vector<Tensor> params, const AdamWOptions& options) : AdamW(one_group(std::move(params)), options) {}
AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& o)
    : AdamBase("AdamW", std::move(groups), {o.lr, o.weight_decay}, o.betas, o.eps,
               {.decoupled = true, .bias_correction = o.bias_correction}) {}

}  // namespace waymark::train
