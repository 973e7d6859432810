#include "core/ops/norm.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kNorm{
    .name = "norm", .family = "norm", .doc = "vector norm over some axes",
    .schema = "norm(Tensor input, Scalar p=2, int[]? dim=None, bool keepdim=False) -> Tensor", .formula = "y = (Σ |x|ᵖ)^(1/p)",
    .rule = "dx = g·sign x·(|x|/y)^(p−1); 0 where y = 0, and at x = 0 for p < 1; p = ±inf: shared by the |x| = y; p = 0: 0",
    .saves = {{"input", For{0}}, {"output", For{0}}}, .kinks = "x = 0 for p ≤ 1; ties for p = ±inf",
    .apply = [](OpCall& c) {
      c.result(norm(c.tensor("input"), c.scalar("p", Scalar(2)), c.dims("dim"), c.flag("keepdim", false)));
    }};

namespace {

// Reduced axes last: [outer, n], contiguous.
Tensor reduced_last(const Tensor& x, const std::vector<int>& dims) {
  Shape shape, strides;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < x.dim(); ++i)
      if ((std::find(dims.begin(), dims.end(), i) != dims.end()) == (pass == 1)) {
        shape.push_back(x.shape()[i]);
        strides.push_back(x.strides()[i]);
      }
  return contiguous_value(alias(x, shape, strides, x.offset()));
}

// Σ f(|x|) in f64 in the fixed tree, or the extreme for p = ±inf.
template <class T> double norm_of(const T* x, i64 n, double p) {
  if (std::isinf(p)) {
    double m = p > 0 ? 0 : std::numeric_limits<double>::infinity();
    for (i64 i = 0; i < n; ++i) {
      const double a = std::abs(static_cast<double>(x[i]));
      if (std::isnan(a)) return a;
      m = p > 0 ? std::max(m, a) : std::min(m, a);
    }
    return m;
  }
  const auto part = [&](i64 begin, i64 end) {
    double lane[16] = {};
    for (i64 i = begin; i < end; ++i) {
      const double a = std::abs(static_cast<double>(x[i]));
      lane[(i - begin) % 16] += p == 2 ? a * a : p == 1 ? a : p == 0 ? (a != 0 ? 1 : 0) : std::pow(a, p);
    }
    for (int w = 8; w > 0; w /= 2)
      for (int k = 0; k < w; ++k) lane[k] += lane[k + w];
    return lane[0];
  };
  if (n == 0) return 0;
  const double sum = deterministic_reduce<double>(n, 4096, part, [](double a, double b) { return a + b; });
  return p == 2 ? std::sqrt(sum) : p == 1 || p == 0 ? sum : std::pow(sum, 1 / p);
}

Tensor norm_value(const Tensor& x, double p, const std::vector<int>& dims, bool keepdim) {
  const Tensor rows = reduced_last(x, dims);
  i64 n = 1;
  Shape out;
  for (int i = 0; i < x.dim(); ++i) {
    const bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (reduced) n *= x.shape()[i];
    if (!reduced || keepdim) out.push_back(reduced ? 1 : x.shape()[i]);
  }
  Tensor y = make_empty(out, x.dtype());
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = rows.data<T>();
    T* to = y.data<T>();
    parallel_for(y.numel(), std::max<i64>(1, kGrain / std::max<i64>(n, 1)), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) to[r] = static_cast<T>(norm_of(from + r * n, n, p));
    });
  });
  return y;
}

// y with its reduced axes back as extents of 1.
Tensor with_axes(const Tensor& y, const Shape& full, const std::vector<int>& dims, bool keepdim) {
  if (keepdim) return y;
  Shape shape = full;
  for (int d : dims) shape[d] = 1;
  return reshape(y, shape);
}

}  // namespace

Tensor norm(Arg x, Scalar order, Dims dim, bool keepdim) {
  check_defined("norm", x);
  need_float("norm", *x);
  const double p = order.to_double();
  if (std::isnan(p)) fail_at(x.loc(), "norm", "p is NaN; a number or ±inf is needed");
  const std::vector<int> dims = dim.wrapped("norm", x->dim());
  if (std::isinf(p))
    for (int d : dims)
      if (x->shape()[d] == 0) fail_at(x.loc(), "norm", "axis {} of {} has no element, so p = {} has no value", d, x->shape(), p);
  return record(kNorm, norm_value(*x, p, dims, keepdim), {x}, [&](Saver& s) {
    return [p, dims, keepdim, shape = x->shape(), x = s.input(0), y = s.output()](Tensor g, const Need&) -> Grads {
      const Tensor v = *x, length = with_axes(*y, shape, dims, keepdim), up = with_axes(g, shape, dims, keepdim);
      if (p == 0) return {mul(mul(v, 0), up)};
      if (p == 1) return {mul(up, sign(v))};
      if (std::isinf(p)) {
        const Tensor hit = to(eq(abs(v), length), v.dtype());
        const std::vector<i64> list(dims.begin(), dims.end());
        return {mul(mul(up, sign(v)), div(hit, list.empty() ? hit : sum(hit, list, true)))};
      }
      // Where the norm is 0 the quotient would be 0/0: a norm of 1 in its place, and the result is 0 at every order.
      const Tensor none = eq(length, 0), safe = masked_fill(length, none, 1);
      if (p == 2) return {mul(up, masked_fill(div(v, safe), none, 0))};
      const Tensor zero = eq(v, 0);
      const Tensor ratio = div(masked_fill(abs(v), zero, 1), safe);
      const Tensor slope = mul(sign(v), pow(ratio, p - 1));
      return {mul(up, masked_fill(masked_fill(slope, zero, 0), none, 0))};
    };
  }, [&](Attrs& at) { at("p", p); at("dim", std::vector<i64>(dims.begin(), dims.end())); at("keepdim", keepdim); });
}

Tensor vector_norm(Arg x, Scalar p, Dims dim, bool keepdim) { return norm(x, p, std::move(dim), keepdim); }

}  // namespace waymark
