#include "core/ops/counts.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/reduce.h"
#include "core/ops/elementwise.h"
#include "core/ops/index_map.h"
#include "core/ops/reduce_plan.h"

namespace waymark {

using namespace ops;

#define WAYMARK_COUNT(K, NAME, DOC, FORMULA)                                           \
  extern constexpr OpInfo K{                                                           \
      .name = #NAME,                                                                   \
      .family = "counts",                                                              \
      .doc = DOC,                                                                      \
      .schema = #NAME "(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", \
      .formula = FORMULA,                                                              \
      .rule = not_differentiable("a count is piecewise constant"),                     \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};
WAYMARK_COUNT(kAll, all, "are all elements not 0", "y = ∧ [x ≠ 0]")
WAYMARK_COUNT(kAny, any, "is any element not 0", "y = ∨ [x ≠ 0]")
extern constexpr OpInfo kCountNonzero{
    .name = "count_nonzero",
    .family = "counts",
    .doc = "how many elements are not 0",
    .schema = "count_nonzero(Tensor input, int[]? dim=None) -> Tensor",
    .formula = "y = Σ [x ≠ 0]",
    .rule = not_differentiable("a count is piecewise constant"),
    .apply = [](OpCall& c) { c.result(count_nonzero(c.tensor("input"), c.dims("dim"))); }};
extern constexpr OpInfo kBincount{
    .name = "bincount",
    .family = "counts",
    .doc = "how often each number occurs",
    .schema = "bincount(Tensor input, Tensor? weights=None, int minlength=0) -> Tensor",
    .formula = "y[k] = Σ [x = k]·w",
    .rule = not_differentiable("a count is piecewise constant"),
    .apply = [](OpCall& c) {
      if (c.has("weights"))
        c.result(bincount(c.tensor("input"), c.tensor("weights"), c.integer("minlength", 0)));
      else
        c.result(bincount(c.tensor("input"), c.integer("minlength", 0)));
    }};
extern constexpr OpInfo kHistc{
    .name = "histc",
    .family = "counts",
    .doc = "histogram with equal bins",
    .schema = "histc(Tensor input, int bins=100, float min=0, float max=0) -> Tensor",
    .formula = "y[k] = Σ [x in bin k]",
    .rule = not_differentiable("a count is piecewise constant"),
    .apply = [](OpCall& c) {
      c.result(histc(c.tensor("input"), c.integer("bins", 100), c.number("min", 0.0), c.number("max", 0.0)));
    }};

namespace {

Tensor counted(const ReducePlan& p) {
  Tensor y = make_empty(p.out, kI64);
  if (y.numel() > 0)
    visit_dtype(p.source.dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::count_nonzero_axis<T>(p.source.data<T>(), p.outer, p.n, p.inner, y.data<i64>());
    });
  return y;
}

Tensor logic(const OpInfo& op, const Arg& x, const Dims& dim, bool keepdim, bool every) {
  check_defined(op.name, x);
  const ReducePlan p = plan_reduce(op.name, *x, dim, keepdim);
  const Tensor count = counted(p);
  Tensor y = make_empty(p.out, kB8);
  const i64 least = every ? p.n : 1;
  for (i64 i = 0; i < y.numel(); ++i) y.data<bool>()[i] = count.data<i64>()[i] >= least;
  return record_nondiff(op, std::move(y), {x}, [&](Attrs& at) {
    at("dim", p.dim_list());
    at("keepdim", keepdim);
  });
}

}  // namespace

Tensor all(Arg x, Dims dim, bool keepdim) { return logic(kAll, x, dim, keepdim, true); }
Tensor any(Arg x, Dims dim, bool keepdim) { return logic(kAny, x, dim, keepdim, false); }
Tensor count_nonzero(Arg x, Dims dim) {
  check_defined("count_nonzero", x);
  const ReducePlan p = plan_reduce("count_nonzero", *x, dim, false);
  return record_nondiff(kCountNonzero, counted(p), {x}, [&](Attrs& at) { at("dim", p.dim_list()); });
}

namespace {

// Extent of the counts, after the checks.
i64 check_bins(const Arg& x, i64 minlength) {
  check_defined("bincount", x);
  if (x->dtype() != kI64 || x->dim() != 1)
    fail_at(x.loc(), "bincount", "needs a 1-d i64 tensor, got {} {}", x->shape(), name_of(x->dtype()));
  if (minlength < 0) fail_at(x.loc(), "bincount", "minlength must not be negative, got {}", minlength);
  const Tensor t = contiguous_value(*x);
  i64 most = -1;
  for (i64 i = 0; i < t.numel(); ++i) {
    const i64 v = t.data<i64>()[i];
    if (v < 0) fail_at(x.loc(), "bincount", "the numbers must not be negative, got {} at position [{}]", v, i);
    most = std::max(most, v);
  }
  if (most == INT64_MAX) fail_at(x.loc(), "bincount", "{} is too large to count", most);
  const i64 n = std::max(most + 1, minlength);
  checked_numel("bincount", {n}, 8);
  return n;
}
RowMap bins_of(const Tensor& x) {
  const Tensor t = contiguous_value(x);
  return {.start = {t.data<i64>(), t.data<i64>() + t.numel()}, .inner = 1};
}

}  // namespace

Tensor bincount(Arg x, i64 minlength) {
  const i64 n = check_bins(x, minlength);
  Tensor y = make_empty({n}, kI64);
  fill_into(y, 0);
  for (const i64 k : bins_of(*x).start) ++y.data<i64>()[k];
  return record_nondiff(kBincount, std::move(y), {x}, [&](Attrs& at) { at("minlength", minlength); });
}
Tensor bincount(Arg x, Arg weights, i64 minlength) {
  check_defined("bincount", weights);
  const i64 n = check_bins(x, minlength);
  if (!(weights->shape() == x->shape()))
    fail_at(x.loc(), "bincount", "the weights {} must have the shape {}", weights->shape(), x->shape());
  const DType t = weights->dtype() == kF32 ? kF32 : kF64;  // as PyTorch: integer weights are summed in f64
  Tensor y = make_empty({n}, t);
  fill_into(y, 0);
  accumulate_value(y, bins_of(*x), cast_value(*weights, t));
  return record_nondiff(kBincount, std::move(y), {x, weights}, [&](Attrs& at) { at("minlength", minlength); });
}

Tensor histc(Arg x, i64 bins, double low, double high) {
  check_defined("histc", x);
  need_float("histc", *x);
  if (bins <= 0) fail_at(x.loc(), "histc", "bins must be positive, got {}", bins);
  if (!std::isfinite(low) || !std::isfinite(high) || low > high)
    fail_at(x.loc(), "histc", "[{}, {}] is no finite range", low, high);
  checked_numel("histc", {bins}, 8);
  const Tensor t = contiguous_value(*x);
  Tensor y = make_empty({bins}, x->dtype());
  fill_into(y, 0);
  visit_float(x->dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = t.data<T>();
    const i64 n = t.numel();
    if (low == high && n > 0) {
      const auto [least, most] = std::minmax_element(p, p + n);
      low = static_cast<double>(*least);
      high = static_cast<double>(*most);
      if (!std::isfinite(low) || !std::isfinite(high))
        fail_at(x.loc(), "histc", "the range of x, [{}, {}], is not finite; give min and max", low, high);
    }
    if (low == high) {
      low -= 1;
      high += 1;
    }
    std::vector<i64> count(static_cast<size_t>(bins));
    for (i64 i = 0; i < n; ++i) {
      const double v = static_cast<double>(p[i]);
      if (!(v >= low && v <= high)) continue;
      const i64 k = static_cast<i64>((v - low) / (high - low) * static_cast<double>(bins));
      ++count[static_cast<size_t>(std::min(k, bins - 1))];
    }
    for (i64 k = 0; k < bins; ++k) y.data<T>()[k] = static_cast<T>(count[static_cast<size_t>(k)]);
  });
  return record_nondiff(kHistc, std::move(y), {x}, [&](Attrs& at) {
    at("bins", bins);
    at("min", low);
    at("max", high);
  });
}

}  // namespace waymark
