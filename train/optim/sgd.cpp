#include "train/optim/sgd.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"

namespace waymark::train {

namespace {
std::vector<std::string> slots(double momentum) {
  if (momentum == 0) return {};
  return {"momentum_buffer"};
}
}  // namespace

SGD::SGD(std::vector<Tensor> params, const SGDOptions& options) : SGD(one_group(std::move(params)), options) {}
SGD::SGD(std::vector<ParamGroup> groups, const SGDOptions& o)
    : Optimizer("SGD", slots(o.momentum), std::move(groups), {o.lr, o.weight_decay}),
      momentum_(o.momentum), dampening_(o.dampening), nesterov_(o.nesterov) {
  check_option("momentum", o.momentum, 0, 1);
  check_option("dampening", o.dampening, 0, 1, true);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    fail("SGD", "nesterov needs momentum > 0 and dampening = 0, not {} and {}", o.momentum, o.dampening);
}

void SGD::set_momentum(double value) {
  if (momentum_ == 0) fail("SGD", "it was made without momentum");
  if (!(value > 0)) fail("SGD", "momentum = {}: must be > 0, as it was", value);
  check_option("momentum", value, 0, 1);
  momentum_ = value;
}

void SGD::update(std::span<const Item> items, double grad_scale) {
  for (const Item& item : items) {
    Tensor g = grad_scale == 1 ? item.grad : mul(item.grad, grad_scale);
    if (item.group->weight_decay != 0) g = add(g, item.param, item.group->weight_decay);
    if (momentum_ != 0) {
      const Tensor& b = state(0, item.index);
      if (item.t == 1) {
        copy_(b, g);
      } else {
        mul_(b, momentum_);
        add_(b, g, 1 - dampening_);
      }
      g = nesterov_ ? add(g, b, momentum_) : b;
    }
    sub_(item.param, g, item.group->lr);
  }
}

}  // namespace waymark::train
