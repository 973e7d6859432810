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

// The common case needs no plan: all of one shape and row-major. Operands of one element repeat.
bool flat(const Tensor& t, const Shape& shape) { return t.is_contiguous() && (t.shape() == shape || t.numel() == 1); }
i64 step_of(const Tensor& t, i64 n) { return t.numel() == n ? 1 : 0; }

void run_unary(kernels::UnaryLoop loop, const Tensor& y, const Tensor& x, std::span<const double> p) {
  const i64 n = y.numel();
  if (n == 0) return;
  if (y.is_contiguous() && flat(x, y.shape())) {
    std::byte *const to = y.raw(), *const from = x.raw();
    const i64 step = step_of(x, n), to_bytes = size_of(y.dtype()), from_bytes = step * size_of(x.dtype());
    parallel_for(n, kGrain, [&](i64 begin, i64 end) {
      loop(end - begin, to + begin * to_bytes, 1, from + begin * from_bytes, step, p.data());
    });
    return;
  }
  const Shape sx = broadcast_strides(x, y.shape());
  const auto plan = kernels::make_loops<2>(y.shape(), {&y.strides(), &sx}, {y.raw(), x.raw()},
                                           {size_of(y.dtype()), size_of(x.dtype())});
  kernels::run_loops(plan, [&](i64 run, const auto& ptr, const auto& step) {
    loop(run, ptr[0], step[0], ptr[1], step[1], p.data());
  });
}

void run_binary(kernels::BinaryLoop loop, const Tensor& y, const Tensor& a, const Tensor& b, const double* p = nullptr) {
  const i64 n = y.numel();
  if (n == 0) return;
  if (y.is_contiguous() && flat(a, y.shape()) && flat(b, y.shape())) {
    std::byte *const to = y.raw(), *const pa = a.raw(), *const pb = b.raw();
    const i64 step_a = step_of(a, n), step_b = step_of(b, n), bytes = size_of(y.dtype());
    const i64 bytes_a = step_a * size_of(a.dtype()), bytes_b = step_b * size_of(b.dtype());
    parallel_for(n, kGrain, [&](i64 begin, i64 end) {
      loop(end - begin, to + begin * bytes, 1, pa + begin * bytes_a, step_a, pb + begin * bytes_b, step_b, p);
    });
    return;
  }
  const Shape sa = broadcast_strides(a, y.shape()), sb = broadcast_strides(b, y.shape());
  const auto plan = kernels::make_loops<3>(y.shape(), {&y.strides(), &sa, &sb}, {y.raw(), a.raw(), b.raw()},
                                           {size_of(y.dtype()), size_of(a.dtype()), size_of(b.dtype())});
  kernels::run_loops(plan, [&](i64 run, const auto& ptr, const auto& step) {
    loop(run, ptr[0], step[0], ptr[1], step[1], ptr[2], step[2], p);
  });
}

template <class Loop> Loop need_loop(std::string_view op, Loop loop, DType t) {
  if (!loop) fail(op, "{} is not supported; convert with to(...)", name_of(t));
  return loop;
}

}  // namespace

// t in this dtype: itself, without touching its count, or `made`.
static const Tensor& cast(const Tensor& t, DType dtype, Tensor& made) {
  if (t.dtype() == dtype) return t;
  return made = cast_value(t, dtype);
}

void check_defined(std::string_view op, const Arg& a) {
  if (!a->defined()) fail_at(a.loc(), op, "an input is undefined (a default-constructed tensor, or a gradient that is not there)");
}

DType promote(const Tensor& a, const Tensor& b) {
  const DType x = a.dtype(), y = b.dtype();
  if (x == y) return x;
  if (category_of(x) != category_of(y)) return category_of(x) > category_of(y) ? x : y;
  // f32 and f64: the one with axes decides, f64 if both or neither have some.
  const bool x_axes = a.dim() > 0, y_axes = b.dim() > 0;
  return x_axes == y_axes ? kF64 : x_axes ? x : y;
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
  Tensor made;
  const Tensor& in = cast(*x, dtype, made);
  Tensor out = reuse ? *x : make_empty_like(in, result);
  run_unary(fn, out, in, p);
  return out;
}

Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Arg& b, DType dtype, bool may_reuse) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, dtype), dtype);
  const Shape shape = a->shape() == b->shape() ? a->shape() : broadcast_shapes(op, a->shape(), b->shape());
  const DType result = gives_b8(loop) ? kB8 : dtype;
  const auto takes = [&](const Arg& t) {
    return may_reuse && t->dtype() == result && t->shape() == shape && t.reusable();
  };
  Tensor out;
  if (takes(a)) out = *a;
  else if (takes(b)) out = *b;
  Tensor cast_a, cast_b;
  const Tensor &x = cast(*a, dtype, cast_a), &y = cast(*b, dtype, cast_b);
  if (!out.defined()) out = new_output(shape, {&x, &y}, result);
  run_binary(fn, out, x, y);
  return out;
}

// out = loop(x, b) or loop(b, x); out and x of one shape, x in the loop's dtype.
static void run_with_scalar(kernels::BinaryLoop loop, const Tensor& out, const Tensor& x, const Scalar& b, bool scalar_first) {
  const i64 count = out.numel();
  if (count == 0) return;
  ScalarCell cell(b, x.dtype());
  const auto run = [&](i64 n, std::byte* to, i64 to_step, const std::byte* from, i64 step) {
    if (scalar_first) loop(n, to, to_step, cell.bytes, 0, from, step, nullptr);
    else loop(n, to, to_step, from, step, cell.bytes, 0, nullptr);
  };
  const i64 out_bytes = size_of(out.dtype()), x_bytes = size_of(x.dtype());
  if (out.is_contiguous() && x.is_contiguous()) {
    parallel_for(count, kGrain, [&](i64 begin, i64 end) {
      run(end - begin, out.raw() + begin * out_bytes, 1, x.raw() + begin * x_bytes, 1);
    });
    return;
  }
  const auto plan = kernels::make_loops<2>(out.shape(), {&out.strides(), &x.strides()}, {out.raw(), x.raw()},
                                           {out_bytes, x_bytes});
  kernels::run_loops(plan, [&](i64 n, const auto& ptr, const auto& step) { run(n, ptr[0], step[0], ptr[1], step[1]); });
}

Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Scalar& b, DType dtype, bool may_reuse,
                    bool scalar_first) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, dtype), dtype);
  const DType result = gives_b8(loop) ? kB8 : dtype;
  const bool reuse = may_reuse && result == a->dtype() && a.reusable();
  Tensor made;
  const Tensor& x = cast(*a, dtype, made);
  Tensor out = reuse ? *a : make_empty_like(x, result);
  run_with_scalar(fn, out, x, b, scalar_first);
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
  run_with_scalar(loop, out, a, b, scalar_first);
  return out;
}

void binary_into(std::string_view op, kernels::Binary loop, const Tensor& target, const Tensor& a, const Tensor& b) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, target.dtype()), target.dtype());
  run_binary(fn, target, cast_value(a, target.dtype()), cast_value(b, target.dtype()));
}

void binary_into(std::string_view op, kernels::Binary loop, const Tensor& target, const Scalar& b) {
  const auto fn = need_loop(op, kernels::binary_loop(loop, target.dtype()), target.dtype());
  run_with_scalar(fn, target, target, b, false);
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
