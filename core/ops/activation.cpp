#include "core/ops/activation.h"

#include <array>

#include "core/kernels/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {

using kernels::Activation;
using kernels::Binary;
using kernels::Unary;
using namespace ops;

// ---- relu, gelu, silu -----------------------------------------------------------------------------------------------

extern constexpr OpInfo kRelu{
    .name = "relu", .family = "activation", .doc = "rectifier", .schema = "relu(Tensor input) -> Tensor",
    .formula = "y = max(x, 0)", .rule = "dx = y ≤ 0 ? 0 : g", .saves = {{"output", For{0}}}, .kinks = "x = 0",
    .apply = [](OpCall& c) { c.result(relu(c.tensor("input"))); }};

Tensor relu(Arg x) {
  check_defined("relu", x);
  if (x->dtype() == kB8) fail_at(x.loc(), "relu", "b8 is not supported; convert with to(...)");
  return record(kRelu, unary_value("relu", Unary::relu, x, x->dtype(), {}, true), {x}, [](Saver& s) {
    return [y = s.output()](Tensor g, const Need&) -> Grads {
      if (fused_backward_allowed()) return {binary_value("relu", Binary::relu_backward, std::move(g), *y, y->dtype(), true)};
      return {masked_fill(g, le(*y, 0), 0)};
    };
  });
}

namespace {

// An activation of elementwise.h whose rule needs x: backward(g, x) as one kernel, composed(g, x) in ops.
template <class Composed>
Tensor from_input(const OpInfo& op, Unary loop, Binary backward, const Arg& x, Composed composed) {
  check_defined(op.name, x);
  need_float(op.name, *x);
  const bool free = nothing_recorded({&*x});
  return record(op, unary_value(op.name, loop, x, x->dtype(), {}, free), {x}, [&](Saver& s) {
    return [name = op.name, backward, composed, x = s.input(0)](Tensor g, const Need&) -> Grads {
      const Tensor v = *x;
      if (fused_backward_allowed()) return {binary_value(name, backward, std::move(g), v, v.dtype(), true)};
      return {composed(g, v)};
    };
  }, [&](Attrs& at) { if (op.name == "gelu") at("approximate", std::string(loop == Unary::gelu_tanh ? "tanh" : "none")); });
}

}  // namespace

// The meaning of gelu and silu in plain ops.
static constexpr double kSqrtHalf = 0.70710678118654752440, kDensity = 0.39894228040143267794,
                        kTanh = 0.79788456080286535588, kCubic = 0.044715;
static Tensor gelu_twin(const Tensor& x, bool by_tanh) {
  if (by_tanh) return mul(mul(x, 0.5), add(tanh(mul(add(x, mul(square(x), x), kCubic), kTanh)), 1));
  return mul(x, mul(add(erf(mul(x, kSqrtHalf)), 1), 0.5));
}
static Tensor silu_twin(const Tensor& x) { return mul(x, sigmoid(x)); }

extern constexpr OpInfo kGelu{
    .name = "gelu", .family = "activation", .doc = "Gaussian error linear unit",
    .schema = "gelu(Tensor input, *, str approximate='none') -> Tensor", .formula = "y = x·Φ(x)",
    .rule = "dx = g·(Φ(x) + x·φ(x)); tanh: g·(½(1+t) + ½x(1−t²)·√(2/π)·(1 + 0.134145x²)), t = tanh √(2/π)(x + 0.044715x³)",
    .saves = {{"input", For{0}}}, .twin = "gelu_twin", .flops = [](OpCall& c) { return 20.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) { c.result(gelu(c.tensor("input"), c.word("approximate", "none"))); }};

Tensor gelu(Arg x, std::string_view approximate) {
  const bool by_tanh = approximate == "tanh";
  if (!by_tanh && approximate != "none")
    fail_at(x.loc(), "gelu", "approximate is \"none\" or \"tanh\", not \"{}\"", approximate);
  if (explain_mode() && x->defined() && is_float(x->dtype())) return gelu_twin(*x, by_tanh);
  if (by_tanh)
    return from_input(kGelu, Unary::gelu_tanh, Binary::gelu_tanh_backward, x, [](const Tensor& g, const Tensor& v) {
      const Tensor cube = mul(square(v), v), t = tanh(mul(add(v, cube, kCubic), kTanh));
      const Tensor slope = mul(add(mul(square(v), 3 * kCubic), 1), kTanh);
      return mul(g, mul(add(add(t, 1), mul(mul(v, rsub(square(t), 1)), slope)), 0.5));
    });
  return from_input(kGelu, Unary::gelu, Binary::gelu_backward, x, [](const Tensor& g, const Tensor& v) {
    const Tensor below = mul(add(erf(mul(v, kSqrtHalf)), 1), 0.5), density = mul(exp(mul(square(v), -0.5)), kDensity);
    return mul(g, add(below, mul(v, density)));
  });
}

extern constexpr OpInfo kSilu{
    .name = "silu", .family = "activation", .doc = "sigmoid-weighted linear unit (swish)",
    .schema = "silu(Tensor input) -> Tensor", .formula = "y = x·σ(x)", .rule = "dx = g·σ·(1 + x·(1−σ))",
    .saves = {{"input", For{0}}}, .twin = "silu_twin", .apply = [](OpCall& c) { c.result(silu(c.tensor("input"))); }};

Tensor silu(Arg x) {
  if (explain_mode() && x->defined() && is_float(x->dtype())) return silu_twin(*x);
  return from_input(kSilu, Unary::silu, Binary::silu_backward, x, [](const Tensor& g, const Tensor& v) {
    const Tensor s = sigmoid(v);
    return mul(g, mul(s, add(mul(v, rsub(s, 1)), 1)));
  });
}

// ---- the loops of kernels/activation.h ------------------------------------------------------------------------------

namespace {

using Parameters = std::array<double, 3>;

// How the schema calls the parameters of a loop, as far as they are the caller's.
const char* const* parameter_names(std::string_view op) {
  struct Names {
    std::string_view op;
    const char* names[4];
  };
  static constexpr Names table[] = {{"leaky_relu", {"negative_slope"}}, {"elu", {"alpha"}}, {"celu", {"alpha"}},
                                    {"hardtanh", {"min_val", "max_val"}}, {"softplus", {"beta", "threshold"}},
                                    {"threshold", {"threshold", "value"}}};
  static constexpr const char* none[] = {nullptr};
  for (const Names& n : table)
    if (n.op == op) return n.names;
  return none;
}

template <class Composed>
Tensor activation(const OpInfo& op, Activation f, const Arg& x, const Parameters& p, Composed composed) {
  check_defined(op.name, x);
  need_float(op.name, *x);
  Tensor y = map_value(kernels::activation_loop(f, x->dtype()), x, p, nothing_recorded({&*x}));
  return record(op, std::move(y), {x}, [&](Saver& s) {
    return [f, p, composed, x = s.input(0)](Tensor g, const Need&) -> Grads {
      const Tensor v = *x;
      if (fused_backward_allowed()) return {zip_value(kernels::activation_backward_loop(f, v.dtype()), g, v, p)};
      return {composed(g, v)};
    };
  }, [&](Attrs& at) {
    const char* const* names = parameter_names(op.name);
    for (size_t i = 0; i < p.size() && names[i]; ++i) at(names[i], p[i]);
  });
}

// g inside (lo, hi) and where x is NaN, 0 elsewhere.
Tensor between(const Tensor& g, const Tensor& x, double lo, double hi) {
  return masked_fill(g, logical_or(le(x, lo), ge(x, hi)), 0);
}

Tensor elu_like(const OpInfo& op, const Arg& x, double alpha, double scale, double inner) {
  return activation(op, Activation::elu, x, {alpha, scale, inner}, [=](const Tensor& g, const Tensor& v) {
    // The exponential of the negative part only: it may not overflow in the branch that is not taken.
    const Tensor e = mul(exp(mul(clamp(v, {}, 0.0), inner)), alpha * scale * inner);
    return where(le(v, 0), mul(g, e), mul(g, scale));
  });
}

}  // namespace

extern constexpr OpInfo kHardtanh{
    .name = "hardtanh", .family = "activation", .doc = "limits to [min_val, max_val]",
    .schema = "hardtanh(Tensor input, float min_val=-1, float max_val=1) -> Tensor", .formula = "y = min(max(x, lo), hi)",
    .rule = "dx = x ≤ lo or x ≥ hi ? 0 : g", .saves = {{"input", For{0}}}, .kinks = "x = min_val, x = max_val",
    .apply = [](OpCall& c) { c.result(hardtanh(c.tensor("input"), c.number("min_val", -1), c.number("max_val", 1))); }};
extern constexpr OpInfo kRelu6{
    .name = "relu6", .family = "activation", .doc = "rectifier that ends at 6", .schema = "relu6(Tensor input) -> Tensor",
    .formula = "y = min(max(x, 0), 6)", .rule = "dx = x ≤ 0 or x ≥ 6 ? 0 : g", .saves = {{"input", For{0}}},
    .kinks = "x = 0, x = 6", .apply = [](OpCall& c) { c.result(relu6(c.tensor("input"))); }};

static Tensor limited(const OpInfo& op, const Arg& x, double lo, double hi) {
  return activation(op, Activation::hardtanh, x, {lo, hi, 0},
                    [=](const Tensor& g, const Tensor& v) { return between(g, v, lo, hi); });
}
Tensor hardtanh(Arg x, double min_val, double max_val) {
  if (!(min_val <= max_val)) fail_at(x.loc(), "hardtanh", "min_val {} is greater than max_val {}", min_val, max_val);
  return limited(kHardtanh, x, min_val, max_val);
}
Tensor relu6(Arg x) { return limited(kRelu6, x, 0, 6); }

extern constexpr OpInfo kLeakyRelu{
    .name = "leaky_relu", .family = "activation", .doc = "rectifier with a slope below 0",
    .schema = "leaky_relu(Tensor input, float negative_slope=0.01) -> Tensor", .formula = "y = x > 0 ? x : slope·x",
    .rule = "dx = x > 0 ? g : slope·g", .saves = {{"input", For{0}}}, .kinks = "x = 0",
    .apply = [](OpCall& c) { c.result(leaky_relu(c.tensor("input"), c.number("negative_slope", 0.01))); }};

Tensor leaky_relu(Arg x, double slope) {
  return activation(kLeakyRelu, Activation::leaky_relu, x, {slope, 0, 0},
                    [=](const Tensor& g, const Tensor& v) { return where(gt(v, 0), g, mul(g, slope)); });
}

extern constexpr OpInfo kPrelu{
    .name = "prelu", .family = "activation", .doc = "rectifier with learned slopes below 0",
    .schema = "prelu(Tensor input, Tensor weight) -> Tensor", .formula = "y = x > 0 ? x : w·x",
    .rule = "dx = x > 0 ? g : w·g,  dw = Σ g·x·[x ≤ 0]", .saves = {{"input", For{0, 1}}, {"weight", For{0}}},
    .kinks = "x = 0", .apply = [](OpCall& c) { c.result(prelu(c.tensor("input"), c.tensor("weight"))); }};

Tensor prelu(Arg x, Arg weight) {
  check_defined("prelu", x);
  check_defined("prelu", weight);
  need_float("prelu", *x);
  if (weight->dtype() != x->dtype())
    fail_at(x.loc(), "prelu", "dtypes differ: {} and weight {}; convert one with to(...)", name_of(x->dtype()), name_of(weight->dtype()));
  const i64 channels = x->dim() >= 2 ? x->shape()[1] : 1;
  if (weight->dim() > 1 || (weight->numel() != 1 && weight->numel() != channels))
    fail_at(x.loc(), "prelu", "the weight must have 1 element, or {} for axis 1 of {}; got {}", channels, x->shape(), weight->shape());
  // The weight as a shape that broadcasts along axis 1.
  Shape along(weight->numel() == 1 ? 0 : x->dim() - 1, 1);
  if (!along.empty()) along[0] = channels;
  const Tensor w = contiguous_value(*weight);
  Tensor y = zip_value(kernels::prelu_loop(x->dtype()), *x, expand_value(alias(w, along, contiguous_strides(along), w.offset()), x->shape()));
  return record(kPrelu, std::move(y), {x, weight}, [&](Saver& s) {
    return [along, shape = weight->shape(), x = s.input(0), w = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      const Tensor positive = gt(*x, 0);
      return {need[0] ? where(positive, g, mul(g, reshape(*w, along))) : Tensor(),
              need[1] ? reshape(sum_to_size(masked_fill(mul(g, *x), positive, 0), along), shape) : Tensor()};
    };
  });
}

extern constexpr OpInfo kElu{
    .name = "elu", .family = "activation", .doc = "exponential linear unit",
    .schema = "elu(Tensor input, float alpha=1) -> Tensor", .formula = "y = x > 0 ? x : α(eˣ − 1)",
    .rule = "dx = x ≤ 0 ? g·α·eˣ : g", .saves = {{"input", For{0}}}, .kinks = "x = 0",
    .apply = [](OpCall& c) { c.result(elu(c.tensor("input"), c.number("alpha", 1))); }};
Tensor elu(Arg x, double alpha) { return elu_like(kElu, x, alpha, 1, 1); }

extern constexpr OpInfo kCelu{
    .name = "celu", .family = "activation", .doc = "exponential linear unit with a continuous derivative",
    .schema = "celu(Tensor input, float alpha=1) -> Tensor", .formula = "y = x > 0 ? x : α(e^(x/α) − 1)",
    .rule = "dx = x ≤ 0 ? g·e^(x/α) : g", .saves = {{"input", For{0}}}, .kinks = "x = 0",
    .apply = [](OpCall& c) { c.result(celu(c.tensor("input"), c.number("alpha", 1))); }};
Tensor celu(Arg x, double alpha) {
  if (alpha == 0) fail_at(x.loc(), "celu", "alpha must not be 0");
  return elu_like(kCelu, x, alpha, 1, 1 / alpha);
}

extern constexpr OpInfo kSelu{
    .name = "selu", .family = "activation", .doc = "self-normalising exponential linear unit",
    .schema = "selu(Tensor input) -> Tensor", .formula = "y = λ·elu(x, α), λ = 1.0507…, α = 1.6732…",
    .rule = "dx = x ≤ 0 ? g·λ·α·eˣ : λ·g", .saves = {{"input", For{0}}}, .kinks = "x = 0",
    .apply = [](OpCall& c) { c.result(selu(c.tensor("input"))); }};
Tensor selu(Arg x) { return elu_like(kSelu, x, 1.6732632423543772, 1.0507009873554805, 1); }

extern constexpr OpInfo kMish{
    .name = "mish", .family = "activation", .doc = "x times tanh of softplus", .schema = "mish(Tensor input) -> Tensor",
    .formula = "y = x·t,  t = tanh(softplus x)", .rule = "dx = g·(t + x·σ·(1−t²))", .saves = {{"input", For{0}}},
    .apply = [](OpCall& c) { c.result(mish(c.tensor("input"))); }};

Tensor mish(Arg x) {
  return activation(kMish, Activation::mish, x, {}, [](const Tensor& g, const Tensor& v) {
    const Tensor t = tanh(softplus(v));
    return mul(g, add(t, mul(mul(v, sigmoid(v)), rsub(square(t), 1))));
  });
}

extern constexpr OpInfo kSoftplus{
    .name = "softplus", .family = "activation", .doc = "smooth rectifier; linear where beta·x > threshold",
    .schema = "softplus(Tensor input, float beta=1, float threshold=20) -> Tensor", .formula = "y = log(1 + e^(βx))/β",
    .rule = "dx = βx > threshold ? g : g·σ(βx)", .saves = {{"input", For{0}}}, .kinks = "βx = threshold",
    .apply = [](OpCall& c) { c.result(softplus(c.tensor("input"), c.number("beta", 1), c.number("threshold", 20))); }};

Tensor softplus(Arg x, double beta, double threshold) {
  return activation(kSoftplus, Activation::softplus, x, {beta, threshold, 0}, [=](const Tensor& g, const Tensor& v) {
    const Tensor scaled = mul(v, beta);
    return where(gt(scaled, threshold), g, mul(g, sigmoid(scaled)));
  });
}

extern constexpr OpInfo kSoftsign{
    .name = "softsign", .family = "activation", .doc = "x over 1 + |x|", .schema = "softsign(Tensor input) -> Tensor",
    .formula = "y = x/(1 + |x|)", .rule = "dx = g/(1 + |x|)²", .saves = {{"input", For{0}}},
    .apply = [](OpCall& c) { c.result(softsign(c.tensor("input"))); }};
Tensor softsign(Arg x) {
  return activation(kSoftsign, Activation::softsign, x, {},
                    [](const Tensor& g, const Tensor& v) { return div(g, square(add(abs(v), 1))); });
}

extern constexpr OpInfo kTanhshrink{
    .name = "tanhshrink", .family = "activation", .doc = "x less its tanh", .schema = "tanhshrink(Tensor input) -> Tensor",
    .formula = "y = x − tanh x", .rule = "dx = g·tanh²x", .saves = {{"input", For{0}}},
    .apply = [](OpCall& c) { c.result(tanhshrink(c.tensor("input"))); }};
Tensor tanhshrink(Arg x) {
  return activation(kTanhshrink, Activation::tanhshrink, x, {},
                    [](const Tensor& g, const Tensor& v) { return mul(g, square(tanh(v))); });
}

extern constexpr OpInfo kThreshold{
    .name = "threshold", .family = "activation", .doc = "a value where x does not exceed a threshold",
    .schema = "threshold(Tensor input, float threshold, float value) -> Tensor", .formula = "y = x ≤ t ? v : x",
    .rule = "dx = x ≤ t ? 0 : g", .saves = {{"input", For{0}}}, .kinks = "x = threshold",
    .apply = [](OpCall& c) { c.result(threshold(c.tensor("input"), c.number("threshold"), c.number("value"))); }};
Tensor threshold(Arg x, double threshold, double value) {
  return activation(kThreshold, Activation::threshold, x, {threshold, value, 0},
                    [=](const Tensor& g, const Tensor& v) { return masked_fill(g, le(v, threshold), 0); });
}

extern constexpr OpInfo kHardsigmoid{
    .name = "hardsigmoid", .family = "activation", .doc = "piecewise linear sigmoid",
    .schema = "hardsigmoid(Tensor input) -> Tensor", .formula = "y = min(max(x/6 + ½, 0), 1)",
    .rule = "dx = −3 < x < 3 ? g/6 : 0", .saves = {{"input", For{0}}}, .kinks = "x = −3, x = 3",
    .apply = [](OpCall& c) { c.result(hardsigmoid(c.tensor("input"))); }};
Tensor hardsigmoid(Arg x) {
  return activation(kHardsigmoid, Activation::hardsigmoid, x, {}, [](const Tensor& g, const Tensor& v) {
    return where(logical_and(gt(v, -3), lt(v, 3)), div(g, 6), 0);
  });
}

extern constexpr OpInfo kHardswish{
    .name = "hardswish", .family = "activation", .doc = "x times hardsigmoid", .schema = "hardswish(Tensor input) -> Tensor",
    .formula = "y = x·hardsigmoid(x)", .rule = "dx = x ≤ −3 ? 0 : x < 3 ? g·(2x + 3)/6 : g", .saves = {{"input", For{0}}},
    .kinks = "x = −3, x = 3", .apply = [](OpCall& c) { c.result(hardswish(c.tensor("input"))); }};
Tensor hardswish(Arg x) {
  return activation(kHardswish, Activation::hardswish, x, {}, [](const Tensor& g, const Tensor& v) {
    const Tensor slope = div(add(mul(v, 2), 3), 6);
    return masked_fill(where(lt(v, 3), mul(g, slope), g), le(v, -3), 0);
  });
}

extern constexpr OpInfo kLogsigmoid{
    .name = "logsigmoid", .family = "activation", .doc = "logarithm of the sigmoid",
    .schema = "logsigmoid(Tensor input) -> Tensor", .formula = "y = log σ(x)", .rule = "dx = g·σ(−x)",
    .saves = {{"input", For{0}}}, .apply = [](OpCall& c) { c.result(logsigmoid(c.tensor("input"))); }};
Tensor logsigmoid(Arg x) {
  return activation(kLogsigmoid, Activation::logsigmoid, x, {},
                    [](const Tensor& g, const Tensor& v) { return mul(g, sigmoid(neg(v))); });
}

// ---- glu ------------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kGlu{
    .name = "glu", .family = "activation", .doc = "one half of an axis gated by the sigmoid of the other",
    .schema = "glu(Tensor input, int dim=-1) -> Tensor", .formula = "y = a·σ(b), [a, b] = x",
    .rule = "dx = [g·σ(b), g·a·σ(b)·(1−σ(b))]", .saves = {{"input", For{0}}},
    .apply = [](OpCall& c) { c.result(glu(c.tensor("input"), c.integer("dim", -1))); }};

Tensor glu(Arg x, i64 dim) {
  check_defined("glu", x);
  need_float("glu", *x);
  if (x->dim() == 0) fail_at(x.loc(), "glu", "a 0-d tensor has no axis to halve");
  const int d = wrap_dim("glu", dim, x->dim());
  const i64 n = x->shape()[d];
  if (n % 2 != 0) fail_at(x.loc(), "glu", "axis {} of {} has the odd extent {}; it must have two halves", d, x->shape(), n);
  const Window first{.dim = d, .start = 0, .length = n / 2}, second{.dim = d, .start = n / 2, .length = n / 2};
  Tensor gate = unary_value("glu", Unary::sigmoid, second.of(*x), x->dtype());
  Tensor y = binary_value("glu", Binary::mul, first.of(*x), std::move(gate), x->dtype(), true);
  return record(kGlu, std::move(y), {x}, [&](Saver& s) {
    return [=, x = s.input(0)](Tensor g, const Need&) -> Grads {
      const Tensor v = *x, a = slice(v, d, 0, n / 2), b = sigmoid(slice(v, d, n / 2, n));
      const Tensor da = mul(g, b), db = mul(mul(g, a), mul(b, rsub(b, 1)));
      return {add(embed_window(da, v.shape(), first), embed_window(db, v.shape(), second))};
    };
  }, [&](Attrs& at) { at("dim", i64{d}); });
}

}  // namespace waymark
