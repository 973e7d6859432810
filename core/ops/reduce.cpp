#include "core/ops/reduce.h"

#include <algorithm>

#include "core/kernels/reduce.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce_plan.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace ops {

Tensor sum_value(const Tensor& x, const std::vector<int>& dims, bool keepdim) {
  const DType t = is_float(x.dtype()) ? x.dtype() : kI64;
  if (dims.empty()) {  // 0-d, or nothing to sum over
    Tensor y = make_empty(x.shape(), t);
    copy_into(y, x);
    return y;
  }
  const ReducePlan p = plan_reduce("sum", x, Dims(std::vector<i64>(dims.begin(), dims.end())), keepdim);
  Tensor y = make_empty(p.out, t);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (y.numel() > 0) kernels::sum_axis<T>(p.source.data<T>(), p.outer, p.n, p.inner, y.data<kernels::SumOf<T>>());
  });
  return y;
}

}  // namespace ops

extern constexpr OpInfo kSum{
    .name = "sum", .family = "reduce", .doc = "sum over some axes",
    .schema = "sum(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", .formula = "y = Σ x",
    .rule = "dx = g, expanded", .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(sum(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};
extern constexpr OpInfo kMean{
    .name = "mean", .family = "reduce", .doc = "mean over some axes; NaN of nothing",
    .schema = "mean(Tensor input, int[]? dim=None, bool keepdim=False) -> Tensor", .formula = "y = Σ x / n",
    .rule = "dx = g/n, expanded", .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(mean(c.tensor("input"), c.dims("dim"), c.flag("keepdim", false))); }};
extern constexpr OpInfo kExpandReduced{
    .name = "expand_reduced", .family = "reduce", .doc = "a reduced gradient, spread over the axes that were reduced",
    .schema = "expand_reduced(Tensor input, int[] size, int[] dim, bool keepdim) -> Tensor",
    .formula = "y = x, repeated along dim", .rule = "dx = Σ g over dim", .view = true};

// The adjoint of a reduction: a stride-0 view.
Tensor expand_reduced(Arg g, const Shape& shape, const std::vector<int>& dims, bool keepdim) {
  Shape kept = shape, strides(shape.size());
  for (int d : dims) kept[d] = 1;
  Shape reduced_strides = g->strides();
  int at = 0;
  for (int i = 0; i < shape.size(); ++i) {
    const bool gone = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (!gone) strides[i] = g->shape()[at] == 1 ? 0 : reduced_strides[at];
    if (!gone || keepdim) ++at;
  }
  Tensor y = alias(*g, shape, strides, g->offset());
  return record_view(kExpandReduced, std::move(y), g, [&](Saver&) {
    return [dims, keepdim](Tensor gg, const Need&) -> Grads {
      std::vector<i64> list(dims.begin(), dims.end());
      return {list.empty() ? gg : sum(gg, list, keepdim)};
    };
  });
}

Tensor sum(Arg x, Dims dim, bool keepdim) {
  check_defined("sum", x);
  const std::vector<int> dims = dim.wrapped("sum", x->dim());
  return record(kSum, sum_value(*x, dims, keepdim), {x}, [&](Saver& s) {
    return [shape = s.shape(0), dims, keepdim](Tensor g, const Need&) -> Grads {
      return {expand_reduced(g, shape, dims, keepdim)};
    };
  }, [&](Attrs& at) { at("dim", std::vector<i64>(dims.begin(), dims.end())); at("keepdim", keepdim); });
}

Tensor mean(Arg x, Dims dim, bool keepdim) {
  check_defined("mean", x);
  need_float("mean", *x);
  const std::vector<int> dims = dim.wrapped("mean", x->dim());
  i64 n = 1;
  for (int d : dims) n *= x->shape()[d];
  Tensor y = binary_value("mean", kernels::Binary::div, Arg(sum_value(*x, dims, keepdim)), static_cast<double>(n), x->dtype(), true);
  return record(kMean, std::move(y), {x}, [&](Saver& s) {
    return [shape = s.shape(0), dims, keepdim, n](Tensor g, const Need&) -> Grads {
      return {expand_reduced(div(g, static_cast<double>(n)), shape, dims, keepdim)};
    };
  }, [&](Attrs& at) { at("dim", std::vector<i64>(dims.begin(), dims.end())); at("keepdim", keepdim); });
}

extern constexpr OpInfo kSumToSize{
    .name = "sum_to_size", .family = "reduce", .doc = "sum down to a shape that broadcasts to the input's",
    .schema = "sum_to_size(Tensor input, int[] size) -> Tensor", .formula = "y = Σ x over the axes that broadcasting added",
    .rule = "dx = g, expanded", .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(sum_to_size(c.tensor("input"), Shape(c.list("size")))); }};

Tensor sum_to_size(Arg x, const Shape& shape) {
  check_defined("sum_to_size", x);
  if (x->shape() == shape) return *x;
  if (!broadcasts_to(shape, x->shape()))
    fail_at(x.loc(), "sum_to_size", "{} does not broadcast to the input {}", shape, x->shape());
  const int lead = x->dim() - shape.size();
  std::vector<int> dims;
  for (int i = 0; i < x->dim(); ++i)
    if (i < lead || (shape[i - lead] == 1 && x->shape()[i] != 1)) dims.push_back(i);
  const Tensor kept = sum_value(*x, dims, true);
  Tensor y = alias(kept, shape, contiguous_strides(shape), kept.offset());
  return record(kSumToSize, std::move(y), {x}, [&](Saver& s) {
    return [full = s.shape(0)](Tensor g, const Need&) -> Grads { return {expand(g, full)}; };
  }, [&](Attrs& at) { at("size", shape.vec()); });
}

}  // namespace waymark
