#include "train/optim/lamb.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

namespace waymark::train {

namespace {
double norm(const Tensor& t) { return std::sqrt(sum(square(to(t, kF64))).item<double>()); }
}  // namespace

Lamb::Lamb(std::vector<Tensor> params, const LambOptions& options) : Lamb(one_group(std::move(params)), options) {}
Lamb::Lamb(std::vector<ParamGroup> groups, const LambOptions& o)
    : Optimizer("Lamb", {"exp_avg", "exp_avg_sq"}, std::move(groups), {o.lr, o.weight_decay}),
      betas_(o.betas), eps_(o.eps) {
  check_option("betas[0]", betas_[0], 0, 1);
  check_option("betas[1]", betas_[1], 0, 1);
  check_option("eps", eps_, 0, INFINITY);
}

void Lamb::set_momentum(double value) {
  check_option("betas[0]", value, 0, 1);
  betas_[0] = value;
}

void Lamb::update(std::span<const Item> items, double grad_scale) {
  for (const Item& item : items) {
    const Tensor g = grad_scale == 1 ? item.grad : mul(item.grad, grad_scale);
    const Tensor &m = state(0, item.index), &v = state(1, item.index);
    const double t = static_cast<double>(item.t);
    mul_(m, betas_[0]);
    add_(m, g, 1 - betas_[0]);
    mul_(v, betas_[1]);
    add_(v, square(g), 1 - betas_[1]);
    const Tensor first = m / (1 - std::pow(betas_[0], t)), second = v / (1 - std::pow(betas_[1], t));
    Tensor u = first / (sqrt(second) + eps_);
    if (item.group->weight_decay != 0) u = add(u, item.param, item.group->weight_decay);
    const double size = norm(item.param), length = norm(u);
    sub_(item.param, u, item.group->lr * (size > 0 && length > 0 ? size / length : 1));
  }
}

}  // namespace waymark::train
