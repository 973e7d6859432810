#include "core/ops/divergence.h"

#include <limits>

#include "core/kernels/divergence.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace waymark {

using namespace ops;
using kernels::Divergence;

namespace {

int check_distributions(std::string_view op, const Arg& x, const Arg& other, i64 dim, const Tensor& keep) {
  check_defined(op, x);
  check_defined(op, other);
  need_float(op, *x);
  if (x->dtype() != other->dtype())
    fail_at(x.loc(), op, "dtypes differ: {} x {}; convert one with to(...)", name_of(x->dtype()),
            name_of(other->dtype()));
  if (x->shape() != other->shape())
    fail_at(x.loc(), op, "both inputs must have one shape, got {} and {}", x->shape(), other->shape());
  if (x->dim() == 0) fail_at(x.loc(), op, "the inputs are 0-d; they need an axis of classes");
  if (keep.defined() && keep.dtype() != kB8)
    fail_at(x.loc(), op, "keep must be b8, got {}; use to(kB8) or a comparison", name_of(keep.dtype()));
  if (keep.defined() && !broadcasts_to(keep.shape(), x->shape()))
    fail_at(x.loc(), op, "keep {} does not expand to the inputs {}", keep.shape(), x->shape());
  return wrap_dim(op, dim, x->dim());
}

// Places that take no part: not kept, or −inf on both sides.
Tensor dropped_places(const Tensor& x, const Tensor& other, const Tensor& keep) {
  const Unrecorded off;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Tensor a = x.detach(), b = other.detach(), both = logical_and(eq(a, -kInf), eq(b, -kInf));
  return keep.defined() ? logical_or(both, logical_not(expand_value(keep, x.shape()))) : both;
}

// Both as rows, −inf where not kept.
Tensor kept_rows(const Tensor& x, const Tensor& keep, int dim) {
  if (!keep.defined()) return axis_last(x, dim);
  const Unrecorded off;
  return axis_last(
      masked_fill(x.detach(), logical_not(expand_value(keep, x.shape())), -std::numeric_limits<double>::infinity()),
      dim);
}

// The meaning in plain ops, and the gradients that create_graph records.
struct Shares {
  Tensor p, q, d;  // d = log p − log q, 0 where p adds nothing
};
Shares shares_of(const Tensor& x, const Tensor& other, const Tensor& keep, int dim) {
  // A number so low that its share is 0, and finite, so that a slice of nothing but dropped places has no NaN.
  const double low = x.dtype() == kF64 ? -1e300 : -1e37;
  const Tensor dropped = dropped_places(x, other, keep);
  const Tensor a = log_softmax(masked_fill(x, dropped, low), dim),
               b = log_softmax(masked_fill(other, dropped, low), dim);
  const Tensor p = masked_fill(exp(a), dropped, 0), q = masked_fill(exp(b), dropped, 0);
  return {p, q, masked_fill(sub(a, b), dropped, 0)};
}
// share·d; a share of 0 adds nothing, whatever d is.
Tensor product(const Tensor& share, const Tensor& d) { return mul(share, masked_fill(d, eq(share, 0), 0)); }

Tensor divergence_twin(Divergence kind, const Tensor& x, const Tensor& other, const Tensor& keep, int dim) {
  const auto [p, q, d] = shares_of(x, other, keep, dim);
  if (kind == Divergence::forward) return sum(product(p, d), dim);
  return mul(sum(product(sub(p, q), d), dim), 0.5);
}

Grads recorded_gradients(Divergence kind, const Tensor& g, const Tensor& x, const Tensor& other, const Tensor& keep,
                         int dim, const Need& need) {
  const auto [p, q, d] = shares_of(x, other, keep, dim);
  const Tensor pd = product(p, d), qd = product(q, d), slope = unsqueeze(g, dim), apart = sub(p, q);
  // p (d − Σ p d) and −q (d − Σ q d)
  const Tensor by_p = sub(pd, mul(p, sum(pd, dim, true))), by_q = sub(mul(q, sum(qd, dim, true)), qd);
  if (kind == Divergence::forward)
    return {need[0] ? mul(slope, by_p) : Tensor(), need[1] ? neg(mul(slope, apart)) : Tensor(), Tensor()};
  const Tensor half = mul(slope, 0.5);
  return {need[0] ? mul(half, add(by_p, apart)) : Tensor(), need[1] ? mul(half, sub(by_q, apart)) : Tensor(), Tensor()};
}

Tensor divergence(const OpInfo& op, Divergence kind, const Arg& x, const Arg& other, i64 dim, const Tensor& keep) {
  const int d = check_distributions(op.name, x, other, dim, keep);
  if (explain_mode()) return divergence_twin(kind, *x, *other, keep, d);
  const Tensor a = kept_rows(*x, keep, d), b = kept_rows(*other, keep, d);
  const auto [rows, n] = row_count(a);
  const DType dtype = x->dtype();
  Shape shape = x->shape();
  shape.erase(d);
  const Tensor value = make_empty(shape, dtype);
  const Tensor stats = nothing_recorded({&*x, &*other}) ? Tensor() : make_empty({rows, 6}, dtype);
  visit_float(dtype, [&, rows = rows, n = n](auto zero) {
    using T = decltype(zero);
    static_assert(sizeof(kernels::DivergenceRow<T>) == 6 * sizeof(T));
    kernels::divergence<T>(kind, a.data<T>(), b.data<T>(), value.data<T>(),
                           stats.defined() ? reinterpret_cast<kernels::DivergenceRow<T>*>(stats.data<T>()) : nullptr,
                           rows, n);
  });
  return record(
      op, value, {x, other, keep},
      [&](Saver& s) {
        return [kind, d, x = s.input(0), y = s.input(1), keep = s.bits(keep), stats = s.stats(stats)](
                   Tensor g, const Need& need) -> Grads {
          const Tensor u = *x, v = *y, kept = keep ? *keep : Tensor();
          if (!fused_backward_allowed()) return recorded_gradients(kind, g, u, v, kept, d, need);
          const Tensor from_x = kept_rows(u, kept, d), from_y = kept_rows(v, kept, d), slope = contiguous_value(g),
                       saved = *stats;
          const Tensor dx = need[0] ? make_empty(from_x.shape(), u.dtype()) : Tensor();
          const Tensor dy = need[1] ? make_empty(from_x.shape(), u.dtype()) : Tensor();
          visit_float(u.dtype(), [&](auto zero) {
            using T = decltype(zero);
            const auto [count, classes] = row_count(from_x);
            kernels::divergence_backward<T>(kind, from_x.data<T>(), from_y.data<T>(),
                                            reinterpret_cast<const kernels::DivergenceRow<T>*>(saved.data<T>()),
                                            slope.data<T>(), dx.defined() ? dx.data<T>() : nullptr,
                                            dy.defined() ? dy.data<T>() : nullptr, count, classes);
          });
          return {dx.defined() ? axis_back(dx, d, u.shape()) : Tensor(),
                  dy.defined() ? axis_back(dy, d, u.shape()) : Tensor(), Tensor()};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}

}  // namespace

#define WAYMARK_DIVERGENCE_SAVES                                       \
  {                                                                    \
    {"input", For{0, 1}}, {"other", For{0, 1}}, {"mask", For{0, 1}}, { \
      "row statistics", For { 0, 1 }                                   \
    }                                                                  \
  }

extern constexpr OpInfo kSoftmaxKl{
    .name = "softmax_kl",
    .family = "loss",
    .doc = "Kullback-Leibler divergence of two softmax distributions, from logits",
    .schema = "softmax_kl(Tensor input, Tensor other, int dim=-1, Tensor? keep=None) -> Tensor",
    .formula = "y = KL(p‖q) = Σ p·d,  d = log p − log q,  p = softmax(input), q = softmax(other) over the kept classes",
    .rule = "dinput = g·p∘(d − y),  dother = g·(q − p)",
    .saves = WAYMARK_DIVERGENCE_SAVES,
    .twin = "divergence_twin",
    .flops = [](OpCall& c) { return 12.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply =
        [](OpCall& c) {
          c.result(softmax_kl(c.tensor("input"), c.tensor("other"), c.integer("dim", -1), c.optional_tensor("keep")));
        }};
Tensor softmax_kl(Arg x, Arg other, i64 dim, const Tensor& keep) {
  return divergence(kSoftmaxKl, Divergence::forward, x, other, dim, keep);
}

extern constexpr OpInfo kSymmetricKl{
    .name = "symmetric_kl",
    .family = "loss",
    .doc = "mean of both Kullback-Leibler divergences of two softmax distributions",
    .schema = "symmetric_kl(Tensor input, Tensor other, int dim=-1, Tensor? keep=None) -> Tensor",
    .formula = "y = ½(KL(p‖q) + KL(q‖p)) = ½ Σ (p − q)·d,  d = log p − log q",
    .rule = "dinput = ½g·[p∘(d − KL(p‖q)) + (p − q)],  dother = ½g·[q∘(−d − KL(q‖p)) + (q − p)]",
    .saves = WAYMARK_DIVERGENCE_SAVES,
    .twin = "divergence_twin",
    .flops = [](OpCall& c) { return 12.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply =
        [](OpCall& c) {
          c.result(symmetric_kl(c.tensor("input"), c.tensor("other"), c.integer("dim", -1), c.optional_tensor("keep")));
        }};
Tensor symmetric_kl(Arg x, Arg other, i64 dim, const Tensor& keep) {
  return divergence(kSymmetricKl, Divergence::symmetric, x, other, dim, keep);
}

}  // namespace waymark
