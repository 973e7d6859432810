// unique, searchsorted, bucketize (declared in order.h).
#include <algorithm>
#include <numeric>

#include "core/ops/elementwise.h"
#include "core/ops/order.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kUnique{.name = "unique",
                                .family = "order",
                                .doc = "the different elements, ascending; NaN differs from itself",
                                .schema =
                                    "unique(Tensor input, bool sorted=True, bool return_inverse=False, bool "
                                    "return_counts=False) -> (Tensor output, Tensor inverse_indices, Tensor counts)",
                                .formula = "y = {x}",
                                .rule = not_differentiable("which elements are equal is piecewise constant"),
                                .apply = [](OpCall& c) {
                                  const Unique u =
                                      unique(c.tensor("input"), c.flag("sorted", true), c.flag("return_inverse", false),
                                             c.flag("return_counts", false));
                                  c.result("output", u.output);
                                  if (u.inverse_indices.defined()) c.result("inverse_indices", u.inverse_indices);
                                  if (u.counts.defined()) c.result("counts", u.counts);
                                }};
extern constexpr OpInfo kSearchsorted{
    .name = "searchsorted",
    .family = "order",
    .doc = "where values belong in an ascending sequence",
    .schema = "searchsorted(Tensor sorted_sequence, Tensor input, *, bool right=False) -> Tensor",
    .formula = "b[y − 1] < x ≤ b[y]",
    .rule = not_differentiable("searchsorted returns positions"),
    .apply = [](OpCall& c) {
      c.result(searchsorted(c.tensor("sorted_sequence"), c.tensor("input"), c.flag("right", false)));
    }};
extern constexpr OpInfo kBucketize{
    .name = "bucketize",
    .family = "order",
    .doc = "which interval between boundaries each value lies in",
    .schema = "bucketize(Tensor input, Tensor boundaries, *, bool right=False) -> Tensor",
    .formula = "b[y − 1] < x ≤ b[y]",
    .rule = not_differentiable("bucketize returns positions"),
    .apply = [](OpCall& c) { c.result(bucketize(c.tensor("input"), c.tensor("boundaries"), c.flag("right", false))); }};

Unique unique(Arg x, bool /*sorted*/, bool return_inverse, bool return_counts) {
  check_defined("unique", x);
  const Tensor t = contiguous_value(*x);
  const i64 n = t.numel();
  const Tensor flat = alias(t, {n}, {1}, t.offset());
  Unique out;
  const NoGrad off;
  const Tensor order = argsort(flat);
  const i64* at = order.data<i64>();
  visit_dtype(x->dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = flat.data<T>();
    std::vector<i64> first;  // places in `order` where a new value begins
    for (i64 i = 0; i < n; ++i)
      if (i == 0 || p[at[i]] != p[at[i - 1]]) first.push_back(i);
    const i64 kinds = static_cast<i64>(first.size());
    out.output = make_empty({kinds}, x->dtype());
    if (return_inverse) out.inverse_indices = make_empty(x->shape(), kI64);
    if (return_counts) out.counts = make_empty({kinds}, kI64);
    for (i64 k = 0; k < kinds; ++k) {
      const i64 begin = first[static_cast<size_t>(k)], end = k + 1 < kinds ? first[static_cast<size_t>(k + 1)] : n;
      out.output.data<T>()[k] = p[at[begin]];
      if (return_counts) out.counts.data<i64>()[k] = end - begin;
      if (return_inverse)
        for (i64 i = begin; i < end; ++i) out.inverse_indices.data<i64>()[at[i]] = k;
    }
  });
  return {record_nondiff(kUnique, out.output, {x}), out.inverse_indices, out.counts};
}

namespace {

// Comparisons with NaN are false, so NaN belongs behind everything, as in PyTorch.
template <class T> i64 place(const T* b, i64 n, T v, bool right) {
  i64 low = 0, high = n;
  while (low < high) {
    const i64 middle = low + (high - low) / 2;
    if (right ? b[middle] > v : b[middle] >= v)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// Row r of the sequence serves row r of x; a 1-d sequence serves all.
Tensor found_places(const Tensor& sequence, const Tensor& x, bool right) {
  const Tensor list[] = {sequence, x};
  // b8 orders as 0 < 1; 0-d tensors count as much as others here.
  DType t = promote(std::span<const Tensor>(list));
  if (t == kB8) t = kI64;
  const Tensor b = contiguous_value(cast_value(sequence, t)), v = contiguous_value(cast_value(x, t));
  const i64 n = b.shape().back(), width = x.dim() && sequence.dim() > 1 ? x.shape().back() : x.numel();
  Tensor y = make_empty(x.shape(), kI64);
  visit_dtype(t, [&](auto zero) {
    using T = decltype(zero);
    parallel_for(y.numel(), kGrain / 8, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i)
        y.data<i64>()[i] = place<T>(b.data<T>() + (sequence.dim() > 1 ? i / width * n : 0), n, v.data<T>()[i], right);
    });
  });
  return y;
}

}  // namespace

Tensor searchsorted(Arg sorted_sequence, Arg x, bool right) {
  check_defined("searchsorted", sorted_sequence);
  check_defined("searchsorted", x);
  const Shape &b = sorted_sequence->shape(), &v = x->shape();
  bool fits = b.size() == 1 || (b.size() > 1 && b.size() == v.size());
  for (int i = 0; fits && b.size() > 1 && i + 1 < b.size(); ++i) fits = b[i] == v[i];
  if (!fits)
    fail_at(x.loc(), "searchsorted", "the sequence {} must have 1 axis, or all axes of the values {} but the last one",
            b, v);
  return record_nondiff(kSearchsorted, found_places(*sorted_sequence, *x, right), {sorted_sequence, x},
                        [&](Attrs& at) { at("right", right); });
}

Tensor bucketize(Arg x, Arg boundaries, bool right) {
  check_defined("bucketize", x);
  check_defined("bucketize", boundaries);
  if (boundaries->dim() != 1)
    fail_at(x.loc(), "bucketize", "the boundaries must have 1 axis, got {}", boundaries->shape());
  return record_nondiff(kBucketize, found_places(*boundaries, *x, right), {x, boundaries},
                        [&](Attrs& at) { at("right", right); });
}

}  // namespace waymark
