#include "core/ops/softmax.h"

#include <limits>

#include "core/kernels/softmax.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace waymark {

using namespace ops;

namespace {

int check_softmax(std::string_view op, const Arg& x, i64 dim) {
  check_defined(op, x);
  need_float(op, *x);
  return wrap_dim(op, dim, x->dim());
}

// kernel(from, to, rows, n) along one axis; the output may take x's buffer.
template <class Kernel> Tensor along_axis(const Arg& x, int dim, Kernel kernel) {
  const bool own = x.reusable();
  Tensor in = axis_last(*x, dim);
  const auto [rows, n] = row_count(in);
  return visit_float(in.dtype(), [&, rows = rows, n = n](auto zero) {
    using T = decltype(zero);
    const T* const from = in.template data<T>();
    const Tensor out = own && in.is(*x) ? in : output_like(std::move(in));
    kernel(from, out.template data<T>(), rows, n);
    return axis_back(out, dim, x->shape());
  });
}

// kernel(y, g, dx, rows, n) along one axis; dx may take g's buffer.
template <class Kernel> Tensor backward_along_axis(const Tensor& y, Tensor g, int dim, Kernel kernel) {
  const Tensor saved = axis_last(y, dim);
  Tensor in = axis_last(std::move(g), dim);
  const auto [rows, n] = row_count(in);
  return visit_float(in.dtype(), [&, rows = rows, n = n](auto zero) {
    using T = decltype(zero);
    const T* const from = in.template data<T>();
    const Tensor dx = output_like(std::move(in));
    kernel(saved.data<T>(), from, dx.data<T>(), rows, n);
    return axis_back(dx, dim, y.shape());
  });
}

Tensor shifted_exp(const Tensor& x, int dim) { return exp(sub(x, constant_max(x.detach(), dim))); }

}  // namespace

// ---- softmax, softmin -----------------------------------------------------------------------------------------------

// The meaning of softmax in plain ops.
static Tensor softmax_twin(const Tensor& x, int dim) {
  if (x.numel() == 0) return clone(x);
  const Tensor e = shifted_exp(x, dim);
  return div(e, sum(e, dim, true));
}

extern constexpr OpInfo kSoftmax{
    .name = "softmax", .family = "softmax", .doc = "positive shares along an axis that sum to 1",
    .schema = "softmax(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor", .formula = "y = eˣ / Σ eˣ",
    .rule = "dx = y ⊙ (g − Σ g⊙y)", .saves = {{"output", For{0}}}, .twin = "softmax_twin",
    .flops = [](OpCall& c) { return 4.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) { c.result(softmax(c.tensor("input"), c.integer("dim"), c.dtype("dtype"))); }};

Tensor softmax(Arg x, i64 dim, std::optional<DType> dtype) {
  if (dtype && x->defined() && x->dtype() != *dtype) return softmax(Arg(to(x, *dtype), x.loc()), dim);
  const int d = check_softmax("softmax", x, dim);
  if (explain_mode()) return softmax_twin(*x, d);
  Tensor y = along_axis(x, d, [](auto* from, auto* to, i64 rows, i64 n) { kernels::softmax(from, to, rows, n); });
  return record(kSoftmax, std::move(y), {x}, [&](Saver& s) {
    return [d, y = s.output()](Tensor g, const Need&) -> Grads {
      if (fused_backward_allowed())
        return {backward_along_axis(*y, std::move(g), d, [](auto* p, auto* from, auto* to, i64 rows, i64 n) {
          kernels::softmax_backward(p, from, to, rows, n);
        })};
      const Tensor p = *y;
      return {mul(p, sub(g, sum(mul(g, p), d, true)))};
    };
  }, [&](Attrs& at) { at("dim", i64{d}); });
}

extern constexpr OpInfo kSoftmin{
    .name = "softmin", .family = "softmax", .doc = "softmax of the negated input",
    .schema = "softmin(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor", .formula = "y = e⁻ˣ / Σ e⁻ˣ",
    .rule = "dx = −y ⊙ (g − Σ g⊙y), by neg and softmax",
    .apply = [](OpCall& c) { c.result(softmin(c.tensor("input"), c.integer("dim"), c.dtype("dtype"))); }};

Tensor softmin(Arg x, i64 dim, std::optional<DType> dtype) {
  if (dtype && x->defined() && x->dtype() != *dtype) return softmin(Arg(to(x, *dtype), x.loc()), dim);
  check_softmax("softmin", x, dim);
  return softmax(Arg(neg(x), x.loc()), dim);
}

// ---- log_softmax ----------------------------------------------------------------------------------------------------

static Tensor log_softmax_twin(const Tensor& x, int dim) {
  if (x.numel() == 0) return clone(x);
  const Tensor shifted = sub(x, constant_max(x.detach(), dim));
  return sub(shifted, log(sum(exp(shifted), dim, true)));
}

extern constexpr OpInfo kLogSoftmax{
    .name = "log_softmax", .family = "softmax", .doc = "logarithm of softmax",
    .schema = "log_softmax(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor", .formula = "y = x − log Σ eˣ",
    .rule = "dx = g − e^y·Σ g", .saves = {{"output", For{0}}}, .twin = "log_softmax_twin",
    .flops = [](OpCall& c) { return 4.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) { c.result(log_softmax(c.tensor("input"), c.integer("dim"), c.dtype("dtype"))); }};

Tensor log_softmax(Arg x, i64 dim, std::optional<DType> dtype) {
  if (dtype && x->defined() && x->dtype() != *dtype) return log_softmax(Arg(to(x, *dtype), x.loc()), dim);
  const int d = check_softmax("log_softmax", x, dim);
  if (explain_mode()) return log_softmax_twin(*x, d);
  Tensor y = along_axis(x, d, [](auto* from, auto* to, i64 rows, i64 n) { kernels::log_softmax(from, to, rows, n); });
  return record(kLogSoftmax, std::move(y), {x}, [&](Saver& s) {
    return [d, y = s.output()](Tensor g, const Need&) -> Grads {
      if (fused_backward_allowed())
        return {backward_along_axis(*y, std::move(g), d, [](auto* p, auto* from, auto* to, i64 rows, i64 n) {
          kernels::log_softmax_backward(p, from, to, rows, n);
        })};
      return {sub(g, mul(exp(*y), sum(g, d, true)))};
    };
  }, [&](Attrs& at) { at("dim", i64{d}); });
}

// ---- masked_softmax -------------------------------------------------------------------------------------------------

static Tensor masked_softmax_twin(const Tensor& x, const Tensor& keep, int dim, double scale) {
  const Tensor mask = expand_value(keep, x.shape()), dropped = logical_not(mask);
  if (x.numel() == 0) return clone(x);
  const Tensor scores = masked_fill(scale == 1 ? x : mul(x, scale), dropped, -std::numeric_limits<double>::infinity());
  // A slice that keeps nothing: 0 in place of its maximum, 1 in place of its sum.
  const Tensor nothing = logical_not(constant_max(mask, dim));
  const Tensor e = exp(sub(scores, masked_fill(constant_max(scores.detach(), dim), nothing, 0)));
  return masked_fill(div(e, masked_fill(sum(e, dim, true), nothing, 1)), dropped, 0);
}

extern constexpr OpInfo kMaskedSoftmax{
    .name = "masked_softmax", .family = "softmax", .doc = "softmax over the kept places; 0 elsewhere, and in slices that keep nothing",
    .schema = "masked_softmax(Tensor input, Tensor keep, int dim, float scale=1) -> Tensor",
    .formula = "y = keep ? e^(s·x) / Σ_kept e^(s·x) : 0", .rule = "dx = s·y ⊙ (g − Σ g⊙y), 0 where dropped",
    .saves = {{"output", For{0}}}, .twin = "masked_softmax_twin",
    .flops = [](OpCall& c) { return 5.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      c.result(masked_softmax(c.tensor("input"), c.tensor("keep"), c.integer("dim"), c.number("scale", 1)));
    }};

Tensor masked_softmax(Arg x, Arg keep, i64 dim, double scale) {
  const int d = check_softmax("masked_softmax", x, dim);
  check_defined("masked_softmax", keep);
  if (keep->dtype() != kB8)
    fail_at(x.loc(), "masked_softmax", "keep must be b8, got {}; use to(kB8) or a comparison", name_of(keep->dtype()));
  if (!broadcasts_to(keep->shape(), x->shape()))
    fail_at(x.loc(), "masked_softmax", "keep {} does not expand to the input {}", keep->shape(), x->shape());
  if (explain_mode()) return masked_softmax_twin(*x, *keep, d, scale);
  // The mask is walked by its own strides: it may repeat over batch, heads or queries.
  const Tensor mask = expand_value(*keep, x->shape());
  SmallVector<kernels::MaskAxis, 6> axes;
  for (int i = 0; i < x->dim(); ++i)
    if (i != d && x->shape()[i] != 1) axes.emplace_back(kernels::MaskAxis{x->shape()[i], mask.strides()[i]});
  const kernels::MaskRows rows_mask{mask.data<bool>(), {axes.begin(), axes.size()}, x->dim() ? mask.strides()[d] : 0};
  Tensor y = along_axis(x, d, [&](auto* from, auto* to, i64 rows, i64 n) {
    using T = std::decay_t<decltype(*to)>;
    kernels::masked_softmax<T>(from, rows_mask, static_cast<T>(scale), to, rows, n);
  });
  return record(kMaskedSoftmax, std::move(y), {x, keep}, [&](Saver& s) {
    return [d, scale, y = s.output()](Tensor g, const Need&) -> Grads {
      const Tensor p = *y;
      if (fused_backward_allowed())
        return {backward_along_axis(p, std::move(g), d, [&](auto* q, auto* from, auto* to, i64 rows, i64 n) {
          using T = std::decay_t<decltype(*to)>;
          kernels::masked_softmax_backward<T>(q, from, static_cast<T>(scale), to, rows, n);
        }), Tensor()};
      // Gradients at places without weight never count, even if they are infinite.
      const Tensor zero = eq(p, 0), kept = masked_fill(g, zero, 0);
      return {masked_fill(mul(mul(p, sub(kept, sum(mul(kept, p), d, true))), scale), zero, 0), Tensor()};
    };
  }, [&](Attrs& at) { at("dim", i64{d}); at("scale", scale); });
}

}  // namespace waymark
