#include "core/ops/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/rearrange.h"
#include "core/ops/scan_loop.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

// ---- the building block of rules ------------------------------------------------------------------------------------

extern constexpr OpInfo kLinearRecurrence{
    .name = "linear_recurrence",
    .family = "scan",
    .doc = "first-order linear recurrence along an axis: a part of rules of scans",
    .schema = "linear_recurrence(Tensor a, Tensor b, int dim, bool reverse) -> Tensor",
    .formula = "yᵢ = bᵢ + aᵢ·yᵢ₋₁",
    .rule = "db = s, sᵢ = gᵢ + aᵢ₊₁·sᵢ₊₁;  da = s·yᵢ₋₁",
    .saves = {{"a", For{0, 1}}, {"output", For{0}}}};

namespace ops {

Tensor shifted(Arg x, int dim, i64 by) {
  std::vector<i64> pads(static_cast<size_t>(2 * (x->dim() - dim)), 0);
  pads[pads.size() - 2] = by;
  pads[pads.size() - 1] = -by;
  return pad(x, pads);
}

Tensor linear_recurrence(Arg a, Arg b, int dim, bool reverse) {
  const Tensor factor = contiguous_value(*a), term = contiguous_value(*b);
  Tensor y = make_empty(b->shape(), b->dtype());
  visit_float(b->dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *as = factor.data<T>(), *bs = term.data<T>();
    T* ys = y.data<T>();
    scan_axis(y.shape(), dim, reverse, [&](i64 at, i64 step, i64 n) {
      T state = 0;
      for (i64 i = 0; i < n; ++i, at += step) ys[at] = state = i == 0 ? bs[at] : bs[at] + as[at] * state;
    });
  });
  return record(kLinearRecurrence, std::move(y), {a, b}, [&](Saver& s) {
    return [dim, reverse, a = s.input(0), y = s.output(0, s.needs(0))](Tensor g, const Need& need) -> Grads {
      const i64 next = reverse ? 1 : -1;
      const Tensor adjoint = linear_recurrence(shifted(*a, dim, next), g, dim, !reverse);
      return {need[0] ? mul(adjoint, shifted(*y, dim, -next)) : Tensor(), need[1] ? adjoint : Tensor()};
    };
  });
}

Tensor product_before(Arg x, int dim, bool reverse) {
  const Tensor one = make_empty(x->shape(), x->dtype());  // 1 at the first place of the direction, 0 elsewhere
  fill_into(one, 0);
  fill_into(Window{.kind = Window::Kind::select, .dim = dim, .start = reverse ? x->shape()[dim] - 1 : 0}.of(one), 1);
  return linear_recurrence(shifted(x, dim, reverse ? -1 : 1), one, dim, reverse);
}

}  // namespace ops

// ---- cumsum, cumprod ------------------------------------------------------------------------------------------------

extern constexpr OpInfo kCumsum{.name = "cumsum",
                                .family = "scan",
                                .doc = "running sum along an axis",
                                .schema = "cumsum(Tensor input, int dim) -> Tensor",
                                .formula = "yᵢ = Σ_{j ≤ i} xⱼ",
                                .rule = "dx = running sum of g from the end",
                                .apply = [](OpCall& c) { c.result(cumsum(c.tensor("input"), c.integer("dim"))); }};
extern constexpr OpInfo kCumprod{.name = "cumprod",
                                 .family = "scan",
                                 .doc = "running product along an axis",
                                 .schema = "cumprod(Tensor input, int dim) -> Tensor",
                                 .formula = "yᵢ = Π_{j ≤ i} xⱼ",
                                 .rule = "dxᵢ = Lᵢ·Sᵢ, Lᵢ = Π_{j < i} xⱼ, Sᵢ = gᵢ + xᵢ₊₁·Sᵢ₊₁",
                                 .saves = {{"input", For{0}}},
                                 .apply = [](OpCall& c) { c.result(cumprod(c.tensor("input"), c.integer("dim"))); }};

namespace {

DType scan_dtype(DType t) { return is_float(t) ? t : kI64; }

// A running sum whose error does not grow with the length: f32 in f64, f64 with the lost parts carried along.
struct RunningSum {
  double sum = 0, lost = 0;
  void add(double v) {
    const double next = sum + v;
    // Infinite or NaN: nothing can be carried any more.
    lost = std::isfinite(next) ? lost + (std::abs(sum) >= std::abs(v) ? (sum - next) + v : (v - next) + sum) : 0;
    sum = next;
  }
  double value() const { return sum + lost; }
};

Tensor cumsum_value(const Tensor& given, int d, bool reverse) {
  const Tensor x = contiguous_value(cast_value(given, scan_dtype(given.dtype())));
  Tensor y = make_empty(x.shape(), x.dtype());
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    scan_axis(y.shape(), d, reverse, [&](i64 at, i64 step, i64 n) {
      if constexpr (std::is_same_v<T, double>) {
        RunningSum s;
        for (i64 i = 0; i < n; ++i, at += step) {
          s.add(xs[at]);
          ys[at] = s.value();
        }
      } else {
        std::conditional_t<std::is_same_v<T, float>, double, u64> s = 0;
        for (i64 i = 0; i < n; ++i, at += step) ys[at] = static_cast<T>(s += static_cast<decltype(s)>(xs[at]));
      }
    });
  });
  return y;
}

Tensor cumsum_along(Arg x, int d, bool reverse) {
  return record(
      kCumsum, cumsum_value(*x, d, reverse), {x},
      [&](Saver&) { return [d, reverse](Tensor g, const Need&) -> Grads { return {cumsum_along(g, d, !reverse)}; }; },
      [&](Attrs& at) {
        at("dim", i64{d});
        at("reverse", reverse);
      });
}

}  // namespace

Tensor cumsum(Arg x, i64 dim) {
  check_defined("cumsum", x);
  return cumsum_along(x, wrap_dim("cumsum", dim, x->dim()), false);
}

Tensor cumprod(Arg x, i64 dim) {
  check_defined("cumprod", x);
  const int d = wrap_dim("cumprod", dim, x->dim());
  const Tensor in = contiguous_value(cast_value(*x, scan_dtype(x->dtype())));
  Tensor y = make_empty(in.shape(), in.dtype());
  visit_dtype(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, i64>, u64, double>;
    const T* xs = in.data<T>();
    T* ys = y.data<T>();
    scan_axis(y.shape(), d, false, [&](i64 at, i64 step, i64 n) {
      Wide p = 1;
      for (i64 i = 0; i < n; ++i, at += step) ys[at] = static_cast<T>(p *= static_cast<Wide>(xs[at]));
    });
  });
  return record(
      kCumprod, std::move(y), {x},
      [&](Saver& s) {
        return [d, x = s.input(0)](Tensor g, const Need&) -> Grads {
          const Tensor v = *x;
          if (v.dim() == 0 || v.numel() == 0) return {g};
          return {mul(product_before(v, d, false), linear_recurrence(shifted(v, d, -1), g, d, true))};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}

// ---- cummax, cummin -------------------------------------------------------------------------------------------------

#define WAYMARK_RUNNING(K, NAME, DOC, FORMULA)                                                            \
  extern constexpr OpInfo K{.name = #NAME,                                                                \
                            .family = "scan",                                                             \
                            .doc = DOC,                                                                   \
                            .schema = #NAME "(Tensor input, int dim) -> (Tensor values, Tensor indices)", \
                            .formula = FORMULA,                                                           \
                            .rule = "dx = 0 with g added at the indices",                                 \
                            .saves = {{"indices", For{0}}},                                               \
                            .kinks = "ties",                                                              \
                            .apply = [](OpCall& c) {                                                      \
                              const ValuesIndices r = NAME(c.tensor("input"), c.integer("dim"));          \
                              c.result("values", r.values);                                               \
                              c.result("indices", r.indices);                                             \
                            }};
WAYMARK_RUNNING(kCummax, cummax, "running maximum along an axis", "yᵢ = max_{j ≤ i} xⱼ")
WAYMARK_RUNNING(kCummin, cummin, "running minimum along an axis", "yᵢ = min_{j ≤ i} xⱼ")

namespace {

ValuesIndices running(const OpInfo& op, const Arg& x, i64 dim, bool largest) {
  check_defined(op.name, x);
  const int d = wrap_dim(op.name, dim, x->dim());
  const Tensor in = contiguous_value(*x);
  ValuesIndices r{make_empty(in.shape(), in.dtype()), make_empty(in.shape(), kI64)};
  visit_dtype(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = in.data<T>();
    T* ys = r.values.data<T>();
    i64* is = r.indices.data<i64>();
    scan_axis(in.shape(), d, false, [&](i64 at, i64 step, i64 n) {
      T best{};
      i64 where = 0;
      for (i64 i = 0; i < n; ++i, at += step) {
        const T v = xs[at];
        if (i == 0 || v != v || (best == best && (largest ? v >= best : v <= best))) {
          best = v;
          where = i;
        }
        ys[at] = best;
        is[at] = where;
      }
    });
  });
  const Tensor outputs[] = {r.values, r.indices};
  record_many(
      op, outputs, {x},
      [&](Saver& s) {
        return [d, i = s.indices(r.indices)](std::span<Tensor> g, const Need&) -> Grads {
          return {scatter_add(zeros(g[0].shape(), g[0].dtype()), d, *i, g[0])};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
  return r;
}

}  // namespace

ValuesIndices cummax(Arg x, i64 dim) { return running(kCummax, x, dim, true); }
ValuesIndices cummin(Arg x, i64 dim) { return running(kCummin, x, dim, false); }

// ---- diff -----------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kDiff{
    .name = "diff",
    .family = "scan",
    .doc = "differences of neighbours along an axis",
    .schema = "diff(Tensor input, int n=1, int dim=-1) -> Tensor",
    .formula = "yᵢ = xᵢ₊₁ − xᵢ",
    .rule = "dxᵢ = gᵢ₋₁ − gᵢ",
    .apply = [](OpCall& c) { c.result(diff(c.tensor("input"), c.integer("n", 1), c.integer("dim", -1))); }};

Tensor diff(Arg x, i64 n, i64 dim) {
  check_defined("diff", x);
  if (x->dim() == 0) fail_at(x.loc(), "diff", "needs at least 1 axis, got {}", x->shape());
  if (n < 0) fail_at(x.loc(), "diff", "n must not be negative, got {}", n);
  const int d = wrap_dim("diff", dim, x->dim());
  Tensor y = *x;
  for (i64 k = 0; k < n && y.shape()[d] > 0; ++k) {
    const i64 rest = y.shape()[d] - 1;
    const Tensor high = narrow(Arg(y, x.loc()), d, 1, rest), low = narrow(Arg(y, x.loc()), d, 0, rest);
    y = y.dtype() == kB8 ? ne(Arg(high, x.loc()), low) : sub(Arg(high, x.loc()), low);
  }
  return y.is(*x) ? clone(x) : y;  // nothing to subtract: a copy all the same
}

}  // namespace waymark
