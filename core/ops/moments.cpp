#include "core/ops/moments.h"

#include <cmath>

#include "core/kernels/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_plan.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

#define WAYMARK_SPREAD(K, NAME, DOC, FORMULA, RULE)                                                             \
  extern constexpr OpInfo K{                                                                                    \
      .name = #NAME,                                                                                            \
      .family = "moments",                                                                                      \
      .doc = DOC,                                                                                               \
      .schema = #NAME "(Tensor input, int[]? dim=None, int correction=1, bool keepdim=False) -> Tensor",        \
      .formula = FORMULA,                                                                                       \
      .rule = RULE,                                                                                             \
      .saves = {{"input", For{0}}, {"output", For{0}}},                                                         \
      .apply = [](OpCall& c) {                                                                                  \
        c.result(NAME(c.tensor("input"), c.dims("dim"), c.integer("correction", 1), c.flag("keepdim", false))); \
      }};
WAYMARK_SPREAD(kVar, var, "variance over some axes", "y = Σ(x − μ)²/(n − c)", "dx = g·2(x − μ)/(n − c), 0 where n ≤ c")
WAYMARK_SPREAD(kStd, std, "standard deviation over some axes", "y = √(Σ(x − μ)²/(n − c))",
               "dx = g·(x − μ)/((n − c)·y), 0 where y = 0 or n ≤ c")
#define WAYMARK_SPREAD_MEAN(K, NAME, FIRST, DOC, FORMULA)                                                       \
  extern constexpr OpInfo K{                                                                                    \
      .name = #NAME,                                                                                            \
      .family = "moments",                                                                                      \
      .doc = DOC,                                                                                               \
      .schema = #NAME "(Tensor input, int[]? dim=None, int correction=1, bool keepdim=False) -> (Tensor " FIRST \
                      ", Tensor mean)",                                                                         \
      .formula = FORMULA,                                                                                       \
      .rule = "as " FIRST ", plus g of the mean / n",                                                           \
      .saves = {{"input", For{0}}, {"output", For{0}}},                                                         \
      .apply = [](OpCall& c) {                                                                                  \
        const SpreadMean r =                                                                                    \
            NAME(c.tensor("input"), c.dims("dim"), c.integer("correction", 1), c.flag("keepdim", false));       \
        c.result(FIRST, r.spread);                                                                              \
        c.result("mean", r.mean);                                                                               \
      }};
WAYMARK_SPREAD_MEAN(kVarMean, var_mean, "var", "variance and mean", "y = (var x, mean x)")
WAYMARK_SPREAD_MEAN(kStdMean, std_mean, "std", "standard deviation and mean", "y = (std x, mean x)")

namespace {

struct Moments {
  ReducePlan plan;
  double freedom;  // max(0, n − correction)
  Tensor spread, mean;
};

Moments moments(std::string_view op, const Arg& x, const Dims& dim, i64 correction, bool keepdim, bool root,
                bool mean) {
  check_defined(op, x);
  need_float(op, *x);
  Moments m{.plan = plan_reduce(op, *x, dim, keepdim), .freedom = 0, .spread = {}, .mean = {}};
  const ReducePlan& p = m.plan;
  m.freedom = std::max(0.0, static_cast<double>(p.n) - static_cast<double>(correction));
  m.spread = make_empty(p.out, x->dtype());
  if (mean) m.mean = make_empty(p.out, x->dtype());
  visit_float(x->dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = m.spread.data<T>();
    if (m.spread.numel() > 0)
      kernels::moments_axis<T>(p.source.data<T>(), p.outer, p.n, p.inner, mean ? m.mean.data<T>() : nullptr, to);
    for (i64 i = 0; i < m.spread.numel(); ++i) {
      const double v = static_cast<double>(to[i]) / m.freedom;
      to[i] = static_cast<T>(root ? std::sqrt(v) : v);
    }
  });
  return m;
}

// x − μ, in the two steps that stay exact for a large mean.
Tensor centred(const Tensor& x, const std::vector<i64>& dims) {
  if (dims.empty()) return mul(x, 0);
  const Tensor d = sub(x, mean(x, dims, true));
  return sub(d, mean(d, dims, true));
}

struct Rule {
  std::vector<i64> dims;
  Shape kept;
  double n, freedom;
  bool root;
};

// y: the standard deviation, if root.
Tensor spread_gradient(const Rule& r, const Tensor& g, const Tensor& x, const Tensor& y) {
  const Tensor up = with_axes(g, r.kept);
  if (r.freedom <= 0) return zeros(x.shape(), x.dtype());
  const Tensor d = centred(x, r.dims);
  if (!r.root) return mul(mul(up, 2 / r.freedom), d);
  const Tensor length = with_axes(y, r.kept), none = eq(length, 0);
  const Tensor factor = masked_fill(div(up, mul(masked_fill(length, none, 1), r.freedom)), none, 0);
  return mul(factor, d);
}

Rule rule_of(const Moments& m, bool root) {
  return {m.plan.dim_list(), m.plan.kept, static_cast<double>(m.plan.n), m.freedom, root};
}

Tensor deviation(const OpInfo& op, const Arg& x, const Dims& dim, i64 correction, bool keepdim, bool root) {
  const Moments m = moments(op.name, x, dim, correction, keepdim, root, false);
  return record(
      op, m.spread, {x},
      [&](Saver& s) {
        return [rule = rule_of(m, root), x = s.input(0), y = s.output(0, root)](Tensor g, const Need&) -> Grads {
          return {spread_gradient(rule, g, *x, y ? *y : Tensor())};
        };
      },
      [&](Attrs& at) {
        at("dim", m.plan.dim_list());
        at("correction", correction);
        at("keepdim", keepdim);
      });
}

SpreadMean spread_mean(const OpInfo& op, const Arg& x, const Dims& dim, i64 correction, bool keepdim, bool root) {
  const Moments m = moments(op.name, x, dim, correction, keepdim, root, true);
  const Tensor outputs[] = {m.spread, m.mean};
  record_many(
      op, outputs, {x},
      [&](Saver& s) {
        return [rule = rule_of(m, root), shape = x->shape(), x = s.input(0), y = s.output(0, root)](
                   std::span<Tensor> g, const Need&) -> Grads {
          Tensor dx;
          if (g[0].defined()) dx = spread_gradient(rule, g[0], *x, y ? *y : Tensor());
          if (g[1].defined()) {
            const Tensor part = expand(div(with_axes(g[1], rule.kept), rule.n), shape);
            dx = dx.defined() ? add(dx, part) : part;
          }
          return {dx};
        };
      },
      [&](Attrs& at) {
        at("dim", m.plan.dim_list());
        at("correction", correction);
        at("keepdim", keepdim);
      });
  return {outputs[0], outputs[1]};
}

}  // namespace

Tensor var(Arg x, Dims dim, i64 correction, bool keepdim) { return deviation(kVar, x, dim, correction, keepdim, false); }
Tensor std(Arg x, Dims dim, i64 correction, bool keepdim) { return deviation(kStd, x, dim, correction, keepdim, true); }
SpreadMean var_mean(Arg x, Dims dim, i64 correction, bool keepdim) {
  return spread_mean(kVarMean, x, dim, correction, keepdim, false);
}
SpreadMean std_mean(Arg x, Dims dim, i64 correction, bool keepdim) {
  return spread_mean(kStdMean, x, dim, correction, keepdim, true);
}

}  // namespace waymark
