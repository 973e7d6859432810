// Internal: the loop of all scans.
#pragma once

#include <algorithm>

#include "core/parallel/parallel.h"
#include "core/tensor/shape.h"

namespace waymark::ops {

// slice(at, step, n) for every slice along `dim` of a contiguous tensor of this shape: n elements, the first at `at`,
// the next `step` further; reverse: from the end. A 0-d tensor is one slice of one element. Parallel over slices.
template <class F> void scan_axis(const Shape& shape, int dim, bool reverse, F&& slice) {
  i64 outer = 1, n = 1, inner = 1;
  for (int i = 0; i < shape.size(); ++i) (i < dim ? outer : i > dim ? inner : n) *= shape[i];
  if (n == 0) return;
  const i64 step = reverse ? -inner : inner, first = reverse ? (n - 1) * inner : 0;
  parallel_for(outer * inner, std::max<i64>(1, kGrain / n), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) slice(r / inner * n * inner + r % inner + first, step, n);
  });
}

}  // namespace waymark::ops
