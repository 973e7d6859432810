// index_select, index_add, index_copy, index_fill: slices of one axis by a 1-d index.
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kIndexSelect{
    .name = "index_select",
    .family = "index",
    .doc = "slices of one axis, picked by a 1-d index",
    .schema = "index_select(Tensor input, int dim, Tensor index) -> Tensor",
    .formula = "y[…, j, …] = x[…, index[j], …]",
    .rule = "dx = 0 with g added at the slices",
    .saves = {{"index", For{0}}, {"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(index_select(c.tensor("input"), c.integer("dim"), c.tensor("index"))); }};
extern constexpr OpInfo kIndexAdd{
    .name = "index_add",
    .family = "index",
    .doc = "alpha times a source added to slices of one axis",
    .schema = "index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .formula = "y = x, y[…, index[j], …] += α·source[…, j, …]",
    .rule = "dx = g,  dsource = α·g[…, index, …]",
    .saves = {{"index", For{2}}},
    .apply = [](OpCall& c) {
      c.result(index_add(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("source"),
                         c.scalar("alpha", Scalar(1))));
    }};
extern constexpr OpInfo kIndexCopy{
    .name = "index_copy",
    .family = "index",
    .doc = "a source copied to slices of one axis; the last one for a slice wins",
    .schema = "index_copy(Tensor input, int dim, Tensor index, Tensor source) -> Tensor",
    .formula = "y = x, y[…, index[j], …] ← source[…, j, …]",
    .rule = "dx = g with 0 at the slices,  dsource = g[…, index, …], 0 for losers",
    .saves = {{"index", For{0, 2}}},
    .apply = [](OpCall& c) {
      c.result(index_copy(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("source")));
    }};
extern constexpr OpInfo kIndexFill{
    .name = "index_fill",
    .family = "index",
    .doc = "a value written to slices of one axis",
    .schema = "index_fill(Tensor input, int dim, Tensor index, Tensor value) -> Tensor",
    .formula = "y = x, y[…, index[j], …] ← v",
    .rule = "dx = g with 0 at the slices,  dv = Σ g at the slices",
    .saves = {{"index", For{0, 2}}},
    .apply = [](OpCall& c) {
      if (c.is_tensor("value"))
        c.result(index_fill(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.tensor("value")));
      else
        c.result(index_fill(c.tensor("input"), c.integer("dim"), c.tensor("index"), c.scalar("value")));
    }};
#define WAYMARK_INDEX_INPLACE(K, NAME, PARTNER, ARGS, FORMULA)                                                  \
  extern constexpr OpInfo K{.name = NAME,                                                                       \
                            .family = "index",                                                                  \
                            .doc = "in-place form of " PARTNER,                                                 \
                            .schema = NAME "(Tensor(a!) input, int dim, Tensor index, " ARGS ") -> Tensor(a!)", \
                            .formula = FORMULA,                                                                 \
                            .rule = "as " PARTNER};
WAYMARK_INDEX_INPLACE(kIndexAddInplace, "index_add_", "index_add", "Tensor source, *, Scalar alpha=1",
                      "x[…, index[j], …] += α·source[…, j, …]")
WAYMARK_INDEX_INPLACE(kIndexCopyInplace, "index_copy_", "index_copy", "Tensor source",
                      "x[…, index[j], …] ← source[…, j, …]")
WAYMARK_INDEX_INPLACE(kIndexFillInplace, "index_fill_", "index_fill", "Scalar value", "x[…, index[j], …] ← v")

namespace {

i64 extent_of(const Tensor& x, int d) { return x.dim() ? x.shape()[d] : 1; }

// Checks the index and returns dim, wrapped.
int check_slices(std::string_view op, const Arg& x, i64 dim, const Arg& index, bool negative) {
  check_defined(op, x);
  check_defined(op, index);
  const int d = wrap_dim(op, dim, x->dim());
  if (index->dim() > 1) fail_at(x.loc(), op, "the index must have 1 axis, got {}", index->shape());
  check_indices(op, Arg(*index, x.loc()), extent_of(*x, d), d, negative);
  return d;
}

// Also that the source is x with index.numel() slices.
int check_source(std::string_view op, const Arg& x, i64 dim, const Arg& index, const Arg& source) {
  const int d = check_slices(op, x, dim, index, false);
  check_same_dtype(op, x, source);
  Shape wanted = x->shape();
  if (x->dim()) wanted[d] = index->numel();
  if (!(source->shape() == wanted))
    fail_at(x.loc(), op, "the source {} must be {}: the tensor {} with {} slices on axis {}", source->shape(), wanted,
            x->shape(), index->numel(), d);
  return d;
}

// 1-d b8: which slices of axis d the index names.
Tensor named_slices(const Tensor& index, i64 n) {
  Tensor out = make_empty({n}, kB8);
  fill_into(out, false);
  const Tensor t = contiguous_value(index);
  for (i64 i = 0; i < t.numel(); ++i) {
    const i64 v = t.data<i64>()[i];
    out.data<bool>()[v < 0 ? v + n : v] = true;
  }
  return out;
}
// A 1-d tensor along axis d of tensors with `axes` axes.
Tensor on_axis(const Tensor& t, int d, int axes) {
  Shape shape(axes, 1);
  if (axes) shape[d] = t.numel();
  return alias(t, shape, contiguous_strides(shape), t.offset());
}

}  // namespace

Tensor index_select(Arg x, i64 dim, Arg index) {
  const int d = check_slices("index_select", x, dim, index, false);
  Shape shape = x->shape();
  if (x->dim())
    shape[d] = index->numel();
  else if (index->numel() != 1)
    fail_at(x.loc(), "index_select", "a 0-d tensor has one element, but the index has {}", index->numel());
  return record(
      kIndexSelect, gather_value(*x, axis_rows(*x, d, *index), shape), {x, index},
      [&](Saver& s) {
        return [d, i = s.indices(*index), was = s.shape(0)](Tensor g, const Need&) -> Grads {
          return {index_add(zeros(was, g.dtype()), d, *i, g), Tensor()};
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}

// ---- index_add ------------------------------------------------------------------------------------------------------

namespace {

void add_slices(const Tensor& y, int d, const Arg& index, const Arg& source, const Scalar& alpha) {
  const Tensor scaled = alpha.to_double() == 1
                            ? *source
                            : binary_value("index_add", kernels::Binary::mul, source, alpha, source->dtype());
  accumulate_value(y, axis_rows(y, d, *index), scaled);
}
void check_alpha(std::string_view op, const Arg& x, const Scalar& alpha) {
  if (!alpha.is_integral() && !is_float(x->dtype()))
    fail_at(x.loc(), op, "alpha is a float, but the tensor is {}", name_of(x->dtype()));
}
auto add_rule(int d, const Arg& index, const Scalar& alpha) {
  return [d, &index, alpha](Saver& s) {
    return [d, alpha, i = s.needs(2) ? s.indices(*index) : SavedTensor()](Tensor g, const Need& need) -> Grads {
      Tensor ds;
      if (need[2]) {
        ds = index_select(g, d, *i);
        if (alpha.to_double() != 1) ds = mul(ds, alpha);
      }
      return {std::move(g), Tensor(), std::move(ds)};
    };
  };
}

}  // namespace

Tensor index_add(Arg x, i64 dim, Arg index, Arg source, Scalar alpha) {
  const int d = check_source("index_add", x, dim, index, source);
  check_alpha("index_add", x, alpha);
  Tensor y = copy_value(*x);
  add_slices(y, d, index, source, alpha);
  return record(kIndexAdd, std::move(y), {x, index, source}, add_rule(d, index, alpha), [&](Attrs& at) {
    at("dim", i64{d});
    at("alpha", alpha.to_double());
  });
}
const Tensor& index_add_(const Tensor& x, i64 dim, Arg index, Arg source, Scalar alpha) {
  const Arg target(x, index.loc());
  check_inplace("index_add_", x, {index, source});
  const int d = check_source("index_add_", target, dim, index, source);
  check_alpha("index_add_", target, alpha);
  const Tensor old = history_before(x);
  modify(x, [&](const Tensor& y) { add_slices(y, d, index, source, alpha); });
  record_inplace(kIndexAddInplace, x, {Arg(old, index.loc()), index, source}, add_rule(d, index, alpha));
  return x;
}

// ---- index_copy -----------------------------------------------------------------------------------------------------

namespace {

auto copy_rule(int d, const Arg& index, i64 n) {
  return [d, &index, n](Saver& s) {
    return [d, n, i = s.indices(*index)](Tensor g, const Need& need) -> Grads {
      Grads out(3);
      if (need[0]) out[0] = index_fill(g, d, *i, 0);
      if (need[2]) {
        Tensor ds = index_select(g, d, *i);
        const RowMap places = axis_rows(named_slices(*i, n), 0, *i);
        const Tensor won = winners(places, n);
        if (won.defined()) ds = where(on_axis(won, d, ds.dim()), ds, 0);
        out[2] = ds;
      }
      return out;
    };
  };
}

}  // namespace

Tensor index_copy(Arg x, i64 dim, Arg index, Arg source) {
  const int d = check_source("index_copy", x, dim, index, source);
  Tensor y = copy_value(*x);
  assign_value(y, axis_rows(y, d, *index), *source);
  return record(kIndexCopy, std::move(y), {x, index, source}, copy_rule(d, index, extent_of(*x, d)),
                [&](Attrs& at) { at("dim", i64{d}); });
}
const Tensor& index_copy_(const Tensor& x, i64 dim, Arg index, Arg source) {
  const Arg target(x, index.loc());
  check_inplace("index_copy_", x, {index, source});
  const int d = check_source("index_copy_", target, dim, index, source);
  const Tensor old = history_before(x);
  modify(x, [&](const Tensor& y) { assign_value(y, axis_rows(y, d, *index), *source); });
  record_inplace(kIndexCopyInplace, x, {Arg(old, index.loc()), index, source}, copy_rule(d, index, extent_of(x, d)));
  return x;
}

// ---- index_fill -----------------------------------------------------------------------------------------------------

namespace {

void fill_slices(const Tensor& y, int d, const Tensor& index, const Scalar& value) {
  const i64 n = extent_of(y, d);
  const Tensor t = contiguous_value(index);
  for (i64 i = 0; i < t.numel(); ++i) {
    const i64 v = t.data<i64>()[i];
    fill_into(y.dim() ? Window{.kind = Window::Kind::select, .dim = d, .start = v < 0 ? v + n : v}.of(y) : y, value);
  }
}
void check_fill(std::string_view op, const Arg& x, int category) {
  if (category > category_of(x->dtype()))
    fail_at(x.loc(), op, "the value does not fit into {}; convert with to(...)", name_of(x->dtype()));
}
Tensor fill_rule(const Tensor& g, int d, const Tensor& index) { return index_fill(g, d, index, 0); }
void check_fill_tensor(std::string_view op, const Arg& x, const Arg& value) {
  check_defined(op, value);
  if (value->dim() != 0) fail_at(x.loc(), op, "the value must be 0-d, got {}", value->shape());
  check_fill(op, x, category_of(value->dtype()));
}
Scalar number_of(const Tensor& t) {
  return t.dtype() == kI64 ? Scalar(t.item<i64>()) : t.dtype() == kB8 ? Scalar(t.item<bool>()) : Scalar(t.item<double>());
}
// dx, none for the index, dvalue, for a value that is a tensor.
Grads fill_rules(const Tensor& g, const Need& need, int d, const Tensor& index, i64 n) {
  Tensor dv;
  if (need[2]) dv = sum(where(on_axis(named_slices(index, n), d, g.dim()), g, 0));
  return {need[0] ? fill_rule(g, d, index) : Tensor(), Tensor(), std::move(dv)};
}

}  // namespace

Tensor index_fill(Arg x, i64 dim, Arg index, Scalar value) {
  const int d = check_slices("index_fill", x, dim, index, true);
  check_fill("index_fill", x, value.category());
  Tensor y = copy_value(*x);
  fill_slices(y, d, *index, value);
  return record(
      kIndexFill, std::move(y), {x, index},
      [&](Saver& s) {
        return [d, i = s.indices(*index)](Tensor g, const Need&) -> Grads { return {fill_rule(g, d, *i), Tensor()}; };
      },
      [&](Attrs& at) {
        at("dim", i64{d});
        at("value", value.to_double());
      });
}
Tensor index_fill(Arg x, i64 dim, Arg index, Arg value) {
  const int d = check_slices("index_fill", x, dim, index, true);
  check_fill_tensor("index_fill", x, value);
  Tensor y = copy_value(*x);
  fill_slices(y, d, *index, number_of(*value));
  return record(
      kIndexFill, std::move(y), {x, index, value},
      [&](Saver& s) {
        return [d, i = s.indices(*index), n = extent_of(*x, d)](Tensor g, const Need& need) -> Grads {
          return fill_rules(g, need, d, *i, n);
        };
      },
      [&](Attrs& at) { at("dim", i64{d}); });
}
const Tensor& index_fill_(const Tensor& x, i64 dim, Arg index, Scalar value) {
  const Arg target(x, index.loc());
  check_inplace("index_fill_", x, {index});
  const int d = check_slices("index_fill_", target, dim, index, true);
  check_fill("index_fill_", target, value.category());
  const Tensor old = history_before(x);
  fill_slices(x, d, *index, value);
  record_inplace(kIndexFillInplace, x, {Arg(old, index.loc()), index}, [&](Saver& s) {
    return [d, i = s.indices(*index)](Tensor g, const Need&) -> Grads { return {fill_rule(g, d, *i), Tensor()}; };
  });
  return x;
}
const Tensor& index_fill_(const Tensor& x, i64 dim, Arg index, Arg value) {
  const Arg target(x, index.loc());
  check_inplace("index_fill_", x, {index, value});
  const int d = check_slices("index_fill_", target, dim, index, true);
  check_fill_tensor("index_fill_", target, value);
  const Tensor old = history_before(x);
  fill_slices(x, d, *index, number_of(*value));
  record_inplace(kIndexFillInplace, x, {Arg(old, index.loc()), index, value}, [&](Saver& s) {
    return [d, i = s.indices(*index), n = extent_of(x, d)](Tensor g, const Need& need) -> Grads {
      return fill_rules(g, need, d, *i, n);
    };
  });
  return x;
}

}  // namespace waymark
