#include "core/ops/extremes.h"

#include "core/kernels/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce_plan.h"

namespace waymark {

using namespace ops;

#define WAYMARK_TIES(K, NAME, DOC, FORMULA)                                            \
  extern constexpr OpInfo K{                                                           \
      .name = #NAME,                                                                   \
      .family = "extremes",                                                            \
      .doc = DOC,                                                                      \
      .schema = #NAME "(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", \
      .formula = FORMULA,                                                              \
      .rule = "g shared equally by the entries equal to y (NaN: by the NaN)",          \
      .saves = {{"input", For{0}}, {"output", For{0}}},                                \
      .kinks = "ties",                                                                 \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};
WAYMARK_TIES(kAmax, amax, "largest element over some axes", "y = max x")
WAYMARK_TIES(kAmin, amin, "smallest element over some axes", "y = min x")

#define WAYMARK_EXTREME(K, NAME, DOC, FORMULA)                                                                \
  extern constexpr OpInfo K{                                                                                  \
      .name = #NAME,                                                                                          \
      .family = "extremes",                                                                                   \
      .doc = DOC,                                                                                             \
      .schema = #NAME "(Tensor input, int? dim=None, bool keepdim=False, Tensor? other=None) -> "               \
                 "(Tensor values, Tensor indices)",                                                           \
      .formula = FORMULA,                                                                                     \
      .rule = "with dim: g to the first index;  full: g shared equally by the ties",                          \
      .saves = {{"indices", For{0}}, {"input", For{0}}, {"output", For{0}}},                                  \
      .kinks = "ties",                                                                                        \
      .apply = [](OpCall& c) {                                                                                \
        if (c.has("dim"))                                                                                     \
          c.result(NAME(c.tensor("input"), c.integer("dim"), c.flag("keepdim", false)));               \
        else if (c.has("other"))                                                                              \
          c.result(NAME(c.tensor("input"), c.tensor("other")));                                               \
        else                                                                                                  \
          c.result(NAME(c.tensor("input")));                                                                  \
      }};
WAYMARK_EXTREME(kMax, max, "largest element, and its index along an axis", "y = max x")
WAYMARK_EXTREME(kMin, min, "smallest element, and its index along an axis", "y = min x")

extern constexpr OpInfo kAminmax{
    .name = "aminmax",
    .family = "extremes",
    .doc = "smallest and largest element",
    .schema = "aminmax(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    .formula = "y = (min x, max x)",
    .rule = "each g shared equally by the ties",
    .saves = {{"input", For{0}}, {"output", For{0}}},
    .kinks = "ties",
    .apply = [](OpCall& c) {
      const MinMax r = aminmax(c.tensor("input"), c.optional_integer("dim"), c.flag("keepdim", false));
      c.result("min", r.min);
      c.result("max", r.max);
    }};
#define WAYMARK_ARG(K, NAME, DOC)                                                    \
  extern constexpr OpInfo K{                                                         \
      .name = #NAME,                                                                 \
      .family = "extremes",                                                          \
      .doc = DOC,                                                                    \
      .schema = #NAME "(Tensor input, int? dim=None, bool keepdim=False) -> Tensor", \
      .formula = "y = " #NAME " x",                                                  \
      .rule = not_differentiable(#NAME " returns positions"),                        \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.optional_integer("dim"), c.flag("keepdim", false))); }};
WAYMARK_ARG(kArgmax, argmax, "first index of the largest element; NaN is the largest")
WAYMARK_ARG(kArgmin, argmin, "first index of the smallest element; NaN is the smallest")

namespace {

enum class Extreme { largest, smallest };

// Values and (if wanted) indices on the reduced axis. b8 goes through i64.
ValuesIndices extreme_value(const ReducePlan& p, Extreme side, bool indices) {
  const DType dtype = p.source.dtype();
  const Tensor x = dtype == kB8 ? cast_value(p.source, kI64) : p.source;
  Tensor y = make_empty(p.out, x.dtype()), at = indices ? make_empty(p.out, kI64) : Tensor();
  i64* to = indices ? at.data<i64>() : nullptr;
  if (y.numel() > 0)
    visit_dtype(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>) {
        if (side == Extreme::largest)
          kernels::max_axis<T>(x.data<T>(), p.outer, p.n, p.inner, y.data<T>(), to);
        else
          kernels::min_axis<T>(x.data<T>(), p.outer, p.n, p.inner, y.data<T>(), to);
      }
    });
  return {cast_value(y, dtype), at};
}

auto shared_rule(const ReducePlan& p) {
  return [&p](Saver& s) {
    return [dims = p.dim_list(), kept = p.kept, x = s.input(0), y = s.output()](Tensor g, const Need&) -> Grads {
      return {share_ties(g, *x, *y, dims, kept)};
    };
  };
}

Tensor shared(const OpInfo& op, const Arg& x, const Dims& dim, bool keepdim, Extreme side) {
  const ReducePlan p = plan_nonempty(op.name, x, dim, keepdim);
  return record(op, extreme_value(p, side, false).values, {x}, shared_rule(p), [&](Attrs& at) {
    if (dim.all()) return;
    at("dim", p.dim_list());
    at("keepdim", keepdim);
  });
}

ValuesIndices along(const OpInfo& op, const Arg& x, i64 dim, bool keepdim, Extreme side) {
  const ReducePlan p = plan_nonempty(op.name, x, Dims(dim), keepdim);
  const int d = wrap_dim(op.name, dim, x->dim());
  ValuesIndices r = extreme_value(p, side, true);
  const Tensor outputs[] = {r.values, r.indices};
  record_many(
      op, outputs, {x},
      [&](Saver& s) {
        return [d, keepdim, shape = x->shape(), i = s.indices(r.indices)](std::span<Tensor> g, const Need&) -> Grads {
          return {route(g[0], *i, shape, d, keepdim)};
        };
      },
      [&](Attrs& at) {
        at("dim", i64{d});
        at("keepdim", keepdim);
      });
  return r;
}

Tensor position(const OpInfo& op, const Arg& x, std::optional<i64> dim, bool keepdim, Extreme side) {
  check_defined(op.name, x);
  if (x->dtype() == kB8) fail_at(x.loc(), op.name, "b8 is not supported; convert with to(...)");
  const ReducePlan p = plan_nonempty(op.name, x, dim ? Dims(*dim) : Dims(), keepdim);
  return record_nondiff(op, extreme_value(p, side, true).indices, {x}, [&](Attrs& at) {
    if (dim) at("dim", *dim);
    at("keepdim", keepdim);
  });
}

}  // namespace

Tensor amax(Arg x, Dims dim, bool keepdim) { return shared(kAmax, x, dim, keepdim, Extreme::largest); }
Tensor amin(Arg x, Dims dim, bool keepdim) { return shared(kAmin, x, dim, keepdim, Extreme::smallest); }
Tensor max(Arg x) { return shared(kMax, x, {}, false, Extreme::largest); }
Tensor min(Arg x) { return shared(kMin, x, {}, false, Extreme::smallest); }
ValuesIndices max(Arg x, i64 dim, bool keepdim) { return along(kMax, x, dim, keepdim, Extreme::largest); }
ValuesIndices min(Arg x, i64 dim, bool keepdim) { return along(kMin, x, dim, keepdim, Extreme::smallest); }
Tensor max(Arg x, Arg other) { return maximum(x, other); }
Tensor min(Arg x, Arg other) { return minimum(x, other); }

MinMax aminmax(Arg x, std::optional<i64> dim, bool keepdim) {
  const ReducePlan p = plan_nonempty("aminmax", x, dim ? Dims(*dim) : Dims(), keepdim);
  const Tensor outputs[] = {extreme_value(p, Extreme::smallest, false).values,
                            extreme_value(p, Extreme::largest, false).values};
  record_many(
      kAminmax, outputs, {x},
      [&](Saver& s) {
        return [dims = p.dim_list(), kept = p.kept, x = s.input(0), low = s.output(0), high = s.output(1)](
                   std::span<Tensor> g, const Need&) -> Grads {
          Tensor dx;
          for (size_t k = 0; k < 2; ++k) {
            if (!g[k].defined()) continue;
            const Tensor part = share_ties(g[k], *x, k == 0 ? *low : *high, dims, kept);
            dx = dx.defined() ? add(dx, part) : part;
          }
          return {dx};
        };
      },
      [&](Attrs& at) {
        if (dim) at("dim", *dim);
        at("keepdim", keepdim);
      });
  return {outputs[0], outputs[1]};
}

Tensor argmax(Arg x, std::optional<i64> dim, bool keepdim) { return position(kArgmax, x, dim, keepdim, Extreme::largest); }
Tensor argmin(Arg x, std::optional<i64> dim, bool keepdim) {
  return position(kArgmin, x, dim, keepdim, Extreme::smallest);
}

}  // namespace waymark
