// gather, take, scatter, scatter_add: one index for each element (declared in index.h).
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/rearrange.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kGather{
    .name = "gather",
    .family = "index",
    .doc = "one element along an axis for each index",
    .schema = "gather(Tensor input, int dim, Tensor index) -> Tensor",
    .formula = "y[i, j] = x[i, index[i, j]]  (dim = 1)",
    .rule = "dx = 0 with g added at the indices",
    .saves = {{"index", For{0}}, {"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(gather(c.tensor("input"), c.integer("dim"), c.tensor("index"))); }};
extern constexpr OpInfo kTake{.name = "take",
                              .family = "index",
                              .doc = "elements of the flattened tensor",
                              .schema = "take(Tensor input, Tensor index) -> Tensor",
                              .formula = "y[i] = x.flatten()[index[i]]",
                              .rule = "dx = 0 with g added at the indices",
                              .saves = {{"index", For{0}}, {"shape", For{0}}},
                              .apply = [](OpCall& c) { c.result(take(c.tensor("input"), c.tensor("index"))); }};
extern constexpr OpInfo kTakeAlongDim{.name = "take_along_dim",
                                      .family = "index",
                                      .doc = "gather after broadcasting the other axes",
                                      .schema = "take_along_dim(Tensor input, Tensor indices, int? dim=None) -> Tensor",
                                      .formula = "y[i, j] = x[i, indices[i, j]]  (dim = 1)",
                                      .rule = "as gather",
                                      .apply = [](OpCall& c) {
                                        std::optional<i64> dim;
                                        if (c.has("dim")) dim = c.integer("dim");
                                        c.result(take_along_dim(c.tensor("input"), c.tensor("indices"), dim));
                                      }};
extern constexpr OpInfo kScatter{
    .name = "scatter",
    .family = "index",
    .doc = "elements written along an axis; the last source for a place wins",
    .schema = "scatter(Tensor input, int dim, Tensor index, Tensor? src=None, *, Scalar? value=None) -> Tensor",
    .formula = "y = x, y[i, index[i, j]] ← src[i, j]  (dim = 1)",
    .rule = "dx = g with 0 at the places,  dsrc = g at the places, 0 for losers",
    .saves = {{"index", For{0, 2}}, {"shape", For{2}}},
    .apply = [](OpCall& c) {
      if (c.is_tensor("src"))
        c.result(scatter(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("src")));
      else
        c.result(scatter(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.scalar("value")));
    }};
extern constexpr OpInfo kScatterAdd{
    .name = "scatter_add",
    .family = "index",
    .doc = "elements added along an axis",
    .schema = "scatter_add(Tensor input, int dim, Tensor index, Tensor src) -> Tensor",
    .formula = "y = x, y[i, index[i, j]] += src[i, j]  (dim = 1)",
    .rule = "dx = g,  dsrc = g at the places",
    .saves = {{"index", For{2}}, {"shape", For{2}}},
    .apply = [](OpCall& c) {
      c.result(scatter_add(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("src")));
    }};
extern constexpr OpInfo kScatterInplace{
    .name = "scatter_",
    .family = "index",
    .doc = "in-place form of scatter",
    .schema = "scatter_(Tensor(a!) input, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .formula = "x[i, index[i, j]] ← src[i, j]  (dim = 1)",
    .rule = "as scatter",
    .saves = {{"index", For{0, 2}}, {"shape", For{2}}}};
extern constexpr OpInfo kScatterAddInplace{
    .name = "scatter_add_",
    .family = "index",
    .doc = "in-place form of scatter_add",
    .schema = "scatter_add_(Tensor(a!) input, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .formula = "x[i, index[i, j]] += src[i, j]  (dim = 1)",
    .rule = "as scatter_add",
    .saves = {{"index", For{2}}, {"shape", For{2}}}};

namespace ops {

int check_element_index(std::string_view op, const Arg& x, i64 dim, const Arg& index) {
  check_defined(op, x);
  check_defined(op, index);
  const int d = wrap_dim(op, dim, x->dim());
  if (std::max(index->dim(), 1) != std::max(x->dim(), 1))
    fail_at(x.loc(), op, "the index {} must have as many axes as the tensor {}", index->shape(), x->shape());
  if (index->dim() > 0 && x->dim() > 0)
    for (int i = 0; i < x->dim(); ++i)
      if (i != d && index->shape()[i] > x->shape()[i])
        fail_at(x.loc(), op, "the index {} is larger than the tensor {} on axis {}", index->shape(), x->shape(), i);
  check_indices(op, Arg(*index, x.loc()), x->dim() ? x->shape()[d] : 1, d, false);
  return d;
}

int check_scatter(std::string_view op, const Arg& x, i64 dim, const Arg& index, const Arg& src) {
  const int d = check_element_index(op, x, dim, index);
  check_same_dtype(op, x, src);
  if (std::max(index->dim(), 1) != std::max(src->dim(), 1))
    fail_at(x.loc(), op, "the index {} must have as many axes as the source {}", index->shape(), src->shape());
  for (int i = 0; i < index->dim(); ++i)
    if (index->shape()[i] > (src->dim() ? src->shape()[i] : 1))
      fail_at(x.loc(), op, "the index {} is larger than the source {} on axis {}", index->shape(), src->shape(), i);
  return d;
}

Tensor read_part(const Tensor& src, const Shape& shape) {
  return src.dim() == shape.size() ? alias(src, shape, src.strides(), src.offset())
                                   : alias(src, shape, contiguous_strides(shape), src.offset());
}

Tensor spread_part(Arg g, const Shape& shape) {
  if (g->shape() == shape) return *g;
  if (g->dim() != shape.size()) return reshape(g, shape);
  std::vector<i64> pads;
  for (int i = shape.size() - 1; i >= 0; --i) {
    pads.push_back(0);
    pads.push_back(shape[i] - g->shape()[i]);
  }
  return pad(g, pads);
}

}  // namespace ops

Tensor gather(Arg x, i64 dim, Arg index) {
  const int d = check_element_index("gather", x, dim, index);
  return record(
      kGather, gather_value(*x, element_rows(x->strides(), d, *index), index->shape()), {x, index},
      [&](Saver& s) {
        return [d, i = s.indices(*index), shape = s.shape(0)](Tensor g, const Need&) -> Grads {
          return {scatter_add(zeros(shape, g.dtype()), d, *i, g), Tensor()};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}

Tensor take(Arg x, Arg index) {
  check_defined("take", x);
  check_indices("take", Arg(*index, x.loc()), x->numel(), -1, true);
  // Positions in memory order need a row-major x; a copy of the positions that counts from the front is what is kept.
  Tensor place = make_empty({index->numel()}, kI64);
  const Tensor given = contiguous_value(*index);
  for (i64 i = 0; i < place.numel(); ++i) {
    const i64 v = given.data<i64>()[i];
    place.data<i64>()[i] = v < 0 ? v + x->numel() : v;
  }
  const Tensor flat = contiguous_value(*x);
  RowMap map;
  map.start.assign(place.data<i64>(), place.data<i64>() + place.numel());
  return record(kTake, gather_value(flat, map, index->shape()), {x, index}, [&](Saver& s) {
    return [i = s.indices(place), shape = s.shape(0)](Tensor g, const Need&) -> Grads {
      return {reshape(index_add(zeros({checked_numel("take", shape)}, g.dtype()), 0, *i, reshape(g, {-1})), shape),
              Tensor()};
    };
  });
}

Tensor take_along_dim(Arg x, Arg indices, std::optional<i64> dim) {
  check_defined("take_along_dim", x);
  check_defined("take_along_dim", indices);
  if (!dim) return gather(reshape(x, {x->numel()}), 0, reshape(indices, {indices->numel()}));
  if (x->dim() != indices->dim())
    fail_at(x.loc(), "take_along_dim", "the indices {} must have as many axes as the tensor {}", indices->shape(),
            x->shape());
  const int d = wrap_dim("take_along_dim", *dim, x->dim());
  Shape a = x->shape(), b = indices->shape();
  if (x->dim()) a[d] = b[d] = 1;
  Shape both = broadcast_shapes("take_along_dim", a, b);
  Shape wide = both;
  if (x->dim()) {
    wide[d] = x->shape()[d];
    both[d] = indices->shape()[d];
  }
  return gather(expand(x, wide), d, expand(indices, both));
}

// ---- scatter --------------------------------------------------------------------------------------------------------

namespace {

auto scatter_rule(int d, const Arg& index) {
  return [d, &index](Saver& s) {
    return [d, i = s.indices(*index), shape = s.shape(2)](Tensor g, const Need& need) -> Grads {
      Grads out(3);
      if (need[0]) out[0] = scatter(g, d, *i, 0);
      if (need[2]) {
        const Tensor at = *i;
        Tensor ds = gather(g, d, at);
        const Shape strides = contiguous_strides(g.shape());
        const Tensor won = winners(element_rows(strides, d, at), g.numel());
        if (won.defined()) ds = where(reshape(won, at.shape()), ds, 0);
        out[2] = spread_part(ds, shape);
      }
      return out;
    };
  };
}

}  // namespace

Tensor scatter(Arg x, i64 dim, Arg index, Arg src) {
  const int d = check_scatter("scatter", x, dim, index, src);
  Tensor y = copy_value(*x);
  assign_value(y, element_rows(y.strides(), d, *index), read_part(*src, index->shape()));
  return record(kScatter, std::move(y), {x, index, src}, scatter_rule(d, index), [&](Attrs& at) { at("dim", i64{d}); });
}
const Tensor& scatter_(const Tensor& x, i64 dim, Arg index, Arg src) {
  const Arg target(x, index.loc());
  check_inplace("scatter_", x, {index, src});
  const int d = check_scatter("scatter_", target, dim, index, src);
  const Tensor old = history_before(x);
  modify(x, [&](const Tensor& y) {
    assign_value(y, element_rows(y.strides(), d, *index), read_part(*src, index->shape()));
  });
  record_inplace(kScatterInplace, x, {Arg(old, index.loc()), index, src}, scatter_rule(d, index));
  return x;
}

namespace {

void check_value(std::string_view op, const Arg& x, const Scalar& value) {
  if (value.category() > category_of(x->dtype()))
    fail_at(x.loc(), op, "the value does not fit into {}; convert with to(...)", name_of(x->dtype()));
}
void scatter_scalar(const Tensor& y, int d, const Tensor& index, const Scalar& value) {
  Tensor one = make_empty({1}, y.dtype());
  fill_into(one, value);
  assign_value(y, element_rows(y.strides(), d, index), contiguous_value(expand_value(one, {index.numel()})));
}
auto scalar_rule(int d, const Arg& index) {
  return [d, &index](Saver& s) {
    return [d, i = s.indices(*index)](Tensor g, const Need&) -> Grads { return {scatter(g, d, *i, 0), Tensor()}; };
  };
}

}  // namespace

Tensor scatter(Arg x, i64 dim, Arg index, Scalar value) {
  const int d = check_element_index("scatter", x, dim, index);
  check_value("scatter", x, value);
  Tensor y = copy_value(*x);
  scatter_scalar(y, d, *index, value);
  return record(kScatter, std::move(y), {x, index}, scalar_rule(d, index), [&](Attrs& at) {
    at("dim", i64{d});
    at("value", value.to_double());
  });
}
const Tensor& scatter_(const Tensor& x, i64 dim, Arg index, Scalar value) {
  const Arg target(x, index.loc());
  check_inplace("scatter_", x, {index});
  const int d = check_element_index("scatter_", target, dim, index);
  check_value("scatter_", target, value);
  const Tensor old = history_before(x);
  modify(x, [&](const Tensor& y) { scatter_scalar(y, d, *index, value); });
  record_inplace(kScatterInplace, x, {Arg(old, index.loc()), index}, scalar_rule(d, index));
  return x;
}

// ---- scatter_add ----------------------------------------------------------------------------------------------------

namespace {

auto scatter_add_rule(int d, const Arg& index) {
  return [d, &index](Saver& s) {
    return [d, i = s.needs(2) ? s.indices(*index) : SavedTensor(), shape = s.shape(2)](Tensor g,
                                                                                       const Need& need) -> Grads {
      Tensor ds;
      if (need[2]) ds = spread_part(gather(g, d, *i), shape);
      return {std::move(g), Tensor(), std::move(ds)};
    };
  };
}

}  // namespace

Tensor scatter_add(Arg x, i64 dim, Arg index, Arg src) {
  const int d = check_scatter("scatter_add", x, dim, index, src);
  Tensor y = copy_value(*x);
  accumulate_value(y, element_rows(y.strides(), d, *index), read_part(*src, index->shape()));
  return record(kScatterAdd, std::move(y), {x, index, src}, scatter_add_rule(d, index),
                [&](Attrs& at) { at("dim", i64{d}); });
}
const Tensor& scatter_add_(const Tensor& x, i64 dim, Arg index, Arg src) {
  const Arg target(x, index.loc());
  check_inplace("scatter_add_", x, {index, src});
  const int d = check_scatter("scatter_add_", target, dim, index, src);
  const Tensor old = history_before(x);
  modify(x, [&](const Tensor& y) {
    accumulate_value(y, element_rows(y.strides(), d, *index), read_part(*src, index->shape()));
  });
  record_inplace(kScatterAddInplace, x, {Arg(old, index.loc()), index, src}, scatter_add_rule(d, index));
  return x;
}

}  // namespace waymark
