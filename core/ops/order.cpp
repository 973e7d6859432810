// sort, argsort, topk, kthvalue, median, nanmedian, quantile.
#include "core/ops/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce_plan.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kSort{
    .name = "sort",
    .family = "order",
    .doc = "elements in order along an axis, stable; NaN is the largest",
    .schema = "sort(Tensor input, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    .formula = "y = x[indices]",
    .rule = "dx[indices] = g",
    .saves = {{"indices", For{0}}},
    .kinks = "ties",
    .apply = [](OpCall& c) {
      c.result(sort(c.tensor("input"), c.integer("dim", -1), c.flag("descending", false)));
    }};
extern constexpr OpInfo kArgsort{
    .name = "argsort",
    .family = "order",
    .doc = "indices that sort along an axis, stable",
    .schema = "argsort(Tensor input, int dim=-1, bool descending=False) -> Tensor",
    .formula = "y = indices of sort(x)",
    .rule = not_differentiable("argsort returns positions"),
    .apply = [](OpCall& c) {
      c.result(argsort(c.tensor("input"), c.integer("dim", -1), c.flag("descending", false)));
    }};
extern constexpr OpInfo kTopk{
    .name = "topk",
    .family = "order",
    .doc = "the k largest or smallest elements along an axis",
    .schema =
        "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    .formula = "y = x[indices]",
    .rule = "dx = 0 with g at the indices",
    .saves = {{"indices", For{0}}},
    .kinks = "ties",
    .apply = [](OpCall& c) {
      c.result(topk(c.tensor("input"), c.integer("k"), c.integer("dim", -1), c.flag("largest", true),
                           c.flag("sorted", true)));
    }};
extern constexpr OpInfo kKthvalue{
    .name = "kthvalue",
    .family = "order",
    .doc = "the k-th smallest element along an axis",
    .schema = "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .formula = "y = sort(x)[k − 1]",
    .rule = "dx = 0 with g at the index",
    .saves = {{"indices", For{0}}},
    .kinks = "ties",
    .apply = [](OpCall& c) {
      c.result(kthvalue(c.tensor("input"), c.integer("k"), c.integer("dim", -1), c.flag("keepdim", false)));
    }};
#define WAYMARK_MEDIAN(K, NAME, DOC)                                                                          \
  extern constexpr OpInfo K{                                                                                  \
      .name = #NAME,                                                                                          \
      .family = "order",                                                                                      \
      .doc = DOC,                                                                                             \
      .schema = #NAME "(Tensor input, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)", \
      .formula = "y = sort(x)[⌊(n − 1)/2⌋]",                                                                  \
      .rule = "with dim: g to the index;  full: g shared equally by the ties",                                \
      .saves = {{"indices", For{0}}, {"input", For{0}}, {"output", For{0}}},                                  \
      .kinks = "ties",                                                                                        \
      .apply = [](OpCall& c) {                                                                                \
        if (c.has("dim"))                                                                                     \
          c.result(NAME(c.tensor("input"), c.integer("dim"), c.flag("keepdim", false)));               \
        else                                                                                                  \
          c.result(NAME(c.tensor("input")));                                                                  \
      }};
WAYMARK_MEDIAN(kMedian, median, "lower middle element; NaN if there is one")
WAYMARK_MEDIAN(kNanmedian, nanmedian, "lower middle of the elements that are not NaN")
extern constexpr OpInfo kQuantile{
    .name = "quantile",
    .family = "order",
    .doc = "linear interpolation between two ranks",
    .schema = "quantile(Tensor input, float q, int? dim=None, bool keepdim=False) -> Tensor",
    .formula = "y = sort(x) at rank q·(n − 1)",
    .rule = "g to the two neighbours with their weights",
    .kinks = "ties",
    .apply = [](OpCall& c) {
      std::optional<i64> dim;
      if (c.has("dim")) dim = c.integer("dim");
      c.result(quantile(c.tensor("input"), c.number("q"), dim, c.flag("keepdim", false)));
    }};

namespace {

template <class T> bool is_nan(T v) { return v != v; }
// A strict total order of the elements of a row: by value, NaN last (first if descending), then by index.
template <class T> struct Before {
  const T* row;
  bool descending;
  bool operator()(i64 a, i64 b) const {
    const T x = row[a], y = row[b];
    if (is_nan(x) || is_nan(y)) {
      if (is_nan(x) && is_nan(y)) return a < b;
      return is_nan(x) == descending;
    }
    if (x != y) return descending ? x > y : x < y;
    return a < b;
  }
};

// For every row along axis d: choose(row, n, index) orders index (0 .. n−1 at first), and its first `keep` are the
// result.
template <class Choose> ValuesIndices by_rank(const Tensor& x, int d, i64 keep, Choose choose) {
  const Tensor rows = axis_last(x, d);
  const RowCount size = row_count(rows);
  Shape shape = rows.shape();
  shape[shape.size() - 1] = keep;
  Tensor values = make_empty(shape, x.dtype()), indices = make_empty(shape, kI64);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = rows.data<T>();
    T* to = values.data<T>();
    i64* at = indices.data<i64>();
    parallel_for(keep > 0 ? size.rows : 0, std::max<i64>(1, kGrain / (8 * std::max<i64>(size.n, 1))),
                 [&](i64 begin, i64 end) {
                   std::vector<i64> index(static_cast<size_t>(size.n));
                   for (i64 r = begin; r < end; ++r) {
                     const T* row = from + r * size.n;
                     std::iota(index.begin(), index.end(), i64{0});
                     choose(row, size.n, index);
                     for (i64 k = 0; k < keep; ++k) {
                       at[r * keep + k] = index[static_cast<size_t>(k)];
                       to[r * keep + k] = row[index[static_cast<size_t>(k)]];
                     }
                   }
                 });
  });
  return {values, indices};
}

// The result of by_rank in the axes of x, keep elements on axis d.
ValuesIndices placed(const ValuesIndices& r, const Tensor& x, int d, i64 keep) {
  Shape shape = x.shape();
  if (x.dim()) shape[d] = keep;
  if (x.dim() == 0 && keep == 0) return {alias(r.values, {0}, {1}, 0), alias(r.indices, {0}, {1}, 0)};
  return {axis_back(r.values, d, shape), axis_back(r.indices, d, shape)};
}
// One element a row: without the axis, or with it as an extent of 1.
ValuesIndices single(const ValuesIndices& r, const Tensor& x, int d, bool keepdim) {
  const ValuesIndices kept = placed(r, x, d, 1);
  if (keepdim || x.dim() == 0) return kept;
  Shape shape = x.shape();
  shape.erase(d);
  const auto drop = [&](const Tensor& t) { return alias(t, shape, contiguous_strides(shape), t.offset()); };
  return {drop(contiguous_value(kept.values)), drop(contiguous_value(kept.indices))};
}

template <class AttrFn>
ValuesIndices record_pair(const OpInfo& op, const Arg& x, const ValuesIndices& r, int d, bool axis_kept, AttrFn attributes) {
  const Tensor outputs[] = {r.values, r.indices};
  record_many(
      op, outputs, {x},
      [&](Saver& s) {
        return [d, axis_kept, shape = x->shape(), i = s.indices(r.indices)](std::span<Tensor> g, const Need&) -> Grads {
          return {route(g[0], *i, shape, d, axis_kept)};
        };
      },
      [&](Attrs& at) {
        at("dim", i64{d});
        attributes(at);
      });
  return r;
}

ValuesIndices sorted_pair(const Tensor& x, int d, bool descending) {
  const i64 n = x.dim() ? x.shape()[d] : 1;
  return placed(by_rank(x, d, n,
                        [&](const auto* row, i64, std::vector<i64>& index) {
                          std::sort(index.begin(), index.end(), Before<std::decay_t<decltype(*row)>>{row, descending});
                        }),
                x, d, n);
}

}  // namespace

ValuesIndices sort(Arg x, i64 dim, bool descending) {
  check_defined("sort", x);
  const int d = wrap_dim("sort", dim, x->dim());
  return record_pair(kSort, x, sorted_pair(*x, d, descending), d, true, [&](Attrs& at) { at("descending", descending); });
}

Tensor argsort(Arg x, i64 dim, bool descending) {
  check_defined("argsort", x);
  const int d = wrap_dim("argsort", dim, x->dim());
  return record_nondiff(kArgsort, sorted_pair(*x, d, descending).indices, {x}, [&](Attrs& at) {
    at("dim", i64{d});
    at("descending", descending);
  });
}

ValuesIndices topk(Arg x, i64 k, i64 dim, bool largest, bool /*sorted*/) {
  check_defined("topk", x);
  const int d = wrap_dim("topk", dim, x->dim());
  const i64 n = x->dim() ? x->shape()[d] : 1;
  if (k < 0 || k > n) fail_at(x.loc(), "topk", "k {} is outside [0, {}], the extent of axis {}", k, n, d);
  const ValuesIndices r = placed(by_rank(*x, d, k,
                                         [&](const auto* row, i64, std::vector<i64>& index) {
                                           std::partial_sort(index.begin(), index.begin() + k, index.end(),
                                                             Before<std::decay_t<decltype(*row)>>{row, largest});
                                         }),
                                 *x, d, k);
  return record_pair(kTopk, x, r, d, true, [&](Attrs& at) {
    at("k", k);
    at("largest", largest);
  });
}

namespace {

// The element of rank(row, n) (from 0) of each row, first in the result.
template <class Rank> ValuesIndices of_rank(const Tensor& x, int d, Rank rank) {
  return by_rank(x, d, 1, [&](const auto* row, i64 n, std::vector<i64>& index) {
    const i64 k = rank(row, n);
    std::nth_element(index.begin(), index.begin() + k, index.end(), Before<std::decay_t<decltype(*row)>>{row, false});
    std::swap(index[0], index[static_cast<size_t>(k)]);
  });
}

// Rank of the median of a row: the first NaN if there is one and it counts.
struct MedianRank {
  bool skip_nan;
  template <class T> i64 operator()(const T* row, i64 n) const {
    i64 missing = 0;
    for (i64 i = 0; i < n; ++i) missing += is_nan(row[i]);
    const i64 numbers = n - missing;
    if (missing > 0 && !skip_nan) return numbers;
    return numbers > 0 ? (numbers - 1) / 2 : 0;
  }
};

ValuesIndices median_along(const OpInfo& op, const Arg& x, i64 dim, bool keepdim, bool skip_nan) {
  check_defined(op.name, x);
  const int d = wrap_dim(op.name, dim, x->dim());
  if (x->dim() && x->shape()[d] == 0)
    fail_at(x.loc(), op.name, "axis {} of {} is empty, so there is nothing to choose from", d, x->shape());
  return record_pair(op, x, single(of_rank(*x, d, MedianRank{skip_nan}), *x, d, keepdim), d, keepdim,
                     [&](Attrs& at) { at("keepdim", keepdim); });
}

Tensor full_median(const OpInfo& op, const Arg& x, bool skip_nan) {
  check_defined(op.name, x);
  if (x->numel() == 0 && !is_float(x->dtype()))
    fail_at(x.loc(), op.name, "the tensor {} is empty and has no NaN to return", x->shape());
  Tensor y = make_empty({}, x->dtype());
  if (x->numel() == 0) {
    fill_into(y, std::numeric_limits<double>::quiet_NaN());
  } else {
    const Tensor all = contiguous_value(*x), flat = alias(all, {all.numel()}, {1}, all.offset());
    copy_into(y, alias(of_rank(flat, 0, MedianRank{skip_nan}).values, {}, {}, 0));
  }
  std::vector<i64> dims(static_cast<size_t>(x->dim()));
  std::iota(dims.begin(), dims.end(), i64{0});
  return record(op, std::move(y), {x}, [&](Saver& s) {
    return [dims, x = s.input(0), y = s.output()](Tensor g, const Need&) -> Grads {
      return {share_ties(g, *x, *y, dims, Shape(static_cast<int>(dims.size()), 1))};
    };
  });
}

}  // namespace

ValuesIndices kthvalue(Arg x, i64 k, i64 dim, bool keepdim) {
  check_defined("kthvalue", x);
  const int d = wrap_dim("kthvalue", dim, x->dim());
  const i64 n = x->dim() ? x->shape()[d] : 1;
  if (k < 1 || k > n) fail_at(x.loc(), "kthvalue", "k {} is outside [1, {}], the extent of axis {}", k, n, d);
  return record_pair(kKthvalue, x, single(of_rank(*x, d, [&](const auto*, i64) { return k - 1; }), *x, d, keepdim), d,
                     keepdim, [&](Attrs& at) {
                       at("k", k);
                       at("keepdim", keepdim);
                     });
}

Tensor median(Arg x) { return full_median(kMedian, x, false); }
Tensor nanmedian(Arg x) { return full_median(kNanmedian, x, true); }
ValuesIndices median(Arg x, i64 dim, bool keepdim) { return median_along(kMedian, x, dim, keepdim, false); }
ValuesIndices nanmedian(Arg x, i64 dim, bool keepdim) { return median_along(kNanmedian, x, dim, keepdim, true); }

namespace {

// Rank q of values sorted along d, which stays with extent 1.
Tensor at_rank(const Tensor& sorted, int d, double q) {
  const i64 n = sorted.shape()[d];
  const double rank = q * static_cast<double>(n - 1);
  const i64 low = static_cast<i64>(std::floor(rank)), high = std::min(low + 1, n - 1);
  const double weight = rank - static_cast<double>(low);
  const Tensor a = narrow(sorted, d, low, 1);
  const Tensor y = weight == 0 ? a : add(a, mul(sub(narrow(sorted, d, high, 1), a), weight));
  const Tensor last = narrow(sorted, d, n - 1, 1).detach();  // NaN is the largest
  return where(isnan(last), last, y);
}

Tensor quantiles(const Arg& x, const std::vector<double>& q, std::optional<i64> dim, bool keepdim, bool several) {
  check_defined("quantile", x);
  need_float("quantile", *x);
  for (const double v : q)
    if (!(v >= 0 && v <= 1)) fail_at(x.loc(), "quantile", "q must lie in [0, 1], got {}", v);
  const bool flat = !dim || x->dim() == 0;
  if (dim) static_cast<void>(wrap_dim("quantile", *dim, x->dim()));
  const int d = flat ? 0 : wrap_dim("quantile", *dim, x->dim());
  const Tensor line = flat ? reshape(x, {x->numel()}) : *x;
  if (line.shape()[d] == 0)
    fail_at(x.loc(), "quantile", "axis {} of {} is empty, so there is nothing to choose from", d, x->shape());
  const Tensor sorted = sort(Arg(line, x.loc()), d).values;
  std::vector<Tensor> out;
  for (const double v : q) {
    const Tensor y = at_rank(sorted, d, v);
    if (!keepdim)
      out.push_back(squeeze(y, d));
    else
      out.push_back(flat ? reshape(y, Shape(x->dim(), 1)) : y);
  }
  return several ? stack(out) : out[0];
}

}  // namespace

Tensor quantile(Arg x, double q, std::optional<i64> dim, bool keepdim) {
  return quantiles(x, {q}, dim, keepdim, false);
}
Tensor quantile(Arg x, const std::vector<double>& q, std::optional<i64> dim, bool keepdim) {
  if (q.empty()) fail_at(x.loc(), "quantile", "needs at least one q");
  return quantiles(x, q, dim, keepdim, true);
}

}  // namespace waymark
