#include "core/ops/reduce_plan.h"

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark::ops {

ReducePlan plan_reduce(std::string_view op, const Tensor& x, const Dims& dim, bool keepdim) {
  ReducePlan p;
  p.keepdim = keepdim;
  p.dims = dim.wrapped(op, x.dim());
  p.kept = x.shape();
  std::vector<bool> reduced(static_cast<size_t>(x.dim()), false);
  for (const int d : p.dims) {
    p.kept[d] = 1;
    reduced[static_cast<size_t>(d)] = true;
  }
  for (int i = 0; i < x.dim(); ++i)
    if (!reduced[static_cast<size_t>(i)]) p.out.push_back(x.shape()[i]);
  if (keepdim) p.out = p.kept;
  // One run of neighbouring axes is reduced where it is; anything else is permuted, reduced axes last.
  const bool run = p.dims.empty() || p.dims.back() - p.dims.front() + 1 == static_cast<int>(p.dims.size());
  if (run) {
    const int first = p.dims.empty() ? x.dim() : p.dims.front(), last = p.dims.empty() ? x.dim() : p.dims.back();
    for (int i = 0; i < x.dim(); ++i) (i < first ? p.outer : i > last ? p.inner : p.n) *= x.shape()[i];
    p.source = contiguous_value(x);
    return p;
  }
  Shape shape, strides;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < x.dim(); ++i)
      if (reduced[static_cast<size_t>(i)] == (pass == 1)) {
        shape.push_back(x.shape()[i]);
        strides.push_back(x.strides()[i]);
        (pass ? p.n : p.outer) *= x.shape()[i];
      }
  p.source = contiguous_value(alias(x, shape, strides, x.offset()));
  return p;
}

ReducePlan plan_nonempty(std::string_view op, const Arg& x, const Dims& dim, bool keepdim) {
  check_defined(op, x);
  for (const int d : dim.wrapped(op, x->dim()))
    if (x->shape()[d] == 0)
      fail_at(x.loc(), op, "axis {} of {} is empty, so there is nothing to choose from", d, x->shape());
  return plan_reduce(op, *x, dim, keepdim);
}

Tensor with_axes(Arg y, const Shape& kept) { return y->shape() == kept ? *y : reshape(y, kept); }

Tensor same_value(const Tensor& x, const Tensor& y) {
  const NoGrad off;
  return is_float(x.dtype()) ? logical_or(eq(x, y), logical_and(isnan(x), isnan(y))) : eq(x, y);
}

Tensor share_ties(const Tensor& g, const Tensor& x, const Tensor& y, const std::vector<i64>& dims, const Shape& kept) {
  const Tensor hit = same_value(x, with_axes(y, kept));
  const Tensor count = to(dims.empty() ? hit : sum(hit, dims, true), g.dtype());
  return where(hit, div(with_axes(g, kept), count), 0);
}

Tensor route(Arg g, const Tensor& indices, const Shape& shape, int d, bool keepdim) {
  const bool lost = !keepdim && !shape.empty();
  return scatter(zeros(shape, g->dtype()), d, lost ? unsqueeze(indices, d) : indices, lost ? unsqueeze(g, d) : *g);
}

}  // namespace waymark::ops
