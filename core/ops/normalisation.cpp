#include "core/ops/normalisation.h"

#include <limits>

#include "core/kernels/norm.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

void check_parameter(std::string_view op, const char* what, const Arg& x, const Tensor& p, const Shape& shape) {
  if (!p.defined()) return;
  if (p.shape() != shape) fail_at(x.loc(), op, "the {} must be {}, got {}", what, shape, p.shape());
  if (p.dtype() != x->dtype())
    fail_at(x.loc(), op, "dtypes differ: {} and {} {}; convert one with to(...)", name_of(x->dtype()), what, name_of(p.dtype()));
}

void check_norm(std::string_view op, const Arg& x, const Shape& shape) {
  check_defined(op, x);
  need_float(op, *x);
  if (shape.empty()) fail_at(x.loc(), op, "normalized_shape must have at least one axis");
  const int lead = x->dim() - shape.size();
  bool fits = lead >= 0;
  for (int i = 0; fits && i < shape.size(); ++i) fits = x->shape()[lead + i] == shape[i];
  if (!fits) fail_at(x.loc(), op, "normalized_shape {} is not the end of the input's shape {}", shape, x->shape());
}

// The last `axes` axes, as a reduction takes them.
Dims last_axes(int axes) {
  std::vector<i64> dims;
  for (i64 i = -axes; i < 0; ++i) dims.push_back(i);
  return dims;
}

// Pieces of both norms in plain ops, differentiable: x̂ and 1/√(...).
struct Normalised {
  Tensor xhat, inverse;
};
Normalised layer_normalised(const Tensor& x, int axes, double eps) {
  const Dims dims = last_axes(axes);
  const Tensor deviation = sub(x, mean(x, dims, true)), shift = mean(deviation, dims, true);
  const Tensor variance = sub(mean(square(deviation), dims, true), square(shift));
  const Tensor inverse = rsqrt(add(variance, eps));
  return {mul(sub(deviation, shift), inverse), inverse};
}
Normalised rms_normalised(const Tensor& x, int axes, double eps) {
  const Tensor inverse = rsqrt(add(mean(square(x), last_axes(axes), true), eps));
  return {mul(x, inverse), inverse};
}
Tensor affine(Tensor t, const Tensor& w, const Tensor& b) {
  if (w.defined()) t = mul(t, w);
  return b.defined() ? add(t, b) : t;
}

template <class T> kernels::RowMoments<T>* moments_of(const Tensor& stats) {
  return stats.defined() ? reinterpret_cast<kernels::RowMoments<T>*>(stats.data<T>()) : nullptr;
}
template <class T> T* data_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }

Tensor optional_contiguous(const Tensor& t) { return t.defined() ? contiguous_value(t) : Tensor(); }

}  // namespace

// ---- layer_norm -----------------------------------------------------------------------------------------------------

extern constexpr OpInfo kLayerNorm{
    .name = "layer_norm", .family = "normalisation", .doc = "rows shifted and scaled to mean 0 and variance 1, then w and b",
    .schema = "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
    .formula = "y = x̂⊙w + b,  x̂ = (x − μ)·ρ,  ρ = 1/√(σ² + ε)",
    .rule = "ĝ = g⊙w:  dx = ρ·(ĝ − mean ĝ − x̂·mean(ĝ⊙x̂)),  dw = Σ g⊙x̂,  db = Σ g",
    .saves = {{"input", For{0, 1}}, {"weight", For{0}}, {"row statistics", For{0, 1}}}, .twin = "layer_norm_twin",
    .flops = [](OpCall& c) { return 8.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      c.result(layer_norm(c.tensor("input"), Shape(c.list("normalized_shape")), c.optional_tensor("weight"),
                          c.optional_tensor("bias"), c.number("eps", 1e-5)));
    }};

Tensor layer_norm(Arg x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  check_norm("layer_norm", x, normalized_shape);
  check_parameter("layer_norm", "weight", x, weight, normalized_shape);
  check_parameter("layer_norm", "bias", x, bias, normalized_shape);
  const int axes = normalized_shape.size();
  if (explain_mode()) return affine(layer_normalised(*x, axes, eps).xhat, weight, bias);
  const Tensor in = contiguous_value(*x), w = optional_contiguous(weight), b = optional_contiguous(bias);
  const auto [rows, n] = row_count(in, axes);
  Tensor y = make_empty(x->shape(), x->dtype());
  const Tensor stats = nothing_recorded({&*x, &weight, &bias}) ? Tensor() : make_empty({rows, 3}, x->dtype());
  visit_float(x->dtype(), [&, rows = rows, n = n](auto zero) {
    using T = decltype(zero);
    kernels::layer_norm<T>(in.data<T>(), data_or_null<T>(w), data_or_null<T>(b), static_cast<T>(eps), y.data<T>(),
                           moments_of<T>(stats), rows, n);
  });
  return record(kLayerNorm, std::move(y), {x, weight, bias}, [&](Saver& s) {
    const bool statistics = s.needs(0) || s.needs(1);
    return [axes, eps, x = s.input(0, statistics), w = s.input(1, s.needs(0)),
            stats = s.stats(statistics ? stats : Tensor())](Tensor g, const Need& need) -> Grads {
      if (!need[0] && !need[1]) return {Tensor(), Tensor(), std::move(g)};  // summed over rows at the edge
      const Tensor gain = need[0] && w ? *w : Tensor();
      if (!fused_backward_allowed()) {
        const auto [xhat, inverse] = layer_normalised(*x, axes, eps);
        Tensor dx;
        if (need[0]) {
          const Tensor gw = gain.defined() ? mul(g, gain) : g;
          const Dims dims = last_axes(axes);
          dx = mul(inverse, sub(sub(gw, mean(gw, dims, true)), mul(xhat, mean(mul(gw, xhat), dims, true))));
        }
        return {std::move(dx), need[1] ? mul(g, xhat) : Tensor(), need[2] ? g : Tensor()};
      }
      const Tensor input = contiguous_value(*x), w_dense = optional_contiguous(gain), moments = *stats;
      Tensor from = g.is_contiguous() ? std::move(g) : contiguous_value(g);
      const auto [count, width] = row_count(input, axes);
      const Shape shape(std::span<const i64>(input.shape().end() - axes, static_cast<size_t>(axes)));
      return visit_float(input.dtype(), [&, count = count, width = width](auto zero) -> Grads {
        using T = decltype(zero);
        const T* const gradient = from.template data<T>();
        const Tensor dw = need[1] ? make_empty(shape, input.dtype()) : Tensor();
        const Tensor db = need[2] ? make_empty(shape, input.dtype()) : Tensor();
        const Tensor dx = need[0] ? output_like(std::move(from)) : Tensor();
        kernels::layer_norm_backward<T>(input.data<T>(), data_or_null<T>(w_dense), moments_of<T>(moments), gradient,
                                        data_or_null<T>(dx), data_or_null<T>(dw), data_or_null<T>(db), count, width);
        return {dx, dw, db};
      });
    };
  }, [&](Attrs& at) { at("normalized_shape", normalized_shape.vec()); at("eps", eps); });
}

// ---- rms_norm -------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kRmsNorm{
    .name = "rms_norm", .family = "normalisation", .doc = "rows scaled to root mean square 1, then w",
    .schema = "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    .formula = "y = x̂⊙w,  x̂ = x·ρ,  ρ = 1/√(mean x² + ε)",
    .rule = "ĝ = g⊙w:  dx = ρ·(ĝ − x̂·mean(ĝ⊙x̂)),  dw = Σ g⊙x̂",
    .saves = {{"input", For{0, 1}}, {"weight", For{0}}, {"row statistics", For{0, 1}}}, .twin = "rms_norm_twin",
    .flops = [](OpCall& c) { return 5.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      std::optional<double> eps;
      if (c.has("eps")) eps = c.number("eps");
      c.result(rms_norm(c.tensor("input"), Shape(c.list("normalized_shape")), c.optional_tensor("weight"), eps));
    }};

Tensor rms_norm(Arg x, const Shape& normalized_shape, const Tensor& weight, std::optional<double> eps_or_default) {
  check_norm("rms_norm", x, normalized_shape);
  check_parameter("rms_norm", "weight", x, weight, normalized_shape);
  const double eps = eps_or_default.value_or(x->dtype() == kF64 ? std::numeric_limits<double>::epsilon()
                                                                : double{std::numeric_limits<float>::epsilon()});
  const int axes = normalized_shape.size();
  if (explain_mode()) return affine(rms_normalised(*x, axes, eps).xhat, weight, Tensor());
  const Tensor in = contiguous_value(*x), w = optional_contiguous(weight);
  const auto [rows, n] = row_count(in, axes);
  Tensor y = make_empty(x->shape(), x->dtype());
  const Tensor stats = nothing_recorded({&*x, &weight}) ? Tensor() : make_empty({rows}, x->dtype());
  visit_float(x->dtype(), [&, rows = rows, n = n](auto zero) {
    using T = decltype(zero);
    kernels::rms_norm<T>(in.data<T>(), data_or_null<T>(w), static_cast<T>(eps), y.data<T>(), data_or_null<T>(stats), rows, n);
  });
  return record(kRmsNorm, std::move(y), {x, weight}, [&](Saver& s) {
    return [axes, eps, x = s.input(0), w = s.input(1, s.needs(0)), stats = s.stats(stats)](Tensor g, const Need& need) -> Grads {
      const Tensor gain = need[0] && w ? *w : Tensor();
      if (!fused_backward_allowed()) {
        const auto [xhat, inverse] = rms_normalised(*x, axes, eps);
        Tensor dx;
        if (need[0]) {
          const Tensor gw = gain.defined() ? mul(g, gain) : g;
          dx = mul(inverse, sub(gw, mul(xhat, mean(mul(gw, xhat), last_axes(axes), true))));
        }
        return {std::move(dx), need[1] ? mul(g, xhat) : Tensor()};
      }
      const Tensor input = contiguous_value(*x), w_dense = optional_contiguous(gain), inverses = *stats;
      Tensor from = g.is_contiguous() ? std::move(g) : contiguous_value(g);
      const auto [count, width] = row_count(input, axes);
      const Shape shape(std::span<const i64>(input.shape().end() - axes, static_cast<size_t>(axes)));
      return visit_float(input.dtype(), [&, count = count, width = width](auto zero) -> Grads {
        using T = decltype(zero);
        const T* const gradient = from.template data<T>();
        const Tensor dw = need[1] ? make_empty(shape, input.dtype()) : Tensor();
        const Tensor dx = need[0] ? output_like(std::move(from)) : Tensor();
        kernels::rms_norm_backward<T>(input.data<T>(), data_or_null<T>(w_dense), inverses.data<T>(), gradient,
                                      data_or_null<T>(dx), data_or_null<T>(dw), count, width);
        return {dx, dw};
      });
    };
  }, [&](Attrs& at) { at("normalized_shape", normalized_shape.vec()); at("eps", eps); });
}

// ---- group_norm -----------------------------------------------------------------------------------------------------

extern constexpr OpInfo kGroupNorm{
    .name = "group_norm", .family = "normalisation", .doc = "layer norm over groups of channels, by layer_norm, mul and add",
    .schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
    .formula = "y = x̂⊙w + b, x̂ normalised over each group of channels", .rule = "as layer_norm, mul and add",
    .flops = [](OpCall& c) { return 8.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      c.result(group_norm(c.tensor("input"), c.integer("num_groups"), c.optional_tensor("weight"), c.optional_tensor("bias"),
                          c.number("eps", 1e-5)));
    }};

Tensor group_norm(Arg x, i64 num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  check_defined("group_norm", x);
  need_float("group_norm", *x);
  if (x->dim() < 2) fail_at(x.loc(), "group_norm", "the input must be [N, C, ...], got {}", x->shape());
  const i64 channels = x->shape()[1];
  if (num_groups < 1 || channels % num_groups != 0)
    fail_at(x.loc(), "group_norm", "{} channels cannot be cut into {} equal groups", channels, num_groups);
  check_parameter("group_norm", "weight", x, weight, {channels});
  check_parameter("group_norm", "bias", x, bias, {channels});
  i64 inner = channels / num_groups;
  for (int i = 2; i < x->dim(); ++i) inner *= x->shape()[i];
  const Tensor groups = reshape(x, {x->shape()[0] * num_groups, inner});
  Tensor y = reshape(Arg(layer_norm(Arg(groups, x.loc()), {inner}, Tensor(), Tensor(), eps), x.loc()), x->shape());
  Shape per_channel(x->dim() - 1, 1);
  per_channel[0] = channels;
  if (weight.defined()) y = mul(Arg(y, x.loc()), reshape(weight, per_channel));
  if (bias.defined()) y = add(Arg(y, x.loc()), reshape(bias, per_channel));
  return y;
}

}  // namespace waymark
