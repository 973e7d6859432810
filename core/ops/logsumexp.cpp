// logsumexp (declared in reduce.h).
#include <cmath>
#include <limits>

#include "core/kernels/vmath.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_plan.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kLogsumexp{
    .name = "logsumexp",
    .family = "reduce",
    .doc = "logarithm of the sum of exponentials",
    .schema = "logsumexp(Tensor input, int[] dim, bool keepdim=False) -> Tensor",
    .formula = "y = m + log Σ e^(x − m), m = max x",
    .rule = "dx = g·e^(x − y);  y = −inf: 0;  y = +inf: shared by the +inf entries",
    .saves = {{"input", For{0}}, {"output", For{0}}},
    .apply = [](OpCall& c) { c.result(logsumexp(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};

namespace {

void exp_block(const float* x, float* y, i64 n) { kernels::vmath::exp_f32(x, y, n); }
void exp_block(const double* x, double* y, i64 n) { kernels::vmath::exp_f64(x, y, n); }

// Σ e^(xᵢ − m) for n > 0 values with a stride, blocks of 256 joined pairwise.
template <class T> T exp_sum(const T* x, i64 n, i64 stride, T m) {
  constexpr i64 kBlock = 256;
  if (n <= kBlock) {
    T e[kBlock], lane[16] = {};
    for (i64 i = 0; i < n; ++i) e[i] = x[i * stride] - m;
    exp_block(e, e, n);
    for (i64 i = 0; i < n; ++i) lane[i % 16] += e[i];
    for (int w = 8; w > 0; w /= 2)
      for (int k = 0; k < w; ++k) lane[k] += lane[k + w];
    return lane[0];
  }
  i64 half = kBlock;
  while (half * 2 < n) half *= 2;
  return exp_sum(x, half, stride, m) + exp_sum(x + half * stride, n - half, stride, m);
}

template <class T> T logsumexp_of(const T* x, i64 n, i64 stride) {
  T m = -std::numeric_limits<T>::infinity();
  for (i64 i = 0; i < n; ++i) {
    const T v = x[i * stride];
    if (v != v) return v;
    m = std::max(m, v);
  }
  return std::isinf(m) ? m : m + std::log(exp_sum(x, n, stride, m));
}

bool any_infinite(const Tensor& t) {
  return visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Tensor c = contiguous_value(t);
    bool found = false;
    for (i64 i = 0; i < c.numel(); ++i) found |= std::isinf(c.data<T>()[i]);
    return found;
  });
}

}  // namespace

Tensor logsumexp(Arg x, Dims dim, bool keepdim) {
  check_defined("logsumexp", x);
  const Tensor in = cast_value(*x, to_float(x->dtype()));
  const ReducePlan p = plan_reduce("logsumexp", in, dim, keepdim);
  Tensor y = make_empty(p.out, in.dtype());
  visit_float(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = p.source.data<T>();
    T* to = y.data<T>();
    parallel_for(p.outer * p.inner, std::max<i64>(1, kGrain / std::max<i64>(p.n * 8, 1)), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r)
        to[r] = logsumexp_of(from + r / p.inner * p.n * p.inner + r % p.inner, p.n, p.inner);
    });
  });
  return record(
      kLogsumexp, std::move(y), {x},
      [&](Saver& s) {
        return [dims = p.dim_list(), kept = p.kept, x = s.input(0), y = s.output()](Tensor g, const Need&) -> Grads {
          const Tensor v = *x, top = with_axes(*y, kept), up = with_axes(g, kept);
          if (!any_infinite(top)) return {mul(up, exp(sub(v, top)))};
          // Beside infinite sums the quotient e^x / e^y says nothing: −inf: nobody, +inf: the +inf entries equally.
          const Tensor infinite = isinf(top), share = share_ties(up, v, top, dims, kept);
          const Tensor ordinary = mul(up, exp(sub(masked_fill(v, infinite, 0), masked_fill(top, infinite, 0))));
          return {where(infinite, where(gt(top, 0), share, 0), ordinary)};
        };
      },
      [&](Attrs& at) {
        at("dim", p.dim_list());
        at("keepdim", keepdim);
      });
}

}  // namespace waymark
