#include "core/ops/similarity.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/products.h"
#include "core/ops/reduce.h"
#include "core/ops/reduction.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

void check_two(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  need_float(op, *a);
  check_product_dtypes(op, a, b);
}
void check_order(std::string_view op, double p, Loc loc) {
  if (!(p >= 1)) fail_at(loc, op, "p must be at least 1, got {}", p);
}

// Σ|x|^p along dim, which stays: the norm before its root.
Tensor power_sum(const Tensor& x, double p, i64 dim) {
  return sum(p == 2 ? square(x) : p == 1 ? abs(x) : pow(abs(x), p), dim, true);
}
Tensor root(const Tensor& s, double p) { return p == 2 ? sqrt(s) : p == 1 ? s : pow(s, 1 / p); }

// Largest |x| along dim; its gradient is shared equally by all entries that reach it.
Tensor largest(const Tensor& x, i64 dim) {
  const Tensor a = abs(x), ties = to(eq(a, constant_max(a.detach(), wrap_dim("norm", dim, x.dim()))), x.dtype());
  return sum(mul(a, div(ties, sum(ties, dim, true))), dim, true);
}

// max(‖x‖_p, eps): the bound is set before the root, whose derivative at 0 is infinite.
Tensor bounded_norm(const Tensor& x, double p, i64 dim, double eps) {
  if (std::isinf(p)) return clamp(largest(x, dim), eps, {});
  return root(clamp(power_sum(x, p, dim), std::pow(eps, p), {}), p);
}
// ‖x‖_p with derivative 0 at 0, at every order.
Tensor safe_norm(const Tensor& x, double p, i64 dim) {
  if (std::isinf(p)) return largest(x, dim);
  const Tensor s = power_sum(x, p, dim), zero = eq(s, 0);
  return masked_fill(root(masked_fill(s, zero, 1), p), zero, 0);
}

}  // namespace

// ---- normalize, cosine_similarity, pairwise_distance ----------------------------------------------------------------

extern constexpr OpInfo kNormalize{
    .name = "normalize", .family = "similarity", .doc = "vectors scaled to length 1",
    .schema = "normalize(Tensor input, float p=2.0, int dim=1, float eps=1e-12) -> Tensor", .formula = "y = x / max(‖x‖, ε)",
    .rule = "dx = (g − y·Σ g⊙y)/‖x‖ (p = 2), g/ε below ε; by the rules of its ops",
    .apply = [](OpCall& c) {
      c.result(normalize(c.tensor("input"), c.number("p", 2), c.integer("dim", 1), c.number("eps", 1e-12)));
    }};

Tensor normalize(Arg x, double p, i64 dim, double eps) {
  check_defined("normalize", x);
  need_float("normalize", *x);
  check_order("normalize", p, x.loc());
  wrap_dim("normalize", dim, x->dim());
  const Tensor v = *x;
  return div(Arg(v, x.loc()), bounded_norm(v, p, dim, eps));
}

extern constexpr OpInfo kCosineSimilarity{
    .name = "cosine_similarity", .family = "similarity", .doc = "cosine of the angle between vectors",
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .formula = "y = a·b / (max(‖a‖, ε)·max(‖b‖, ε))",
    .rule = "da = g·(b/(‖a‖‖b‖) − y·a/‖a‖²), below ε: g·b/(ε‖b‖); likewise b; by the rules of its ops",
    .apply = [](OpCall& c) {
      c.result(cosine_similarity(c.tensor("x1"), c.tensor("x2"), c.integer("dim", 1), c.number("eps", 1e-8)));
    }};

Tensor cosine_similarity(Arg a, Arg b, i64 dim, double eps) {
  check_two("cosine_similarity", a, b);
  const Shape shape = broadcast_shapes("cosine_similarity", a->shape(), b->shape());
  wrap_dim("cosine_similarity", dim, shape.size());
  const Tensor x = expand(*a, shape), y = expand(*b, shape);
  const Tensor lengths = mul(bounded_norm(x, 2, dim, eps), bounded_norm(y, 2, dim, eps));
  return div(Arg(sum(mul(Arg(x, a.loc()), y), dim), a.loc()), sum(lengths, dim));
}

extern constexpr OpInfo kPairwiseDistance{
    .name = "pairwise_distance", .family = "similarity", .doc = "distances of the rows of two tensors",
    .schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor",
    .formula = "y = ‖a − b + ε‖", .rule = "da = g·(a − b + ε)/y (p = 2), 0 where y = 0,  db = −da; by the rules of its ops",
    .apply = [](OpCall& c) {
      c.result(pairwise_distance(c.tensor("x1"), c.tensor("x2"), c.number("p", 2), c.number("eps", 1e-6), c.flag("keepdim", false)));
    }};

Tensor pairwise_distance(Arg a, Arg b, double p, double eps, bool keepdim) {
  check_two("pairwise_distance", a, b);
  check_order("pairwise_distance", p, a.loc());
  const Tensor x = *a, y = *b;
  const Tensor d = safe_norm(add(Arg(sub(Arg(x, a.loc()), y), a.loc()), eps), p, -1);
  return keepdim || d.dim() == 0 ? d : reshape(Arg(d, a.loc()), Shape(std::span<const i64>(d.shape().begin(), static_cast<size_t>(d.dim() - 1))));
}

// ---- cdist ----------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kCdist{
    .name = "cdist", .family = "similarity", .doc = "distances of all pairs of rows",
    .schema = "cdist(Tensor x1, Tensor x2, float p=2.0) -> Tensor", .formula = "yᵢⱼ = ‖aᵢ − bⱼ‖",
    .rule = "w = g/y, 0 where y = 0:  da = a·Σⱼ w − w·b,  db = b·Σᵢ w − wᵀ·a (p = 2)",
    .saves = {{"x1", For{0, 1}}, {"x2", For{0, 1}}, {"output", For{0, 1}}},
    .flops = [](OpCall& c) { return 1.5 * product_flops(c.tensor("x1"), mT(c.tensor("x2"))); },
    .apply = [](OpCall& c) { c.result(cdist(c.tensor("x1"), c.tensor("x2"), c.number("p", 2))); }};

// Squares of the distances, then the root; unrecorded.
static Tensor euclidean_value(const Tensor& a, const Tensor& b) {
  const Unrecorded off;
  if (a.shape().at(-2) <= 25 && b.shape().at(-2) <= 25) return sqrt(sum(square(sub(unsqueeze(a, -2), unsqueeze(b, -3))), -1));
  const Tensor squares = add(sum(square(a), -1, true), mT(sum(square(b), -1, true)));
  return sqrt(clamp(add(squares, matmul(a, mT(b)), -2), 0.0, {}));
}

Tensor cdist(Arg a, Arg b, double p) {
  check_two("cdist", a, b);
  check_order("cdist", p, a.loc());
  if (a->dim() < 2 || b->dim() < 2 || a->shape().back() != b->shape().back())
    fail_at(a.loc(), "cdist", "needs (..., P, M) and (..., R, M), got {} and {}", a->shape(), b->shape());
  const auto batch = [](const Tensor& t) { return Shape(std::span<const i64>(t.shape().begin(), static_cast<size_t>(t.dim() - 2))); };
  broadcast_shapes("cdist", batch(*a), batch(*b));
  const Tensor x = *a, y = *b;
  if (p != 2) {
    const Tensor d = safe_norm(sub(unsqueeze(Arg(x, a.loc()), -2), unsqueeze(Arg(y, a.loc()), -3)), p, -1);
    return squeeze(Arg(d, a.loc()), -1);
  }
  return record(kCdist, euclidean_value(x, y), {a, b}, [&](Saver& s) {
    return [a = s.input(0), b = s.input(1), y = s.output()](Tensor g, const Need& need) -> Grads {
      const Tensor d = *y, zero = eq(d, 0), w = masked_fill(div(g, masked_fill(d, zero, 1)), zero, 0);
      Tensor da, db;
      if (need[0]) da = sub(mul(*a, sum(w, -1, true)), matmul(w, *b));
      if (need[1]) db = sub(mul(*b, mT(sum(w, -2, true))), matmul(mT(w), *a));
      return {std::move(da), std::move(db)};
    };
  });
}

// ---- cosine_embedding_loss ------------------------------------------------------------------------------------------

extern constexpr OpInfo kCosineEmbeddingLoss{
    .name = "cosine_embedding_loss", .family = "loss", .doc = "pairs pulled together or pushed apart by their cosine",
    .schema = "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, str reduction='mean') -> Tensor",
    .formula = "y = target 1: 1 − cos;  target −1: max(0, cos − margin)", .rule = "through cos, by the rules of its ops",
    .kinks = "cos = margin", .apply = [](OpCall& c) {
      c.result(cosine_embedding_loss(c.tensor("input1"), c.tensor("input2"), c.tensor("target"), c.number("margin", 0),
                                     c.word("reduction", "mean")));
    }};

Tensor cosine_embedding_loss(Arg a, Arg b, Arg target, double margin, std::string_view reduction) {
  constexpr std::string_view op = "cosine_embedding_loss";
  const Reduction r = reduction_of(op, reduction, a.loc());
  check_two(op, a, b);
  check_defined(op, target);
  if (a->shape() != b->shape() || a->dim() != target->dim() + 1 || a->dim() > 2 || (a->dim() == 2 && a->shape()[0] != target->shape()[0]))
    fail_at(a.loc(), op, "needs (N, D), (N, D) and targets (N), or (D), (D) and one target; got {}, {} and {}", a->shape(), b->shape(), target->shape());
  const Tensor x = *a, y = *b, t = *target, cosine = cosine_similarity(Arg(x, a.loc()), y, -1);
  const Tensor apart = clamp(sub(cosine, margin), 0.0, {});
  const Tensor each = where(eq(t, 1), rsub(cosine, 1), where(eq(t, -1), apart, 0));
  return reduce(each, r, a.loc());
}

}  // namespace waymark
