// Internal: a reduction over some axes as a kernel wants it: dense memory [outer, n, inner], reduced over n.
#pragma once

#include "core/autograd/record.h"

namespace waymark::ops {

struct ReducePlan {
  std::vector<int> dims;  // wrapped, ascending
  Shape out, kept;        // shape of the result; the same with reduced axes as extents of 1
  i64 outer = 1, n = 1, inner = 1;
  Tensor source;  // contiguous, with the reduced axes together
  bool keepdim = false;
  std::vector<i64> dim_list() const { return {dims.begin(), dims.end()}; }
};
ReducePlan plan_reduce(std::string_view op, const Tensor& x, const Dims& dim, bool keepdim);
// The same, and an Error naming the axis if there is nothing to take the largest (smallest, middle) of.
ReducePlan plan_nonempty(std::string_view op, const Arg& x, const Dims& dim, bool keepdim);

// A reduced tensor with its axes back as extents of 1: a recorded view.
Tensor with_axes(Arg y, const Shape& kept);
// b8: x equals y where both may be NaN; y of extent 1 on the reduced axes.
Tensor same_value(const Tensor& x, const Tensor& y);
// g shared equally by the entries of x that equal y, a full reduction's rule for ties. All in the shape of x.
Tensor share_ties(const Tensor& g, const Tensor& x, const Tensor& y, const std::vector<i64>& dims, const Shape& kept);
// g of values picked at `indices` on axis d (of a tensor of this shape): 0 elsewhere.
Tensor route(Arg g, const Tensor& indices, const Shape& shape, int d, bool keepdim);

}  // namespace waymark::ops
