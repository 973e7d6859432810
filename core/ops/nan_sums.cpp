// nansum, nanmean (declared in reduce.h).
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_plan.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

#define WAYMARK_NAN_SUM(K, NAME, DOC, FORMULA, RULE, ...)                              \
  extern constexpr OpInfo K{                                                           \
      .name = #NAME,                                                                   \
      .family = "reduce",                                                              \
      .doc = DOC,                                                                      \
      .schema = #NAME "(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", \
      .formula = FORMULA,                                                              \
      .rule = RULE,                                                                    \
      .saves = {__VA_ARGS__},                                                          \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};
WAYMARK_NAN_SUM(kNansum, nansum, "sum of the elements that are not NaN", "y = Σ [x not NaN]·x",
                "dx = g where x is not NaN", {"mask bits", For{0}})
WAYMARK_NAN_SUM(kNanmean, nanmean, "mean of the elements that are not NaN", "y = Σ [x not NaN]·x / count",
                "dx = g/count where x is not NaN", {"mask bits", For{0}}, {"row statistics", For{0}})

namespace {

Tensor nan_sum(const OpInfo& op, const Arg& x, const Dims& dim, bool keepdim, bool divide) {
  check_defined(op.name, x);
  const std::vector<int> dims = dim.wrapped(op.name, x->dim());
  Tensor y, missing, count;
  {
    const NoGrad off;
    missing = isnan(*x);
    y = sum_value(masked_fill(*x, missing, 0), dims, keepdim);
    if (divide) {
      count = cast_value(sum_value(logical_not(missing), dims, keepdim), x->dtype());
      y = div(y, count);
    }
  }
  Shape kept = x->shape();
  for (const int d : dims) kept[d] = 1;
  return record(
      op, std::move(y), {x},
      [&](Saver& s) {
        return [kept, shape = x->shape(), m = s.bits(missing), n = s.stats(count)](Tensor g, const Need&) -> Grads {
          if (n) g = div(g, *n);
          return {masked_fill(expand(with_axes(g, kept), shape), *m, 0)};
        };
      },
      [&](Attrs& at) {
        at("dim", std::vector<i64>(dims.begin(), dims.end()));
        at("keepdim", keepdim);
      });
}

}  // namespace

Tensor nansum(Arg x, Dims dim, bool keepdim) {
  check_defined("nansum", x);
  if (!is_float(x->dtype())) return sum(x, std::move(dim), keepdim);
  return nan_sum(kNansum, x, dim, keepdim, false);
}
Tensor nanmean(Arg x, Dims dim, bool keepdim) {
  check_defined("nanmean", x);
  need_float("nanmean", *x);
  return nan_sum(kNanmean, x, dim, keepdim, true);
}

}  // namespace waymark
