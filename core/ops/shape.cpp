#include "core/ops/shape.h"

#include <algorithm>

#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/index_map.h"

namespace waymark {

using namespace ops;

namespace {

// Fills in a -1. Error if the element counts differ or the -1 is ambiguous.
Shape infer_shape(std::string_view op, const Tensor& x, Shape shape, Loc loc) {
  int unknown = -1;
  i64 known = 1;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (unknown >= 0) fail_at(loc, op, "{} has more than one -1", shape);
      unknown = i;
    } else if (shape[i] < 0) {
      fail_at(loc, op, "negative extent in {}", shape);
    } else if (__builtin_mul_overflow(known, shape[i], &known)) {
      fail_at(loc, op, "{} has more than 2^63-1 elements", shape);
    }
  }
  if (unknown >= 0) {
    if (known == 0) fail_at(loc, op, "the -1 in {} is ambiguous for a tensor of shape {}", shape, x.shape());
    if (x.numel() % known != 0) fail_at(loc, op, "{} ({} elements) cannot become {}", x.shape(), x.numel(), shape);
    shape[unknown] = x.numel() / known;
  } else if (known != x.numel()) {
    fail_at(loc, op, "{} ({} elements) cannot become {} ({} elements)", x.shape(), x.numel(), shape, known);
  }
  return shape;
}

}  // namespace

extern constexpr OpInfo kView{
    .name = "view", .family = "shape", .doc = "another shape of the same memory",
    .schema = "view(Tensor input, int[] shape) -> Tensor", .formula = "y = x", .rule = "dx = g, reshaped",
    .saves = {{"shape", For{0}}}, .view = true,
    .apply = [](OpCall& c) { c.result(view(c.tensor("input"), Shape(c.list("shape")))); }};

static Tensor view_as(const OpInfo& op, Arg x, const Shape& shape, const Shape& strides) {
  return record_view(op, alias(*x, shape, strides, x->offset()), x, [](Saver& s) {
    return [shape = s.shape(0)](Tensor g, const Need&) -> Grads { return {reshape(g, shape)}; };
  }, [&](Attrs& at) { at("shape", shape.vec()); });
}

Tensor view(Arg x, const Shape& size) {
  check_defined("view", x);
  const Shape shape = infer_shape("view", *x, size, x.loc());
  Shape strides;
  int axis = 0;
  if (!view_strides(x->shape(), x->strides(), shape, &strides, &axis))
    fail_at(x.loc(), "view",
            "{} with strides {} cannot become {} without a copy (axes {} and {} are not adjacent in memory); use reshape",
            x->shape(), x->strides(), shape, axis, axis + 1);
  return view_as(kView, x, shape, strides);
}

extern constexpr OpInfo kReshape{
    .name = "reshape", .family = "shape", .doc = "another shape: a view where strides allow, else a copy",
    .schema = "reshape(Tensor input, int[] shape) -> Tensor", .formula = "y = x", .rule = "dx = g, reshaped",
    .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(reshape(c.tensor("input"), Shape(c.list("shape")))); }};

Tensor reshape(Arg x, const Shape& size) {
  check_defined("reshape", x);
  const Shape shape = infer_shape("reshape", *x, size, x.loc());
  Shape strides;
  if (view_strides(x->shape(), x->strides(), shape, &strides, nullptr)) return view_as(kView, x, shape, strides);
  const Tensor copy = contiguous_value(*x);
  return record(kReshape, alias(copy, shape, contiguous_strides(shape), 0), {x}, [](Saver& s) {
    return [shape = s.shape(0)](Tensor g, const Need&) -> Grads { return {reshape(g, shape)}; };
  }, [&](Attrs& at) { at("shape", shape.vec()); });
}

Tensor flatten(Arg x, i64 start_dim, i64 end_dim) {
  check_defined("flatten", x);
  const int a = wrap_dim("flatten", start_dim, x->dim()), b = wrap_dim("flatten", end_dim, x->dim());
  if (a > b) fail_at(x.loc(), "flatten", "start_dim {} comes after end_dim {}", start_dim, end_dim);
  if (x->dim() == 0) return reshape(x, {1});
  Shape shape;
  i64 merged = 1;
  for (int i = 0; i < x->dim(); ++i) {
    if (i < a || i > b) shape.push_back(x->shape()[i]);
    else merged *= x->shape()[i];
    if (i == b) shape.push_back(merged);
  }
  return reshape(x, shape);
}

extern constexpr OpInfo kPermute{
    .name = "permute", .family = "shape", .doc = "axes in another order", .schema = "permute(Tensor input, int[] dims) -> Tensor",
    .formula = "y = x", .rule = "dx = g, permuted back", .view = true,
    .apply = [](OpCall& c) { c.result(permute(c.tensor("input"), c.list("dims"))); }};

Tensor permute(Arg x, const std::vector<i64>& dims) {
  check_defined("permute", x);
  const int n = x->dim();
  if (static_cast<int>(dims.size()) != n)
    fail_at(x.loc(), "permute", "{} dims for a tensor with {} axes ({})", dims.size(), n, x->shape());
  Shape shape(n), strides(n);
  std::vector<i64> back(static_cast<size_t>(n), -1);
  for (int i = 0; i < n; ++i) {
    const int d = wrap_dim("permute", dims[static_cast<size_t>(i)], n);
    if (back[static_cast<size_t>(d)] >= 0) fail_at(x.loc(), "permute", "a dim appears twice in [{}]", fmt::join(dims, ", "));
    back[static_cast<size_t>(d)] = i;
    shape[i] = x->shape()[d];
    strides[i] = x->strides()[d];
  }
  return record_view(kPermute, alias(*x, shape, strides, x->offset()), x, [&](Saver&) {
    return [back](Tensor g, const Need&) -> Grads { return {permute(g, back)}; };
  }, [&](Attrs& at) { at("dims", dims); });
}

Tensor transpose(Arg x, i64 dim0, i64 dim1) {
  check_defined("transpose", x);
  const int a = wrap_dim("transpose", dim0, x->dim()), b = wrap_dim("transpose", dim1, x->dim());
  std::vector<i64> dims(static_cast<size_t>(x->dim()));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<i64>(i);
  if (x->dim() > 0) std::swap(dims[static_cast<size_t>(a)], dims[static_cast<size_t>(b)]);
  return permute(x, dims);
}

Tensor mT(Arg x) {
  check_defined("mT", x);
  if (x->dim() < 2) fail_at(x.loc(), "mT", "needs at least 2 axes, got {}", x->shape());
  return transpose(x, -2, -1);
}

Tensor squeeze(Arg x, Dims dim) {
  check_defined("squeeze", x);
  const std::vector<int> dims = dim.wrapped("squeeze", x->dim());
  Shape shape, strides;
  for (int i = 0; i < x->dim(); ++i)
    if (x->shape()[i] != 1 || !std::binary_search(dims.begin(), dims.end(), i)) {
      shape.push_back(x->shape()[i]);
      strides.push_back(x->strides()[i]);
    }
  return view_as(kView, x, shape, strides);
}

Tensor unsqueeze(Arg x, i64 dim) {
  check_defined("unsqueeze", x);
  const int d = wrap_dim("unsqueeze", dim, x->dim() + 1);
  Shape shape = x->shape(), strides = x->strides();
  strides.insert(d, d < shape.size() ? shape[d] * strides[d] : 1);
  shape.insert(d, 1);
  return view_as(kView, x, shape, strides);
}

extern constexpr OpInfo kExpand{
    .name = "expand", .family = "shape", .doc = "extents of 1 repeated, without a copy",
    .schema = "expand(Tensor input, int[] size) -> Tensor", .formula = "y = x, repeated",
    .rule = "dx = g (the edge sums it to x's shape)", .view = true,
    .apply = [](OpCall& c) { c.result(expand(c.tensor("input"), Shape(c.list("size")))); }};

Tensor expand(Arg x, const Shape& size) {
  check_defined("expand", x);
  const int lead = size.size() - x->dim();
  if (lead < 0) fail_at(x.loc(), "expand", "{} has fewer axes than the tensor {}", size, x->shape());
  Shape shape = size, strides(size.size());
  for (int i = 0; i < size.size(); ++i) {
    const i64 old = i < lead ? 1 : x->shape()[i - lead];
    if (shape[i] == -1 && i >= lead) shape[i] = old;
    if (shape[i] < 0) fail_at(x.loc(), "expand", "negative extent in {}", size);
    if (shape[i] != old && old != 1)
      fail_at(x.loc(), "expand", "{} does not expand to {} (axis {}: {} to {})", x->shape(), size, i - size.size(), old, shape[i]);
    strides[i] = i < lead || (old == 1 && shape[i] != 1) ? 0 : x->strides()[i - lead];
  }
  checked_numel("expand", shape, size_of(x->dtype()));
  return record_view(kExpand, alias(*x, shape, strides, x->offset()), x, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };
  }, [&](Attrs& at) { at("size", shape.vec()); });
}

// ---- windows: the gradient lies in the same window of zeros -----------------------------------------------------------

extern constexpr OpInfo kSlice{
    .name = "slice", .family = "shape", .doc = "every step-th index of one axis, from start to stop",
    .schema = "slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    .formula = "y = x[start:stop:step]", .rule = "dx = 0 with g added at start:stop:step", .saves = {{"shape", For{0}}},
    .view = true, .apply = [](OpCall& c) {
      c.result(slice(c.tensor("input"), c.integer("dim", 0), c.integer("start", kNoBound), c.integer("end", kNoBound),
                     c.integer("step", 1)));
    }};
extern constexpr OpInfo kSelect{
    .name = "select", .family = "shape", .doc = "one index of an axis, which goes away",
    .schema = "select(Tensor input, int dim, int index) -> Tensor", .formula = "y = x[index]",
    .rule = "dx = 0 with g added at index", .saves = {{"shape", For{0}}}, .view = true,
    .apply = [](OpCall& c) { c.result(select(c.tensor("input"), c.integer("dim"), c.integer("index"))); }};
extern constexpr OpInfo kDiagonal{
    .name = "diagonal", .family = "shape", .doc = "a diagonal of two axes, as the last axis",
    .schema = "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1) -> Tensor", .formula = "y[…, i] = x[…, i, i + offset]",
    .rule = "dx = 0 with g added on the diagonal", .saves = {{"shape", For{0}}}, .view = true, .apply = [](OpCall& c) {
      c.result(diagonal(c.tensor("input"), c.integer("offset", 0), c.integer("dim1", 0), c.integer("dim2", 1)));
    }};
extern constexpr OpInfo kUnfold{
    .name = "unfold", .family = "shape", .doc = "sliding windows of one axis, as a new last axis",
    .schema = "unfold(Tensor input, int dimension, int size, int step) -> Tensor", .formula = "y[…, i, …, k] = x[…, i·step + k, …]",
    .rule = "dx = 0 with g added in the windows, which may overlap", .saves = {{"shape", For{0}}}, .view = true, .apply = [](OpCall& c) {
      c.result(unfold(c.tensor("input"), c.integer("dimension"), c.integer("size"), c.integer("step")));
    }};
extern constexpr OpInfo kEmbedWindow{
    .name = "embed_window", .family = "shape", .doc = "zeros with a tensor in one window: the adjoint of slice and select",
    .schema = "embed_window(Tensor input, int[] size, Window window) -> Tensor", .formula = "y = 0 with x in the window",
    .rule = "dx = g in the window"};

namespace ops {

static const OpInfo& op_of(Window::Kind kind) {
  switch (kind) {
    case Window::Kind::select: return kSelect;
    case Window::Kind::diagonal: return kDiagonal;
    case Window::Kind::unfold: return kUnfold;
    default: return kSlice;
  }
}

Tensor window_of(const OpInfo& op, Arg x, const Window& w) {
  return record_view(op, w.of(*x), x, [&](Saver& s) {
    return [w, shape = s.shape(0)](Tensor g, const Need&) -> Grads {
      // Under create_graph the gradient must be recorded; otherwise the slot adds it into one zero buffer.
      if (grad_enabled()) return {embed_window(g, shape, w)};
      return {Grad(std::move(g), w)};
    };
  }, [&](Attrs& at) {
    const i64 dim = w.dim;
    switch (w.kind) {
      case Window::Kind::select: at("dim", dim); at("index", w.start); break;
      case Window::Kind::diagonal: at("offset", w.start); at("dim1", dim); at("dim2", i64{w.dim2}); break;
      case Window::Kind::unfold: at("dimension", dim); at("size", w.length); at("step", w.step); break;
      case Window::Kind::slice:
        at("dim", dim);
        at("start", w.start);
        // Backwards to index 0 has no end that could be written.
        if (const i64 last = w.start + (w.length - 1) * w.step; w.length == 0) at("end", w.start);
        else if (w.step > 0 || last > 0) at("end", last + (w.step > 0 ? 1 : -1));
        at("step", w.step);
        break;
    }
  });
}

Tensor embed_window(Arg x, const Shape& shape, const Window& w) {
  Tensor y = make_empty(shape, x->dtype());
  fill_into(y, 0);
  const Tensor hole = w.of(y);
  if (w.kind == Window::Kind::unfold) {  // windows overlap: one window index after the other
    const int last = hole.dim() - 1;
    for (i64 k = 0; k < hole.shape()[last]; ++k) {
      const Window one{.kind = Window::Kind::select, .dim = last, .start = k};
      const Tensor target = one.of(hole);
      binary_into("embed_window", kernels::Binary::add, target, target, one.of(*x));
    }
  } else {
    copy_into(hole, *x);
  }
  return record(kEmbedWindow, std::move(y), {x}, [&](Saver&) {
    return [w](Tensor g, const Need&) -> Grads {
      return {window_of(op_of(w.kind), g, w)};
    };
  });
}

}  // namespace ops

Tensor slice(Arg x, i64 dim, i64 start, i64 stop, i64 step) {
  check_defined("slice", x);
  if (x->dim() == 0) fail_at(x.loc(), "slice", "a 0-d tensor has no axis to slice");
  if (step == 0 || step == INT64_MIN) fail_at(x.loc(), "slice", "step {} is not allowed", step);
  const int d = wrap_dim("slice", dim, x->dim());
  const SliceRange r = slice_range(Slice{start, stop, step}, x->shape()[d]);
  return window_of(kSlice, x, {.kind = Window::Kind::slice, .dim = d, .start = r.start, .length = r.length, .step = step});
}

Tensor narrow(Arg x, i64 dim, i64 start, i64 length) {
  check_defined("narrow", x);
  const int d = wrap_dim("narrow", dim, x->dim());
  if (x->dim() == 0) fail_at(x.loc(), "narrow", "a 0-d tensor has no axis to narrow");
  const i64 n = x->shape()[d], a = start < 0 ? start + n : start;
  if (a < 0 || length < 0 || a > n - length)
    fail_at(x.loc(), "narrow", "start {} and length {} do not lie in axis {} of extent {}", start, length, d, n);
  return window_of(kSlice, x, {.kind = Window::Kind::slice, .dim = d, .start = a, .length = length, .step = 1});
}

Tensor select(Arg x, i64 dim, i64 index) {
  check_defined("select", x);
  if (x->dim() == 0) fail_at(x.loc(), "select", "a 0-d tensor has no axis to select from");
  const int d = wrap_dim("select", dim, x->dim());
  const i64 n = x->shape()[d];
  if (index < -n || index >= n) fail_at(x.loc(), "select", "index {} is outside [{}, {}) of axis {}", index, -n, n, d);
  return window_of(kSelect, x, {.kind = Window::Kind::select, .dim = d, .start = index < 0 ? index + n : index});
}

Tensor diagonal(Arg x, i64 offset, i64 dim1, i64 dim2) {
  check_defined("diagonal", x);
  if (x->dim() < 2) fail_at(x.loc(), "diagonal", "needs at least 2 axes, got {}", x->shape());
  const int a = wrap_dim("diagonal", dim1, x->dim()), b = wrap_dim("diagonal", dim2, x->dim());
  if (a == b) fail_at(x.loc(), "diagonal", "dim1 {} and dim2 {} are the same axis", dim1, dim2);
  // Beyond the matrix there is nothing, however far.
  const i64 near = std::clamp(offset, -x->shape()[a] - 1, x->shape()[b] + 1);
  return window_of(kDiagonal, x, {.kind = Window::Kind::diagonal, .dim = a, .dim2 = b, .start = near});
}

Tensor unfold(Arg x, i64 dimension, i64 size, i64 step) {
  check_defined("unfold", x);
  if (x->dim() == 0) fail_at(x.loc(), "unfold", "a 0-d tensor has no axis to unfold");
  const int d = wrap_dim("unfold", dimension, x->dim());
  if (size < 0 || size > x->shape()[d])
    fail_at(x.loc(), "unfold", "windows of {} do not fit into axis {} of extent {}", size, d, x->shape()[d]);
  if (step <= 0) fail_at(x.loc(), "unfold", "the step must be positive, got {}", step);
  return window_of(kUnfold, x, {.kind = Window::Kind::unfold, .dim = d, .length = size, .step = step});
}

}  // namespace waymark
