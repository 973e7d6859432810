// scatter_reduce (declared in index.h): sum, mean, prod, amax, amin of what arrives at each place.
#include "core/kernels/segments.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kScatterReduce{
    .name = "scatter_reduce",
    .family = "index",
    .doc = "sum, mean, product, maximum or minimum of the sources of each place",
    .schema =
        "scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str reduce, bool include_self=True) -> Tensor",
    .formula = "y[i, k] = reduce{src[i, j]: index[i, j] = k} (and x[i, k])  (dim = 1)",
    .rule =
        "sum: g;  mean: g/count;  prod: g times the product of the others;  amax, amin: g shared equally by the ties",
    .saves = {{"index", For{0, 3}}, {"input", For{0, 3}}, {"src", For{0, 3}}, {"output", For{0, 3}}},
    .kinks = "ties of amax and amin",
    .apply = [](OpCall& c) {
      c.result(scatter_reduce(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("src"), c.word("reduce"),
                              c.flag("include_self", true)));
    }};

namespace {

enum class Reduce { sum, mean, prod, amax, amin };

Reduce reduce_of(const Arg& x, std::string_view name) {
  if (name == "sum") return Reduce::sum;
  if (name == "mean") return Reduce::mean;
  if (name == "prod") return Reduce::prod;
  if (name == "amax") return Reduce::amax;
  if (name == "amin") return Reduce::amin;
  fail_at(x.loc(), "scatter_reduce", "reduce must be sum, mean, prod, amax or amin, got \"{}\"", name);
}

// How many values each place gets, of y's dtype; 1 where nothing arrives.
Tensor counts(const Tensor& like, const RowMap& places, bool self) {
  Tensor n = make_empty(like.shape(), like.dtype());
  fill_into(n, self ? 1 : 0);
  Tensor one = make_empty({1}, like.dtype());
  fill_into(one, 1);
  accumulate_value(n, places, expand_value(one, {places.rows()}));
  if (!self)
    visit_dtype(n.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* p = n.data<T>();
      for (i64 i = 0; i < n.numel(); ++i)
        if (p[i] == T(0)) p[i] = T(1);
    });
  return n;
}

template <class T> T times(T a, T b) {
  if constexpr (std::is_same_v<T, i64>)
    return static_cast<i64>(static_cast<u64>(a) * static_cast<u64>(b));
  else
    return static_cast<T>(a * b);
}

// One source after the other; y holds x.
template <class T> void combine(T* y, const RowMap& places, const T* src, Reduce reduce, bool self, i64 elements) {
  std::vector<bool> fresh(self ? 0 : static_cast<size_t>(elements), true);
  for (size_t e = 0; e < places.start.size(); ++e) {
    const auto at = static_cast<size_t>(places.start[e]);
    T& to = y[at];
    const T v = src[e];
    if (!self && fresh[at]) {
      fresh[at] = false;
      to = v;
    } else if (reduce == Reduce::prod) {
      to = times(to, v);
    } else if (v != v || (to == to && (reduce == Reduce::amax ? v > to : v < to))) {
      to = v;  // NaN wins
    }
  }
}

// True at places that get no source.
Tensor untouched(const Shape& shape, const RowMap& places) {
  Tensor out = make_empty(shape, kB8);
  fill_into(out, true);
  for (const i64 at : places.start) out.data<bool>()[at] = false;
  return out;
}

RowMap places_of(const Shape& shape, int d, const Tensor& index) {
  return element_rows(contiguous_strides(shape), d, index);
}

// Product of the others of the same group, without a division: exclusive products from both ends along the groups.
// values: 1-d; group[i] in [0, groups).
Tensor product_of_group(const Tensor& values, const std::vector<i64>& group, i64 groups) {
  const i64 n = values.numel();
  const std::vector<i64> sorted_places = kernels::group_by_destination(group, groups).source;
  Tensor order = make_empty({n}, kI64), back = make_empty({n}, kI64);
  Tensor inside_left = make_empty({n}, kB8),
         inside_right = make_empty({n}, kB8);  // not the first, not the last of a group
  std::copy(sorted_places.begin(), sorted_places.end(), order.data<i64>());
  const i64* o = order.data<i64>();
  for (i64 i = 0; i < n; ++i) {
    back.data<i64>()[o[i]] = i;
    const auto g = [&](i64 k) { return group[static_cast<size_t>(o[k])]; };
    inside_left.data<bool>()[i] = i > 0 && g(i - 1) == g(i);
    inside_right.data<bool>()[i] = i + 1 < n && g(i + 1) == g(i);
  }
  const Tensor sorted = index_select(values, 0, order);
  const auto from = [&](const Tensor& inside, i64 by, bool reverse) {
    const Tensor factor = where(inside, shifted(sorted, 0, by), 0);
    return linear_recurrence(factor, to(logical_not(inside), values.dtype()), 0, reverse);
  };
  return index_select(mul(from(inside_left, 1, false), from(inside_right, -1, true)), 0, back);
}

// read_part as a recorded op.
Tensor recorded_part(const Tensor& src, const Shape& shape) {
  if (src.dim() != shape.size()) return reshape(src, shape);
  Tensor y = src;
  for (int i = 0; i < shape.size(); ++i)
    if (y.shape()[i] != shape[i]) y = narrow(y, i, 0, shape[i]);
  return y;
}

struct GroupRule {
  int d;
  Reduce reduce;
  bool self;
  Shape shape, src_shape;
};

// dx and dsrc (of the part that is read).
std::pair<Tensor, Tensor> gradients(const GroupRule& r, const Tensor& g, const Tensor& x, const Tensor& src, const Tensor& y,
                                    const Tensor& index) {
  const RowMap places = places_of(r.shape, r.d, index);
  const auto only_untouched = [&](const Tensor& t) { return where(untouched(r.shape, places), t, 0); };
  const auto equal = [](const Tensor& a, const Tensor& b) {
    return logical_or(eq(a, b), logical_and(isnan(a), isnan(b)));
  };
  switch (r.reduce) {
    case Reduce::sum: return {r.self ? g : only_untouched(g), gather(g, r.d, index)};
    case Reduce::mean: {
      const Tensor q = div(g, counts(g, places, r.self));
      return {r.self ? q : only_untouched(q), gather(q, r.d, index)};
    }
    case Reduce::prod: {
      const i64 n = checked_numel("scatter_reduce", r.shape);
      std::vector<i64> group;
      if (r.self)
        for (i64 i = 0; i < n; ++i) group.push_back(i);
      group.insert(group.end(), places.start.begin(), places.start.end());
      const Tensor part = reshape(src, {-1});
      const Tensor others = product_of_group(r.self ? cat({reshape(x, {-1}), part}) : part, group, n);
      const Tensor of_src = reshape(narrow(others, 0, r.self ? n : 0, part.numel()), index.shape());
      return {r.self ? mul(g, reshape(narrow(others, 0, 0, n), r.shape)) : only_untouched(g),
              mul(gather(g, r.d, index), of_src)};
    }
    default: {
      const Tensor hit = to(equal(src, gather(y, r.d, index)), g.dtype());
      const Tensor own = r.self ? to(equal(x, y), g.dtype()) : to(untouched(r.shape, places), g.dtype());
      const Tensor q = div(g, scatter_add(own, r.d, index, hit));
      return {where(eq(own, 0), 0, q), where(eq(hit, 0), 0, gather(q, r.d, index))};
    }
  }
}

}  // namespace

Tensor scatter_reduce(Arg x, i64 dim, Arg index, Arg src, std::string_view reduce, bool include_self) {
  const int d = check_scatter("scatter_reduce", x, dim, index, src);
  const Reduce kind = reduce_of(x, reduce);
  if (x->dtype() == kB8) fail_at(x.loc(), "scatter_reduce", "b8 is not supported; convert with to(...)");
  const RowMap places = places_of(x->shape(), d, *index);
  const Tensor source = contiguous_value(read_part(*src, index->shape()));
  Tensor y = copy_value(*x);
  if (kind == Reduce::sum || kind == Reduce::mean) {
    if (!include_self)
      visit_dtype(y.dtype(), [&](auto zero) {
        using T = decltype(zero);
        for (const i64 at : places.start) y.data<T>()[at] = T(0);
      });
    accumulate_value(y, places, source);
    if (kind == Reduce::mean) {
      const Tensor n = counts(y, places, include_self);
      if (is_float(y.dtype()))
        binary_into("scatter_reduce", kernels::Binary::div, y, y, n);
      else
        for (i64 i = 0; i < y.numel(); ++i) {
          i64& v = y.data<i64>()[i];
          const i64 c = n.data<i64>()[i];
          v = v / c - (v % c < 0);  // rounds to -inf
        }
    }
  } else {
    visit_dtype(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, bool>)
        combine<T>(y.data<T>(), places, source.data<T>(), kind, include_self, y.numel());
    });
  }
  const bool values = kind != Reduce::sum && kind != Reduce::mean,
             extreme = kind == Reduce::amax || kind == Reduce::amin;
  return record(
      kScatterReduce, std::move(y), {x, index, src},
      [&](Saver& s) {
        return [rule = GroupRule{d, kind, include_self, x->shape(), src->shape()}, i = s.indices(*index),
                x = s.input(0, values && include_self), v = s.input(2, values),
                y = s.output(0, extreme)](Tensor g, const Need& need) -> Grads {
          const Tensor at = *i;
          const Tensor read = v ? recorded_part(*v, at.shape()) : Tensor();
          auto [dx, ds] = gradients(rule, g, x ? *x : Tensor(), read, y ? *y : Tensor(), at);
          return {need[0] ? dx : Tensor(), Tensor(), need[2] ? spread_part(ds, rule.src_shape) : Tensor()};
        };
      },
      [&](Attrs& at) {
        at("dim", i64{d});
        at("reduce", std::string(reduce));
        at("include_self", include_self);
      });
}

}  // namespace waymark
