#include "train/optim/adafactor.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark::train {

namespace {

enum Slot : size_t { kRow, kColumn, kFull };

double rms(const Tensor& t) {
  if (t.numel() == 0) return 0;
  return std::sqrt(sum(square(to(t, kF64))).item<double>() / static_cast<double>(t.numel()));
}
void blend(const Tensor& mean, const Tensor& next, double beta) {
  mul_(mean, beta);
  add_(mean, next, 1 - beta);
}

}  // namespace

Adafactor::Adafactor(std::vector<Tensor> params, const AdafactorOptions& options)
    : Adafactor(one_group(std::move(params)), options) {}
Adafactor::Adafactor(std::vector<ParamGroup> groups, const AdafactorOptions& o)
    : Optimizer("Adafactor", {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"}, std::move(groups),
                {o.lr.value_or(1), o.weight_decay}),
      eps_(o.eps), clip_(o.clip), decay_(o.decay), relative_(!o.lr) {
  check_option("eps[0]", eps_[0], 0, INFINITY);
  check_option("eps[1]", eps_[1], 0, INFINITY);
  if (!(clip_ > 0)) fail("Adafactor", "clip = {}: must be > 0", clip_);
  if (!(decay_ < 0)) fail("Adafactor", "decay = {}: must be < 0", decay_);
}

std::optional<Shape> Adafactor::state_shape(size_t slot, const Tensor& param) const {
  const bool matrix = param.dim() >= 2;
  if ((slot == kFull) == matrix) return std::nullopt;
  Shape shape = param.shape();
  if (slot == kRow) shape.erase(shape.size() - 1);
  if (slot == kColumn) shape.erase(shape.size() - 2);
  return shape;
}

void Adafactor::update(std::span<const Item> items, double grad_scale) {
  for (const Item& item : items) {
    const Tensor g = grad_scale == 1 ? item.grad : mul(item.grad, grad_scale);
    const double t = static_cast<double>(item.t), beta = 1 - std::pow(t, decay_);
    const Tensor squares = square(g) + eps_[0];
    Tensor u;
    if (g.dim() >= 2) {
      const Tensor &row = state(kRow, item.index), &column = state(kColumn, item.index);
      blend(row, mean(squares, -1), beta);
      blend(column, mean(squares, -2), beta);
      const Tensor r = row / mean(row, -1, true);
      u = g * rsqrt(r.unsqueeze(-1)) * rsqrt(column.unsqueeze(-2));
    } else {
      const Tensor& full = state(kFull, item.index);
      blend(full, squares, beta);
      u = g * rsqrt(full);
    }
    double step = item.group->lr;
    if (relative_) step *= std::max(eps_[1], rms(item.param)) * std::min(1e-2, 1 / std::sqrt(t));
    if (item.group->weight_decay != 0) mul_(item.param, 1 - step * item.group->weight_decay);
    sub_(item.param, u, step / std::max(1.0, rms(u) / clip_));
  }
}

}  // namespace waymark::train
