// logcumsumexp (declared in scan.h).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/ops/rearrange.h"
#include "core/ops/scan.h"
#include "core/ops/scan_loop.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kLogcumsumexp{
    .name = "logcumsumexp",
    .family = "scan",
    .doc = "running logarithm of the sum of exponentials",
    .schema = "logcumsumexp(Tensor input, int dim) -> Tensor",
    .formula = "yᵢ = log Σ_{j ≤ i} e^xⱼ",
    .rule =
        "dxᵢ = Tᵢ·e^(xᵢ − yᵢ), Tᵢ = gᵢ + Tᵢ₊₁·e^(yᵢ − yᵢ₊₁);  yᵢ = −inf: 0;  yₖ = +inf: gₖ shared by the +inf entries "
        "up to k",
    .saves = {{"input", For{0}}, {"output", For{0}}},
    .apply = [](OpCall& c) { c.result(logcumsumexp(c.tensor("input"), c.integer("dim"))); }};

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor logcumsumexp_value(const Tensor& x, int d) {
  Tensor y = make_empty(x.shape(), x.dtype());
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.data<T>();
    T* ys = y.data<T>();
    scan_axis(x.shape(), d, false, [&](i64 at, i64 step, i64 n) {
      // log Σ = m + log s, m the running maximum; s is rescaled when m grows, so nothing overflows.
      double m = -kInfinity, s = 0;
      for (i64 i = 0; i < n; ++i, at += step) {
        const double v = static_cast<double>(xs[at]);
        if (std::isnan(v) || std::isnan(m))
          m = std::numeric_limits<double>::quiet_NaN();
        else if (v == kInfinity)
          m = kInfinity;
        else if (v > m) {
          s = m == -kInfinity ? 1 : s * std::exp(m - v) + 1;
          m = v;
        } else if (v > -kInfinity && m < kInfinity) {
          s += std::exp(v - m);
        }
        ys[at] = static_cast<T>(std::isfinite(m) ? m + std::log(s) : m);
      }
    });
  });
  return y;
}

// e^(a − b) where `on`, else 0, at every order.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& on) {
  const Tensor off = logical_not(on);
  return masked_fill(exp(sub(masked_fill(a, off, 0), masked_fill(b, off, 0))), off, 0);
}

Tensor gradient(const Tensor& g, const Tensor& x, const Tensor& y, int d) {
  const Tensor top = eq(y, kInfinity), counted = logical_not(logical_or(top, eq(y, -kInfinity)));
  const i64 n = x.shape()[d];
  // T: how much each place passes on to the one before it.
  const Tensor before = narrow(y, d, 0, n - 1), after = narrow(y, d, 1, n - 1);
  const Tensor passed = ratio(before, after, logical_and(narrow(counted, d, 0, n - 1), narrow(counted, d, 1, n - 1)));
  std::vector<i64> pads(static_cast<size_t>(2 * (x.dim() - d)), 0);
  pads.back() = 1;
  const Tensor total = linear_recurrence(pad(passed, pads), masked_fill(g, top, 0), d, true);
  const Tensor ordinary = mul(total, ratio(x, y, counted));
  const Tensor peak = eq(x, kInfinity);
  const Tensor count = masked_fill(to(cumsum(peak, d), g.dtype()), logical_not(top), 1);
  const Tensor shares = flip(cumsum(flip(masked_fill(div(g, count), logical_not(top), 0), {d}), d), {d});
  return where(peak, shares, ordinary);
}

}  // namespace

Tensor logcumsumexp(Arg x, i64 dim) {
  check_defined("logcumsumexp", x);
  const int d = wrap_dim("logcumsumexp", dim, x->dim());
  const Tensor in = contiguous_value(cast_value(*x, to_float(x->dtype())));
  return record(
      kLogcumsumexp, logcumsumexp_value(in, d), {x},
      [&](Saver& s) {
        return [d, x = s.input(0), y = s.output()](Tensor g, const Need&) -> Grads {
          if (g.dim() == 0) {  // one slice of one element
            const Tensor v = unsqueeze(*x, 0);
            return {squeeze(gradient(unsqueeze(g, 0), v, unsqueeze(*y, 0), 0), 0)};
          }
          if (g.numel() == 0) return {g};
          return {gradient(g, *x, *y, d)};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}

}  // namespace waymark
