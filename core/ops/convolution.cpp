// A convolution is a sum over its taps k of products W[:, :, k]·x[:, k·dilation + t·stride]; no patches are copied. Its
// gradients are two more bilinear maps, and the gradients of those are among the three again: so any order works.
#include "core/ops/convolution.h"

#include <algorithm>

#include "core/kernels/depthwise.h"
#include "core/ops/arithmetic.h"
#include "core/ops/products.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

struct Geometry {
  i64 stride = 1, left = 0, right = 0, dilation = 1, groups = 1;
  i64 length = 0, taps = 1, outputs = 0;  // of x (unpadded), of the kernel, of y
  i64 padded() const { return length + left + right; }
};

// x (N, C, L) with zeros on both sides, contiguous.
Tensor padded_value(const Tensor& x, const Geometry& g) {
  if (g.left == 0 && g.right == 0) return contiguous_value(x);
  Tensor out = make_empty({x.shape()[0], x.shape()[1], g.padded()}, x.dtype());
  fill_into(out, 0);
  copy_into(Window{.dim = 2, .start = g.left, .length = g.length}.of(out), x);
  return out;
}
// (a, b, K) -> (K, a, b), contiguous: a matrix for every tap.
Tensor taps_first(const Tensor& w) {
  const Shape &s = w.shape(), &t = w.strides();
  return contiguous_value(alias(w, {s[2], s[0], s[1]}, {t[2], t[0], t[1]}, w.offset()));
}
kernels::DepthwiseStep depthwise_step(const Geometry& g) { return {g.taps, g.dilation, g.stride, g.outputs}; }
bool is_depthwise(i64 outputs_per_group, i64 inputs_per_group) { return outputs_per_group == 1 && inputs_per_group == 1; }

template <class T> using View = kernels::MatrixView<T>;

// y (N, Co, Lo) += conv of x (N, Ci, L) with w (Co, Ci/groups, K).
void correlate_into(const Tensor& y, const Tensor& x, const Tensor& w, const Geometry& g) {
  const Tensor in = padded_value(x, g);
  const i64 n = x.shape()[0], ci = x.shape()[1], co = w.shape()[0], cg = w.shape()[1], og = co / g.groups, lo = g.outputs, lp = g.padded();
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (is_depthwise(og, cg)) {
      const Tensor weight = contiguous_value(w);
      return kernels::depthwise<T>(depthwise_step(g), in.data<T>(), lp, weight.data<T>(), co, y.data<T>(), n * co);
    }
    const Tensor weight = taps_first(w);
    const kernels::BatchAxis axes[] = {{n, 0, ci * lp, co * lo}, {g.groups, og * cg, cg * lp, og * lo}};
    for (i64 k = 0; k < g.taps; ++k)
      kernels::bmm<T>(axes, og, lo, cg, T(1), View<T>{weight.data<T>() + k * co * cg, cg, 1},
                      View<T>{in.data<T>() + k * g.dilation, lp, g.stride}, T(1), y.data<T>(), lo);
  });
}

// The adjoint in x: (N, Ci, L) of z (N, Co, Lo).
Tensor spread_value(const Tensor& z, const Tensor& w, const Geometry& g) {
  const Tensor in = contiguous_value(z);
  const i64 n = z.shape()[0], co = w.shape()[0], cg = w.shape()[1], ci = cg * g.groups, og = co / g.groups, lo = g.outputs, lp = g.padded();
  Tensor out = make_empty({n, ci, lp}, z.dtype());
  fill_into(out, 0);
  visit_float(z.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (is_depthwise(og, cg)) {
      const Tensor weight = contiguous_value(w);
      return kernels::depthwise_adjoint<T>(depthwise_step(g), in.data<T>(), weight.data<T>(), co, out.data<T>(), lp, n * co);
    }
    const Tensor weight = taps_first(w);
    const Tensor part = g.stride == 1 ? Tensor() : make_empty({n, ci, lo}, z.dtype());
    const i64 row = g.stride == 1 ? lp : lo;
    const kernels::BatchAxis axes[] = {{n, 0, co * lo, ci * row}, {g.groups, og * cg, og * lo, cg * row}};
    for (i64 k = 0; k < g.taps; ++k) {
      T* const to = g.stride == 1 ? out.data<T>() + k * g.dilation : part.data<T>();
      kernels::bmm<T>(axes, cg, lo, og, T(1), View<T>{weight.data<T>() + k * co * cg, 1, cg}, View<T>{in.data<T>(), lo, 1},
                      g.stride == 1 ? T(1) : T(0), to, row);
      if (g.stride == 1) continue;
      const Tensor window = Window{.dim = 2, .start = k * g.dilation, .length = lo, .step = g.stride}.of(out);
      binary_into("conv1d", kernels::Binary::add, window, window, part);
    }
  });
  return g.left == 0 && g.right == 0 ? out : contiguous_value(Window{.dim = 2, .start = g.left, .length = g.length}.of(out));
}

// The adjoint in w: (Co, Ci/groups, K) of x (N, Ci, L) and z (N, Co, Lo).
Tensor weight_value(const Tensor& x, const Tensor& z, const Geometry& g) {
  const Tensor in = padded_value(x, g), gradient = contiguous_value(z);
  const i64 n = x.shape()[0], ci = x.shape()[1], co = z.shape()[1], cg = ci / g.groups, og = co / g.groups, lo = g.outputs, lp = g.padded();
  return visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (is_depthwise(og, cg)) {
      Tensor dw = make_empty({co, cg, g.taps}, x.dtype());
      kernels::depthwise_weight<T>(depthwise_step(g), in.data<T>(), lp, gradient.data<T>(), co, dw.data<T>(), n * co);
      return dw;
    }
    Tensor taps = make_empty({g.taps, co, cg}, x.dtype());
    fill_into(taps, 0);
    const kernels::BatchAxis axes[] = {{g.groups, og * lo, cg * lp, og * cg}};
    for (i64 i = 0; i < n; ++i)
      for (i64 k = 0; k < g.taps; ++k)
        kernels::bmm<T>(axes, og, cg, lo, T(1), View<T>{gradient.data<T>() + i * co * lo, lo, 1},
                        View<T>{in.data<T>() + i * ci * lp + k * g.dilation, g.stride, lp}, T(1), taps.data<T>() + k * co * cg, cg);
    return contiguous_value(alias(taps, {co, cg, g.taps}, {cg, 1, co * cg}, 0));
  });
}

Tensor convolve(const Arg& x, const Arg& w, const Tensor& bias, const Geometry& g);
Tensor spread_taps(const Arg& z, const Arg& w, const Geometry& g);
Tensor weight_gradient(const Arg& x, const Arg& z, const Geometry& g);

}  // namespace

#define WAYMARK_CONV_FLOPS                                                                                              \
  [](OpCall& c) {                                                                                                       \
    const Tensor &x = c.tensor("input"), &w = c.tensor("weight");                                                       \
    return 2.0 * static_cast<double>(x.numel()) * static_cast<double>(w.numel()) / static_cast<double>(std::max<i64>(1, w.shape()[1])); \
  }

extern constexpr OpInfo kConv1d{
    .name = "conv1d", .family = "convolution", .doc = "cross-correlation along the last axis",
    .schema = "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int stride=1, int|str padding=0, int dilation=1, int groups=1) -> Tensor",
    .formula = "y[n,o,t] = b_o + Σ_(c,k) w[o,c,k]·x[n,c,t·stride + k·dilation − pad]",
    .rule = "dx = transposed convolution of g,  dw[o,c,k] = Σ_(n,t) g[n,o,t]·x[n,c,t·stride + k·dilation − pad],  db = Σ_(n,t) g",
    .saves = {{"input", For{1}}, {"weight", For{0}}}, .flops = WAYMARK_CONV_FLOPS,
    .apply = [](OpCall& c) {
      std::string word;  // outlives the call
      ConvPadding padding = 0;
      if (c.is_word("padding")) padding = std::string_view(word = c.word("padding"));
      else padding = c.integer("padding", 0);
      c.result(conv1d(c.tensor("input"), c.tensor("weight"), c.optional_tensor("bias"), c.integer("stride", 1), padding,
                      c.integer("dilation", 1), c.integer("groups", 1)));
    }};
extern constexpr OpInfo kConvTranspose1d{
    .name = "conv_transpose1d", .family = "convolution", .doc = "the adjoint of conv1d in its input",
    .schema = "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int stride=1, int padding=0, int output_padding=0, "
              "int groups=1, int dilation=1) -> Tensor",
    .formula = "y[n,c,t·stride + k·dilation − pad] += Σ_o w[o,c,k]·x[n,o,t]",
    .rule = "dx = conv1d of g,  dw[o,c,k] = Σ_(n,t) x[n,o,t]·g[n,c,t·stride + k·dilation − pad]",
    .saves = {{"input", For{1}}, {"weight", For{0}}}, .flops = WAYMARK_CONV_FLOPS,
    .apply = [](OpCall& c) {
      c.result(conv_transpose1d(c.tensor("input"), c.tensor("weight"), c.optional_tensor("bias"), c.integer("stride", 1),
                                c.integer("padding", 0), c.integer("output_padding", 0), c.integer("groups", 1), c.integer("dilation", 1)));
    }};
extern constexpr OpInfo kConv1dWeight{
    .name = "conv1d_weight", .family = "convolution", .doc = "the gradient of conv1d in its weight",
    .schema = "conv1d_weight(Tensor input, Tensor grad) -> Tensor", .formula = "w[o,c,k] = Σ_(n,t) z[n,o,t]·x[n,c,t·stride + k·dilation − pad]",
    .rule = "dx = transposed convolution of z with g,  dz = convolution of x with g", .saves = {{"input", For{1}}, {"grad", For{0}}}};

namespace {

Tensor convolve(const Arg& x, const Arg& w, const Tensor& bias, const Geometry& g) {
  const Tensor y = make_empty({x->shape()[0], w->shape()[0], g.outputs}, x->dtype());
  if (bias.defined()) copy_into(y, expand_value(alias(bias, {bias.shape()[0], 1}, {bias.strides()[0], 1}, bias.offset()), y.shape()));
  else fill_into(y, 0);
  correlate_into(y, *x, *w, g);
  return record(kConv1d, y, {x, w, bias}, [&](Saver& s) {
    return [g, x = s.input(0, s.needs(1)), w = s.input(1, s.needs(0))](Tensor gy, const Need& need) -> Grads {
      return {need[0] ? spread_taps(gy, *w, g) : Tensor(), need[1] ? weight_gradient(*x, gy, g) : Tensor(),
              need[2] ? sum(gy, {0, 2}) : Tensor()};
    };
  }, [&](Attrs& at) {
    at("stride", g.stride);
    if (g.left == g.right) at("padding", g.left);
    else at("padding", std::string("same"));
    at("dilation", g.dilation);
    at("groups", g.groups);
  });
}

Tensor spread_taps(const Arg& z, const Arg& w, const Geometry& g) {
  return record(kConvTranspose1d, spread_value(*z, *w, g), {z, w}, [&](Saver& s) {
    return [g, z = s.input(0, s.needs(1)), w = s.input(1, s.needs(0))](Tensor gx, const Need& need) -> Grads {
      return {need[0] ? convolve(gx, *w, Tensor(), g) : Tensor(), need[1] ? weight_gradient(gx, *z, g) : Tensor()};
    };
  }, [&](Attrs& at) {
    at("stride", g.stride);
    at("padding", g.left);
    // What the last window leaves over at the end; the padding there may differ by one.
    at("output_padding", g.length + g.left + g.left - ((g.outputs - 1) * g.stride + g.dilation * (g.taps - 1) + 1));
    at("dilation", g.dilation);
    at("groups", g.groups);
  });
}

Tensor weight_gradient(const Arg& x, const Arg& z, const Geometry& g) {
  return record(kConv1dWeight, weight_value(*x, *z, g), {x, z}, [&](Saver& s) {
    return [g, x = s.input(0, s.needs(1)), z = s.input(1, s.needs(0))](Tensor gw, const Need& need) -> Grads {
      return {need[0] ? spread_taps(*z, gw, g) : Tensor(), need[1] ? convolve(*x, gw, Tensor(), g) : Tensor()};
    };
  });
}

// Checks what both have in common; `in_axis` and `out_axis` are the weight's axes of input and output channels.
void check_conv(std::string_view op, const Arg& x, const Arg& w, const Tensor& bias, i64 stride, i64 dilation, i64 groups, bool transposed) {
  check_defined(op, x);
  check_defined(op, w);
  need_float(op, *x);
  check_product_dtypes(op, x, w);
  const char* form = transposed ? "[Ci, Co/groups, K]" : "[Co, Ci/groups, K]";
  if (x->dim() != 2 && x->dim() != 3) fail_at(x.loc(), op, "the input must be [N, Ci, L] or [Ci, L], got {}", x->shape());
  if (w->dim() != 3) fail_at(x.loc(), op, "the weight must be {}, got {}", form, w->shape());
  if (stride < 1 || dilation < 1 || groups < 1)
    fail_at(x.loc(), op, "stride, dilation and groups must be at least 1, got {}, {} and {}", stride, dilation, groups);
  const i64 channels = x->shape().at(-2), wanted = transposed ? w->shape()[0] : w->shape()[1] * groups;
  if (w->shape()[0] % groups != 0)
    fail_at(x.loc(), op, "the first extent of the weight {} cannot be cut into {} groups", w->shape(), groups);
  if (channels != wanted)
    fail_at(x.loc(), op, "the input {} has {} channels, but the weight {} ({}) with {} groups takes {}", x->shape(), channels, w->shape(), form, groups, wanted);
  if (w->shape()[2] < 1) fail_at(x.loc(), op, "the weight {} has no taps", w->shape());
  if (!bias.defined()) return;
  const i64 outputs = transposed ? w->shape()[1] * groups : w->shape()[0];
  if (bias.shape() != Shape{outputs}) fail_at(x.loc(), op, "the bias must be [{}], got {}", outputs, bias.shape());
  if (bias.dtype() != x->dtype())
    fail_at(x.loc(), op, "dtypes differ: {} + bias {}; convert one with to(...)", name_of(x->dtype()), name_of(bias.dtype()));
}

}  // namespace

Tensor conv1d(Arg x, Arg weight, const Tensor& bias, i64 stride, ConvPadding padding, i64 dilation, i64 groups) {
  check_conv("conv1d", x, weight, bias, stride, dilation, groups, false);
  Geometry g{.stride = stride, .dilation = dilation, .groups = groups, .length = x->shape().back(),
             .taps = weight->shape()[2]};
  if (padding.word() == "same") {
    if (stride != 1) fail_at(x.loc(), "conv1d", "padding \"same\" needs stride 1, got {}", stride);
    g.left = dilation * (g.taps - 1) / 2;
    g.right = dilation * (g.taps - 1) - g.left;
  } else if (!padding.word().empty()) {
    if (padding.word() != "valid") fail_at(x.loc(), "conv1d", "padding is a number, \"same\" or \"valid\", not \"{}\"", padding.word());
  } else {
    if (padding.both() < 0) fail_at(x.loc(), "conv1d", "padding must not be negative, got {}", padding.both());
    g.left = g.right = padding.both();
  }
  if (g.padded() < dilation * (g.taps - 1) + 1)
    fail_at(x.loc(), "conv1d", "the kernel spans {} positions (K = {}, dilation {}), the padded input has only {}", dilation * (g.taps - 1) + 1,
            g.taps, dilation, g.padded());
  g.outputs = (g.padded() - dilation * (g.taps - 1) - 1) / stride + 1;
  if (x->dim() == 3) return convolve(x, weight, bias, g);
  return squeeze(Arg(convolve(Arg(unsqueeze(x, 0), x.loc()), weight, bias, g), x.loc()), 0);
}

Tensor conv_transpose1d(Arg x, Arg weight, const Tensor& bias, i64 stride, i64 padding, i64 output_padding, i64 groups, i64 dilation) {
  check_conv("conv_transpose1d", x, weight, bias, stride, dilation, groups, true);
  if (padding < 0) fail_at(x.loc(), "conv_transpose1d", "padding must not be negative, got {}", padding);
  if (output_padding < 0 || output_padding >= std::max(stride, dilation))
    fail_at(x.loc(), "conv_transpose1d", "output_padding must be at least 0 and less than stride or dilation, got {}", output_padding);
  Geometry g{.stride = stride, .left = padding, .right = padding, .dilation = dilation, .groups = groups, .length = 0,
             .taps = weight->shape()[2], .outputs = x->shape().back()};
  g.length = (x->shape().back() - 1) * stride - 2 * padding + dilation * (g.taps - 1) + output_padding + 1;
  if (x->shape().back() < 1 || g.length < 1)
    fail_at(x.loc(), "conv_transpose1d", "the result of length {} would be empty; the input is {}", g.length, x->shape());
  // The zeros that output_padding adds are positions that no output of the convolution reaches.
  const Tensor z = x->dim() == 3 ? *x : unsqueeze(x, 0);
  Tensor y = spread_taps(Arg(z, x.loc()), weight, g);
  if (x->dim() == 2) y = squeeze(Arg(y, x.loc()), 0);
  return bias.defined() ? add(Arg(y, x.loc()), unsqueeze(bias, 1)) : y;
}

}  // namespace waymark
