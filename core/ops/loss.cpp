// Elementwise losses: a node for the elements, then weight, mean and sum as recorded ops.
#include "core/ops/loss.h"

#include <atomic>
#include <cstdio>

#include "core/kernels/loss.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/reduction.h"
#include "core/tensor/strided.h"

namespace waymark {

using kernels::Loss;
using namespace ops;

namespace ops {

Reduction reduction_of(std::string_view op, std::string_view word, Loc loc, bool batchmean) {
  if (word == "mean") return Reduction::mean;
  if (word == "sum") return Reduction::sum;
  if (word == "none") return Reduction::none;
  if (batchmean && word == "batchmean") return Reduction::batchmean;
  fail_at(loc, op, "reduction is \"mean\", \"sum\"{} or \"none\", not \"{}\"", batchmean ? ", \"batchmean\"" : "", word);
}

Tensor reduce(const Tensor& x, Reduction r, Loc loc, i64 batch) {
  switch (r) {
    case Reduction::mean: return mean(Arg(x, loc));
    case Reduction::sum: return sum(Arg(x, loc));
    case Reduction::batchmean: return div(Arg(sum(Arg(x, loc)), loc), static_cast<double>(batch));
    case Reduction::none: break;
  }
  return x;
}

}  // namespace ops

namespace {

void check_pair(std::string_view op, const Arg& x, const Arg& target) {
  check_defined(op, x);
  check_defined(op, target);
  need_float(op, *x);
  if (x->dtype() != target->dtype())
    fail_at(x.loc(), op, "dtypes differ: {} x {}; convert one with to(...)", name_of(x->dtype()), name_of(target->dtype()));
}

// Losses that broadcast: one warning in a process, since it is nearly always a mistake.
void warn_of_broadcast(std::string_view op, const Arg& x, const Arg& target) {
  static std::atomic<bool> warned{false};
  if (x->shape() == target->shape() || warned.exchange(true)) return;
  // A stderr that takes nothing is no error of a loss; fmt::print would throw.
  const std::string text = fmt::format("warning: {}: the shapes {} and {} differ and are broadcast; give both the same shape\n",
                                       op, x->shape(), target->shape());
  std::fputs(text.c_str(), stderr);
}
void need_same_shape(std::string_view op, const Arg& x, const Arg& target) {
  if (x->shape() != target->shape())
    fail_at(x.loc(), op, "the target must have the input's shape {}, got {}", x->shape(), target->shape());
}

// The elements of a loss; slopes(g, x, t, need) are the gradients of both.
template <class Slopes>
Tensor elements(const OpInfo& op, Loss f, const Arg& x, const Arg& target, std::span<const double> p, Slopes slopes) {
  Tensor y = zip_value(kernels::loss_loop(f, x->dtype()), *x, *target, p);
  return record(op, std::move(y), {x, target}, [&](Saver& s) {
    return [slopes, x = s.input(0), t = s.input(1)](Tensor g, const Need& need) -> Grads { return slopes(g, *x, *t, need); };
  });
}

// Losses of d = x − t: dx = slope(d)·g, dt = −dx.
template <class Slope>
Tensor of_difference(const OpInfo& op, Loss f, const Arg& x, const Arg& target, std::string_view reduction, double p, Slope slope) {
  const Reduction r = reduction_of(op.name, reduction, x.loc());
  check_pair(op.name, x, target);
  warn_of_broadcast(op.name, x, target);
  const double parameters[] = {p};
  return reduce(elements(op, f, x, target, parameters, [slope](const Tensor& g, const Tensor& a, const Tensor& b, const Need& need) -> Grads {
    const Tensor dx = mul(g, slope(sub(a, b)));
    return {need[0] ? dx : Tensor(), need[1] ? neg(dx) : Tensor()};
  }), r, x.loc());
}

}  // namespace

#define WAYMARK_LOSS_SAVES {{"input", For{0, 1}}, {"target", For{0, 1}}}

extern constexpr OpInfo kMseLoss{
    .name = "mse_loss", .family = "loss", .doc = "squared difference",
    .schema = "mse_loss(Tensor input, Tensor target, str reduction='mean') -> Tensor", .formula = "y = d²,  d = x − t",
    .rule = "dx = 2·g·d,  dt = −dx", .saves = WAYMARK_LOSS_SAVES, .apply = [](OpCall& c) {
      c.result(mse_loss(c.tensor("input"), c.tensor("target"), c.word("reduction", "mean")));
    }};
Tensor mse_loss(Arg x, Arg target, std::string_view reduction) {
  return of_difference(kMseLoss, Loss::mse, x, target, reduction, 0, [](const Tensor& d) { return mul(d, 2); });
}

extern constexpr OpInfo kL1Loss{
    .name = "l1_loss", .family = "loss", .doc = "absolute difference",
    .schema = "l1_loss(Tensor input, Tensor target, str reduction='mean') -> Tensor", .formula = "y = |d|,  d = x − t",
    .rule = "dx = g·sign d,  dt = −dx", .saves = WAYMARK_LOSS_SAVES, .kinks = "x = target", .apply = [](OpCall& c) {
      c.result(l1_loss(c.tensor("input"), c.tensor("target"), c.word("reduction", "mean")));
    }};
Tensor l1_loss(Arg x, Arg target, std::string_view reduction) {
  return of_difference(kL1Loss, Loss::l1, x, target, reduction, 0, [](const Tensor& d) { return sign(d); });
}

extern constexpr OpInfo kSmoothL1Loss{
    .name = "smooth_l1_loss", .family = "loss", .doc = "absolute difference, rounded off below beta",
    .schema = "smooth_l1_loss(Tensor input, Tensor target, str reduction='mean', float beta=1.0) -> Tensor",
    .formula = "y = |d| < β ? d²/2β : |d| − β/2", .rule = "dx = g·(|d| < β ? d/β : sign d),  dt = −dx",
    .saves = WAYMARK_LOSS_SAVES, .kinks = "|x − target| = beta", .apply = [](OpCall& c) {
      c.result(smooth_l1_loss(c.tensor("input"), c.tensor("target"), c.word("reduction", "mean"), c.number("beta", 1)));
    }};
Tensor smooth_l1_loss(Arg x, Arg target, std::string_view reduction, double beta) {
  if (!(beta >= 0)) fail_at(x.loc(), "smooth_l1_loss", "beta must not be negative, got {}", beta);
  return of_difference(kSmoothL1Loss, Loss::smooth_l1, x, target, reduction, beta, [beta](const Tensor& d) {
    return beta == 0 ? sign(d) : clamp(div(d, beta), -1.0, 1.0);
  });
}

extern constexpr OpInfo kHuberLoss{
    .name = "huber_loss", .family = "loss", .doc = "squared difference, straight beyond delta",
    .schema = "huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0) -> Tensor",
    .formula = "y = |d| ≤ δ ? d²/2 : δ·(|d| − δ/2)", .rule = "dx = g·(|d| ≤ δ ? d : δ·sign d),  dt = −dx",
    .saves = WAYMARK_LOSS_SAVES, .kinks = "|x − target| = delta", .apply = [](OpCall& c) {
      c.result(huber_loss(c.tensor("input"), c.tensor("target"), c.word("reduction", "mean"), c.number("delta", 1)));
    }};
Tensor huber_loss(Arg x, Arg target, std::string_view reduction, double delta) {
  if (!(delta > 0)) fail_at(x.loc(), "huber_loss", "delta must be positive, got {}", delta);
  return of_difference(kHuberLoss, Loss::huber, x, target, reduction, delta,
                       [delta](const Tensor& d) { return clamp(d, -delta, delta); });
}

extern constexpr OpInfo kKlDiv{
    .name = "kl_div", .family = "loss", .doc = "Kullback-Leibler divergence of a target from log-probabilities",
    .schema = "kl_div(Tensor input, Tensor target, str reduction='mean', bool log_target=False) -> Tensor",
    .formula = "y = t·log t − t·x; log_target: eᵗ·(t − x)",
    .rule = "dx = −g·t,  dt = g·(log t + 1 − x); log_target: dx = −g·eᵗ,  dt = g·eᵗ·(t − x + 1)",
    .saves = {{"input", For{1}}, {"target", For{0, 1}}}, .apply = [](OpCall& c) {
      c.result(kl_div(c.tensor("input"), c.tensor("target"), c.word("reduction", "mean"), c.flag("log_target", false)));
    }};
Tensor kl_div(Arg logq, Arg target, std::string_view reduction, bool log_target) {
  const Reduction r = reduction_of("kl_div", reduction, logq.loc(), true);
  check_pair("kl_div", logq, target);
  warn_of_broadcast("kl_div", logq, target);
  Tensor y = zip_value(kernels::loss_loop(log_target ? Loss::kl_div_log : Loss::kl_div, logq->dtype()), *logq, *target);
  y = record(kKlDiv, std::move(y), {logq, target}, [&](Saver& s) {
    return [log_target, x = s.input(0, s.needs(1)), t = s.input(1)](Tensor g, const Need& need) -> Grads {
      const Tensor p = *t, weight = log_target ? exp(p) : p;
      Tensor dt;
      if (need[1] && log_target) dt = masked_fill(mul(g, mul(weight, add(sub(p, *x), 1))), eq(weight, 0), 0);
      else if (need[1]) dt = mul(g, sub(add(log(p), 1), *x));
      return {need[0] ? neg(mul(g, weight)) : Tensor(), std::move(dt)};
    };
  }, [&](Attrs& at) { at("log_target", log_target); });
  return reduce(y, r, logq.loc(), logq->dim() ? logq->shape()[0] : 1);
}

// ---- binary cross-entropy -------------------------------------------------------------------------------------------

extern constexpr OpInfo kBinaryCrossEntropy{
    .name = "binary_cross_entropy", .family = "loss", .doc = "negative log-likelihood of yes or no, from probabilities",
    .schema = "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, str reduction='mean') -> Tensor",
    .formula = "y = −t·max(log p, −100) − (1−t)·max(log(1−p), −100)",
    .rule = "dp = g·(p−t)/max(p(1−p), 1e-12),  dt = g·(log(1−p) − log p)", .saves = WAYMARK_LOSS_SAVES,
    .apply = [](OpCall& c) {
      c.result(binary_cross_entropy(c.tensor("input"), c.tensor("target"), c.optional_tensor("weight"), c.word("reduction", "mean")));
    }};

static Tensor weighted(Tensor y, const Tensor& weight) { return weight.defined() ? mul(y, weight) : y; }

Tensor binary_cross_entropy(Arg p, Arg target, const Tensor& weight, std::string_view reduction) {
  const Reduction r = reduction_of("binary_cross_entropy", reduction, p.loc());
  check_pair("binary_cross_entropy", p, target);
  need_same_shape("binary_cross_entropy", p, target);
  const std::vector<double> all = p->to_vector<double>();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] < 0 || all[i] > 1)
      fail_at(p.loc(), "binary_cross_entropy", "the input must lie in [0, 1], got {} at position {}; for logits use binary_cross_entropy_with_logits",
              all[i], position_text(p->shape(), static_cast<i64>(i)));
  return reduce(weighted(elements(kBinaryCrossEntropy, Loss::bce, p, target, {},
                                  [](const Tensor& g, const Tensor& q, const Tensor& t, const Need& need) -> Grads {
    return {need[0] ? mul(g, div(sub(q, t), clamp(mul(q, rsub(q, 1)), 1e-12, {}))) : Tensor(),
            need[1] ? mul(g, sub(log(rsub(q, 1)), log(q))) : Tensor()};
  }), weight), r, p.loc());
}

extern constexpr OpInfo kBinaryCrossEntropyWithLogits{
    .name = "binary_cross_entropy_with_logits", .family = "loss", .doc = "negative log-likelihood of yes or no, from logits",
    .schema = "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, str reduction='mean', "
              "Tensor? pos_weight=None) -> Tensor",
    .formula = "y = (1−t)·x + (1 + (q−1)·t)·log(1 + e⁻ˣ)", .rule = "dx = g·((1−t)·σ(x) − q·t·σ(−x)),  dt = −g·x (q = 1)",
    .saves = WAYMARK_LOSS_SAVES, .apply = [](OpCall& c) {
      c.result(binary_cross_entropy_with_logits(c.tensor("input"), c.tensor("target"), c.optional_tensor("weight"),
                                                c.word("reduction", "mean"), c.optional_tensor("pos_weight")));
    }};

Tensor binary_cross_entropy_with_logits(Arg x, Arg target, const Tensor& weight, std::string_view reduction, const Tensor& pos_weight) {
  const Reduction r = reduction_of("binary_cross_entropy_with_logits", reduction, x.loc());
  check_pair("binary_cross_entropy_with_logits", x, target);
  need_same_shape("binary_cross_entropy_with_logits", x, target);
  if (pos_weight.defined()) {  // composed, so that it differentiates pos_weight, too
    // Handles of our own: an Arg that was given away may be used once only.
    const Tensor logits = *x, t = *target, share = add(mul(sub(pos_weight, 1), t), 1);
    return reduce(weighted(sub(mul(rsub(t, 1), logits), mul(share, logsigmoid(logits))), weight), r, x.loc());
  }
  return reduce(weighted(elements(kBinaryCrossEntropyWithLogits, Loss::bce_logits, x, target, {},
                                  [](const Tensor& g, const Tensor& a, const Tensor& t, const Need& need) -> Grads {
    return {need[0] ? mul(g, sub(mul(rsub(t, 1), sigmoid(a)), mul(t, sigmoid(neg(a))))) : Tensor(), need[1] ? neg(mul(g, a)) : Tensor()};
  }), weight), r, x.loc());
}

}  // namespace waymark
