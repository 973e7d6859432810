#include "core/ops/elementwise.h"

#include <algorithm>

#include "core/kernels/loops.h"

namespace waymark::ops {
namespace {

using kernels::Loops;

// Strides of t for an output of this shape: 0 where it repeats.
Shape broadcast_strides(const Tensor& t, const Shape& shape) {
  Shape out(shape.size());
  const int lead = shape.size() - t.dim();
  for (int i = 0; i < t.dim(); ++i) out[lead + i] = t.shape()[i] == 1 ? 0 : t.strides()[i];
  return out;
}

// A new output for these operands, in the memory order of the first one that has the output's shape.
Tensor new_output(const Shape& shape, std::initializer_list<const Tensor*> operands, DType dtype) {
  for (const Tensor* t : operands)
    if (t->shape() == shape) return make_empty_like(*t, dtype);
  return make_empty(shape, dtype);
}

bool gives_b8(kernels::Binary op) { return op >= kernels::Binary::eq && op <= kernels::Binary::logical_xor; }
bool gives_b8(kernels::Unary op) { return op >= kernels::Unary::logical_not; }

void run_unary(kernels::UnaryLoop loop, const Tensor& y, const Tensor& x, std::span<const double> p) {
  if (y.numel() == 0) return;
  const Shape sx = broadcast_strides(x, y.shape());
  const auto plan = kernels::make_loops<2>(y.shape(), {&y.strides(), &sx}, {y.raw(), x.raw()},
                                           {size_of(y.dtype()), size_of(x.dtype())});
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) {
    loop(n, ptr[0], step[0], ptr[1], step[1], p.data());
  });
}

void run_binary(kernels::BinaryLoop loop, const Tensor& y, const Tensor& a, const Tensor& b, const double* p = nullptr) {
  if (y.numel() == 0) return;
  const Shape sa = broadcast_strides(a, y.shape()), sb = broadcast_strides(b, y.shape());
  const auto plan = kernels::make_loops<3>(y.shape(), {&y.strides(), &sa, &sb}, {y.raw(), a.raw(), b.raw()},
                                           {size_of(y.dtype()), size_of(a.dtype()), size_of(b.dtype())});
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) {
    loop(n, ptr[0], step[0], ptr[1], step[1], ptr[2], step[2], p);
  });
}

template <class Loop> Loop need_loop(std::string_view op, Loop loop, DType t) {
  if (!loop) fail(op, "{} is not supported; convert with to(...)", name_of(t));
  return loop;
}

}  // namespace

void check_defined(std::string_view op, const Arg& a) {
  if (!a->defined()) fail_at(a.loc(), op, "an input is undefined (a default-constructed tensor, or a gradient that is not there)");
}

DType promote(const Tensor& a, const Tensor& b) {
  const Tensor list[] = {a, b};
  return promote(std::span<const Tensor>(list));
}

DType promote(const Tensor& a, const Scalar& b) {
  const int category = category_of(a.dtype());
  if (b.category() <= category) return a.dtype();
  return b.category() == 2 ? default_dtype() : kI64;
}

DType promote(std::span<const Tensor> list) {
  int category = 0;
  for (const Tensor& t : list) category = std::max(category, category_of(t.dtype()));
  // The highest rank (axes over none) that has this category decides among f32 and f64.
  DType best = kB8;
  bool with_axes = false;
  for (const Tensor& t : list) {
    if (category_of(t.dtype()) != category) continue;
    const bool axes = t.dim() > 0;
    if (axes && !with_axes) { best = t.dtype(); with_axes = true; }
    else if (axes == with_axes) best = best == kB8 ? t.dtype() : (t.dtype() == kF64 ? kF64 : best);
  }
  return best;
}

DType to_float(DType t) { return is_float(t) ? t : default_dtype(); }

void need_float(std::string_view op, const Tensor& t) {
  if (!is_float(t.dtype())) fail(op, "needs a float tensor, got {}; convert it with .to(kF32)", name_of(t.dtype()));
}

Tensor cast_value(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out = make_empty_like(t, dtype);
  run_unary(kernels::convert_loop(t.dtype(), dtype), out, t, {});
  return out;
}

Tensor unary_value(std::string_view op, kernels::Unary loop, const Arg& x, DType dtype, std::span<const double> p,
                   bool may_reuse) {
  const auto fn = need_loop(op, kernels::unary_loop(loop, dtype), dtype);
  const DType result = gives_b8(loop) ? kB8 : dtype;
  const bool reuse = may_reuse && result == x->dtype() && x.reusable();
  const Tensor in = cast_value(*x, dtype);
  Tensor out = reuse ? *x : make_empty_like(in, result);
  run_unary(fn, out, in, p);
  return out;
}

Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Arg& b, DType dtype, bool may_reuse) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, dtype), dtype);
  const Shape shape = broadcast_shapes(op, a->shape(), b->shape());
  const DType result = gives_b8(loop) ? kB8 : dtype;
  const auto takes = [&](const Arg& t) {
    return may_reuse && t->dtype() == result && t->shape() == shape && t.reusable();
  };
  Tensor out;
  if (takes(a)) out = *a;
  else if (takes(b)) out = *b;
  const Tensor x = cast_value(*a, dtype), y = cast_value(*b, dtype);
  if (!out.defined()) out = new_output(shape, {&x, &y}, result);
  run_binary(fn, out, x, y);
  return out;
}

Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Scalar& b, DType dtype, bool may_reuse,
                    bool scalar_first) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, dtype), dtype);
  const DType result = gives_b8(loop) ? kB8 : dtype;
  const bool reuse = may_reuse && result == a->dtype() && a.reusable();
  const Tensor x = cast_value(*a, dtype);
  Tensor out = reuse ? *a : make_empty_like(x, result);
  if (out.numel() == 0) return out;
  ScalarCell cell(b, dtype);
  const auto plan = kernels::make_loops<2>(out.shape(), {&out.strides(), &x.strides()}, {out.raw(), x.raw()},
                                           {size_of(result), size_of(dtype)});
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) {
    if (scalar_first) fn(n, ptr[0], step[0], cell.bytes, 0, ptr[1], step[1], nullptr);
    else fn(n, ptr[0], step[0], ptr[1], step[1], cell.bytes, 0, nullptr);
  });
  return out;
}

Tensor map_value(kernels::UnaryLoop loop, const Arg& x, std::span<const double> p, bool may_reuse) {
  const Tensor out = may_reuse && x.reusable() ? *x : make_empty_like(*x, x->dtype());
  run_unary(loop, out, *x, p);
  return out;
}

Tensor zip_value(kernels::BinaryLoop loop, const Tensor& a, const Tensor& b, std::span<const double> p) {
  const Tensor out = new_output(broadcast_shapes("backward", a.shape(), b.shape()), {&b, &a}, b.dtype());
  run_binary(loop, out, a, b, p.data());
  return out;
}

Tensor zip_value(kernels::BinaryLoop loop, const Tensor& a, const Scalar& b, bool scalar_first) {
  Tensor out = make_empty_like(a, a.dtype());
  if (out.numel() == 0) return out;
  ScalarCell cell(b, a.dtype());
  const auto plan = kernels::make_loops<2>(out.shape(), {&out.strides(), &a.strides()}, {out.raw(), a.raw()},
                                           {size_of(out.dtype()), size_of(a.dtype())});
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) {
    if (scalar_first) loop(n, ptr[0], step[0], cell.bytes, 0, ptr[1], step[1], nullptr);
    else loop(n, ptr[0], step[0], ptr[1], step[1], cell.bytes, 0, nullptr);
  });
  return out;
}

void binary_into(std::string_view op, kernels::Binary loop, const Tensor& target, const Tensor& a, const Tensor& b) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, target.dtype()), target.dtype());
  run_binary(fn, target, cast_value(a, target.dtype()), cast_value(b, target.dtype()));
}

void unary_into(kernels::Unary loop, const Tensor& target, const Tensor& x, std::span<const double> p) {
  run_unary(need_loop("unary", kernels::unary_loop(loop, target.dtype()), target.dtype()), target,
            cast_value(x, target.dtype()), p);
}

void copy_into(const Tensor& target, const Tensor& source) {
  run_unary(kernels::convert_loop(source.dtype(), target.dtype()), target, source, {});
}

void fill_into(const Tensor& target, const Scalar& v) {
  if (target.numel() == 0) return;
  if (target.impl()->dense) {
    visit_dtype(target.dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* p = target.data<T>();
      parallel_for(target.numel(), kGrain, [&](i64 begin, i64 end) { std::fill(p + begin, p + end, v.to<T>()); });
    });
    return;
  }
  ScalarCell cell(v, target.dtype());
  const Shape none(target.dim());
  const auto plan = kernels::make_loops<2>(target.shape(), {&target.strides(), &none}, {target.raw(), cell.bytes},
                                           {size_of(target.dtype()), size_of(target.dtype())});
  const auto fn = kernels::convert_loop(target.dtype(), target.dtype());
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) {
    fn(n, ptr[0], step[0], ptr[1], step[1], nullptr);
  });
}

Tensor copy_before(const Tensor& x) {
  Tensor old = make_empty_like(x, x.dtype());
  copy_into(old, x);
  Edge edge = edge_of(x);
  if (edge.node) ensure_meta(old).history = std::move(edge);
  return old;
}

Tensor history_before(const Tensor& x) {
  Tensor old = alias(x);
  Edge edge = edge_of(x);
  if (edge.node) ensure_meta(old).history = std::move(edge);
  return old;
}

bool nothing_recorded(std::initializer_list<const Tensor*> inputs) {
  if (!grad_enabled()) return true;
  for (const Tensor* t : inputs)
    if (t->defined() && edge_of(*t).wanted()) return false;
  return true;
}

Tensor contiguous_value(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = make_empty(t.shape(), t.dtype());
  copy_into(out, t);
  return out;
}

Tensor expand_value(const Tensor& t, const Shape& shape) {
  if (t.shape() == shape) return t;
  return alias(t, shape, broadcast_strides(t, shape), t.offset());
}

}  // namespace waymark::ops
