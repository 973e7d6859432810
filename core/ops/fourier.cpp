#include "core/ops/fourier.h"

#include <cmath>

#include "core/kernels/fft.h"
#include "core/ops/arithmetic.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

enum class Direction { forward, inverse };

// Factor of a transform of length n.
double norm_factor(std::string_view op, std::string_view norm, i64 n, Direction d, Loc loc) {
  if (norm == "ortho") return 1 / std::sqrt(static_cast<double>(n));
  if (norm != "backward" && norm != "forward")
    fail_at(loc, op, "norm is \"backward\", \"ortho\" or \"forward\", not \"{}\"", norm);
  return (norm == "backward") == (d == Direction::forward) ? 1 : 1 / static_cast<double>(n);
}

// The axis, its length and the wanted length; pairs: x has the trailing axis of (re, im).
struct Transform {
  int axis = 0;
  i64 length = 0, n = 0;
  double scale = 1;
};
Transform check_fourier(std::string_view op, const Arg& x, bool pairs, std::optional<i64> n, i64 dim, std::string_view norm,
                        Direction d) {
  check_defined(op, x);
  need_float(op, *x);
  if (pairs && (x->dim() == 0 || x->shape().back() != 2))
    fail_at(x.loc(), op, "complex tensors have a last axis of length 2 (re, im); got {}", x->shape());
  const int axes = x->dim() - (pairs ? 1 : 0);
  if (axes == 0) fail_at(x.loc(), op, "the input {} has no axis to transform", x->shape());
  Transform t{.axis = wrap_dim(op, dim, axes)};
  t.length = x->shape()[t.axis];
  t.n = n.value_or(op == "irfft" ? 2 * (t.length - 1) : t.length);
  if (t.n < 1) fail_at(x.loc(), op, "the length must be at least 1, got n = {}{}", t.n, n ? "" : " from the input's " + to_string(x->shape()));
  t.scale = norm_factor(op, norm, t.n, d, x.loc());
  return t;
}

// Rows (..., length[, 2]) of x along the axis, and back; a trailing pair axis stays behind the transformed one.
Tensor to_rows(const Tensor& x, int axis, bool pairs) {
  if (!pairs) return axis_last(x, axis);
  Shape shape = x.shape(), strides = x.strides();
  const int last = x.dim() - 2;
  for (int i = axis; i < last; ++i) {
    std::swap(shape[i], shape[i + 1]);
    std::swap(strides[i], strides[i + 1]);
  }
  return contiguous_value(alias(x, shape, strides, x.offset()));
}
Tensor from_rows(const Tensor& y, int axis, bool pairs) {
  Shape shape = y.shape(), strides = y.strides();
  for (int i = y.dim() - (pairs ? 2 : 1); i > axis; --i) {
    std::swap(shape[i], shape[i - 1]);
    std::swap(strides[i], strides[i - 1]);
  }
  return contiguous_value(alias(y, shape, strides, 0));
}

// kernel(in, out, rows) with `out_length` in place of the axis.
template <class Kernel> Tensor transformed(const Tensor& x, int axis, bool pairs_in, bool pairs_out, i64 out_length, Kernel kernel) {
  const Tensor in = to_rows(x, axis, pairs_in);
  Shape shape = in.shape();
  i64 rows = 1;
  const int place = in.dim() - (pairs_in ? 2 : 1);
  for (int i = 0; i < place; ++i) rows *= shape[i];
  shape[place] = out_length;
  if (pairs_in && !pairs_out) shape.erase(place + 1);
  if (!pairs_in && pairs_out) shape.push_back(2);
  const Tensor out = make_empty(shape, x.dtype());
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernel(in.data<T>(), out.data<T>(), rows);
  });
  return from_rows(out, axis, pairs_out);
}

// The first n indices of an axis, or zeros behind what there is: the adjoint of cutting and continuing.
Tensor resized(const Tensor& x, int axis, i64 n) {
  const i64 length = x.shape()[axis];
  if (length == n) return x;
  if (length > n) return narrow(x, axis, 0, n);
  Shape shape = x.shape();
  shape[axis] = n;
  return embed_window(x, shape, {.dim = axis, .start = 0, .length = length, .step = 1});
}

// A constant along the bins: `edge` at bins 0 and n/2, `inner` at the others; shaped for (..., bins, ..., 2).
Tensor bin_weights(i64 n, i64 bins, double edge, double inner, int axes_behind, DType dtype) {
  Tensor w = make_empty({bins}, dtype);
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (i64 k = 0; k < bins; ++k) w.data<T>()[k] = static_cast<T>(2 * k % n == 0 ? edge : inner);
  });
  Shape shape(1 + axes_behind, 1);
  shape[0] = bins;
  return alias(w, shape, contiguous_strides(shape), 0);
}

Tensor complex_transform(const OpInfo& op, const Arg& x, std::optional<i64> length, i64 dim, std::string_view norm, Direction d) {
  const Transform t = check_fourier(op.name, x, true, length, dim, norm, d);
  Tensor y = transformed(*x, t.axis, true, true, t.n, [&](auto* from, auto* to, i64 rows) {
    kernels::fft_complex(from, t.length, to, t.n, rows, d == Direction::inverse, t.scale);
  });
  return record(op, std::move(y), {x}, [&](Saver&) {
    return [t, d](Tensor g, const Need&) -> Grads {
      // The transform of the other sign, with the same factor.
      const Tensor back = d == Direction::forward ? ifft(g, {}, t.axis, "forward") : fft(g, {}, t.axis, "backward");
      return {resized(t.scale == 1 ? back : mul(back, t.scale), t.axis, t.length)};
    };
  }, [&](Attrs& at) { at("n", t.n); at("dim", i64{t.axis}); at("norm", std::string(norm)); });
}

std::optional<i64> length_of(OpCall& c) { return c.has("n") ? std::optional<i64>(c.integer("n")) : std::nullopt; }

double transform_flops(OpCall& c) {
  const double n = static_cast<double>(c.tensor("input").numel());
  return 5 * n * std::log2(std::max(n, 2.0));
}

}  // namespace

extern constexpr OpInfo kFft{
    .name = "fft", .family = "fourier", .doc = "discrete Fourier transform of pairs (re, im)",
    .schema = "fft(Tensor input, int? n=None, int dim=-1, str norm='backward') -> Tensor", .formula = "y_k = s·Σ_t x_t·e^(−2πi kt/n)",
    .rule = "dx = s·n·ifft(g), cut or continued with zeros", .flops = transform_flops,
    .apply = [](OpCall& c) { c.result(fft(c.tensor("input"), length_of(c), c.integer("dim", -1), c.word("norm", "backward"))); }};
Tensor fft(Arg x, std::optional<i64> n, i64 dim, std::string_view norm) {
  return complex_transform(kFft, x, n, dim, norm, Direction::forward);
}

extern constexpr OpInfo kIfft{
    .name = "ifft", .family = "fourier", .doc = "inverse of fft",
    .schema = "ifft(Tensor input, int? n=None, int dim=-1, str norm='backward') -> Tensor", .formula = "y_t = s·Σ_k x_k·e^(2πi kt/n)",
    .rule = "dx = s·fft(g), cut or continued with zeros", .flops = transform_flops,
    .apply = [](OpCall& c) { c.result(ifft(c.tensor("input"), length_of(c), c.integer("dim", -1), c.word("norm", "backward"))); }};
Tensor ifft(Arg x, std::optional<i64> n, i64 dim, std::string_view norm) {
  return complex_transform(kIfft, x, n, dim, norm, Direction::inverse);
}

extern constexpr OpInfo kRfft{
    .name = "rfft", .family = "fourier", .doc = "discrete Fourier transform of real numbers: the bins 0 to n/2",
    .schema = "rfft(Tensor input, int? n=None, int dim=-1, str norm='backward') -> Tensor", .formula = "y_k = s·Σ_t x_t·e^(−2πi kt/n)",
    .rule = "dx = s·n·irfft(G'),  G'_k = g_k for k = 0 and n/2, g_k/2 otherwise", .flops = transform_flops,
    .apply = [](OpCall& c) { c.result(rfft(c.tensor("input"), length_of(c), c.integer("dim", -1), c.word("norm", "backward"))); }};
Tensor rfft(Arg x, std::optional<i64> length, i64 dim, std::string_view norm) {
  const Transform t = check_fourier("rfft", x, false, length, dim, norm, Direction::forward);
  const i64 bins = t.n / 2 + 1;
  Tensor y = transformed(*x, t.axis, false, true, bins, [&](auto* from, auto* to, i64 rows) {
    kernels::fft_real(from, t.length, to, t.n, rows, t.scale);
  });
  return record(kRfft, std::move(y), {x}, [&](Saver&) {
    return [t, bins](Tensor g, const Need&) -> Grads {
      const Tensor w = bin_weights(t.n, bins, t.scale, t.scale / 2, g.dim() - 1 - t.axis, g.dtype());
      return {resized(irfft(mul(g, w), t.n, t.axis, "forward"), t.axis, t.length)};
    };
  }, [&](Attrs& at) { at("n", t.n); at("dim", i64{t.axis}); at("norm", std::string(norm)); });
}

extern constexpr OpInfo kIrfft{
    .name = "irfft", .family = "fourier", .doc = "inverse of rfft: real numbers of the bins 0 to n/2",
    .schema = "irfft(Tensor input, int? n=None, int dim=-1, str norm='backward') -> Tensor",
    .formula = "y_t = s·Re(x_0 + 2·Σ_(0<k<n/2) x_k·e^(2πi kt/n) + (−1)^t·x_(n/2))",
    .rule = "dx_k = s·c_k·rfft(g)_k,  c_k = 1 for k = 0 and n/2, 2 otherwise", .flops = transform_flops,
    .apply = [](OpCall& c) { c.result(irfft(c.tensor("input"), length_of(c), c.integer("dim", -1), c.word("norm", "backward"))); }};
Tensor irfft(Arg x, std::optional<i64> length, i64 dim, std::string_view norm) {
  const Transform t = check_fourier("irfft", x, true, length, dim, norm, Direction::inverse);
  Tensor y = transformed(*x, t.axis, true, false, t.n, [&](auto* from, auto* to, i64 rows) {
    kernels::fft_to_real(from, t.length, to, t.n, rows, t.scale);
  });
  return record(kIrfft, std::move(y), {x}, [&](Saver&) {
    return [t](Tensor g, const Need&) -> Grads {
      const i64 bins = t.n / 2 + 1;
      const Tensor w = bin_weights(t.n, bins, t.scale, 2 * t.scale, g.dim() - t.axis, g.dtype());
      return {resized(mul(rfft(g, {}, t.axis), w), t.axis, t.length)};
    };
  }, [&](Attrs& at) { at("n", t.n); at("dim", i64{t.axis}); at("norm", std::string(norm)); });
}

}  // namespace waymark
