// linear, linear_packed (declared in matmul.h): products with a weight (out, in) and a bias, the work of most models.
#include <array>
#include <cstring>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/products.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

Tensor transposed(const Tensor& w) {
  return alias(w, {w.shape()[1], w.shape()[0]}, {w.strides()[1], w.strides()[0]}, w.offset());
}
Shape with_last(Shape s, i64 n) {
  s[s.size() - 1] = n;
  return s;
}
i64 rows_of(const Tensor& x) {
  i64 n = 1;
  for (int i = 0; i + 1 < x.dim(); ++i) n *= x.shape()[i];
  return n;
}

void check_linear(std::string_view op, const Arg& x, const Arg& w, const Tensor& b) {
  check_defined(op, x);
  check_defined(op, w);
  check_product_dtypes(op, x, w);
  if (w->dim() != 2) fail_at(x.loc(), op, "the weight must be [out, in], got {}", w->shape());
  if (x->dim() == 0) fail_at(x.loc(), op, "the input is 0-d; it needs a last axis of size {}", w->shape()[1]);
  if (x->shape().back() != w->shape()[1])
    fail_at(x.loc(), op, "inner sizes differ: {} x {} transposed ({} != {})", x->shape(), w->shape(), x->shape().back(), w->shape()[1]);
  if (!b.defined()) return;
  if (b.dtype() != x->dtype())
    fail_at(x.loc(), op, "dtypes differ: {} + bias {}; convert one with to(...)", name_of(x->dtype()), name_of(b.dtype()));
  if (b.shape() != Shape{w->shape()[0]})
    fail_at(x.loc(), op, "the bias must be [{}] for the weight {}, got {}", w->shape()[0], w->shape(), b.shape());
}

// y (M, out) = x (M, in)·Wᵀ + b; y may be a column window.
void linear_into(const Tensor& y, const Tensor& x, const Tensor& w, const Tensor& b) {
  if (b.defined()) copy_into(y, expand_value(b, y.shape()));
  mm_into(y, 1, x, transposed(w), b.defined() ? 1 : 0);
}

// dX = G·W and dW = Gᵀ·X in one list of tasks; either may be left out. All 2-d values, without history.
void linear_backward(const Tensor& dx, const Tensor& dw, const Tensor& g, const Tensor& w, const Tensor& x) {
  if (g.dtype() == kI64) return;  // integers have no gradient
  visit_float(g.dtype(), [&](auto zero) {
    using T = decltype(zero);
    std::array<kernels::Product<T>, 2> list;
    size_t n = 0;
    const i64 rows = g.shape()[0], out = g.shape()[1];
    if (dx.defined()) {
      const i64 in = w.shape()[1];
      list[n++] = {rows, in, out, T(1), matrix_of<T>(g), matrix_of<T>(w), T(0), dx.data<T>(), std::max<i64>(in, 1)};
    }
    if (dw.defined()) {
      const i64 in = x.shape()[1];
      list[n++] = {out, in, rows, T(1), matrix_of<T>(transposed(g)), matrix_of<T>(x), T(0), dw.data<T>(), std::max<i64>(in, 1)};
    }
    if (n) kernels::gemm_many<T>({list.data(), n});
  });
}

}  // namespace

extern constexpr OpInfo kLinear{
    .name = "linear", .family = "matmul", .doc = "affine map of the last axis",
    .schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", .formula = "y = x·Wᵀ + b",
    .rule = "dx = g·W,  dW = gᵀ·x,  db = Σ_rows g", .saves = {{"input", For{1}}, {"weight", For{0}}},
    .flops = [](OpCall& c) { return product_flops(c.tensor("input"), transposed(c.tensor("weight"))); },
    .apply = [](OpCall& c) {
      c.result(linear(c.tensor("input"), c.tensor("weight"), c.optional_tensor("bias")));
    }};

Tensor linear(Arg x, Arg weight, const Tensor& bias) {
  check_linear("linear", x, weight, bias);
  const i64 out = weight->shape()[0];
  Tensor y = make_empty(with_last(x->shape(), out), x->dtype());
  linear_into(alias(y, {rows_of(*x), out}, {out, 1}, 0), fold_rows(*x), *weight, bias);
  return record(kLinear, std::move(y), {x, weight, bias}, [&](Saver& s) {
    return [x = s.input(0, s.needs(1)), w = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      if (!fused_backward_allowed()) {
        const auto flat = [](const Tensor& t) { return reshape(t, {rows_of(t), t.shape().back()}); };
        return {need[0] ? matmul(g, *w) : Tensor(), need[1] ? matmul(mT(flat(g)), flat(*x)) : Tensor(),
                need[2] ? sum(flat(g), 0) : Tensor()};
      }
      const Tensor rows = fold_rows(contiguous_value(g));
      const Tensor to = need[0] ? *w : Tensor(), input = need[1] ? fold_rows(*x) : Tensor();
      Tensor dx, dw;
      if (need[0]) dx = make_empty(with_last(g.shape(), to.shape()[1]), g.dtype());
      if (need[1]) dw = make_empty({rows.shape()[1], input.shape()[1]}, g.dtype());
      linear_backward(dx, dw, rows, to, input);
      return {std::move(dx), std::move(dw), need[2] ? sum_value(rows, {0}, false) : Tensor()};
    };
  });
}

// ---- linear_packed --------------------------------------------------------------------------------------------------

namespace {

// First element of t, counted in elements from the start of its block.
i64 place_in_block(const Tensor& t) { return (t.raw() - t.impl()->storage->block()->data()) / size_of(t.dtype()); }

// The weights as one (Σ out, in) matrix if they lie one behind the other in one block; undefined otherwise.
Tensor one_matrix(const std::vector<Tensor>& weights) {
  const Tensor& first = weights[0];
  i64 rows = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor& w = weights[i];
    if (!w.is_contiguous() || w.numel() == 0 || !w.impl()->storage->shares_memory(*first.impl()->storage)) return {};
    if (i && w.raw() != weights[i - 1].raw() + weights[i - 1].nbytes()) return {};
    rows += w.shape()[0];
  }
  const i64 in = first.shape()[1];
  return tensor_in_block(first.impl()->storage->block(), first.dtype(), {rows, in}, {in, 1}, place_in_block(first));
}

// Column windows of a row-major (M, Σ widths) buffer, each of shape `lead` + [width], each with its own storage.
std::vector<Tensor> column_windows(const Tensor& buffer, const std::vector<i64>& widths, const Shape& like) {
  const Shape strides = contiguous_strides(with_last(like, buffer.shape()[1]));
  std::vector<Tensor> out;
  i64 at = place_in_block(buffer);
  for (const i64 width : widths) {
    out.push_back(tensor_in_block(buffer.impl()->storage->block(), buffer.dtype(), with_last(like, width), strides, at));
    at += width;
  }
  return out;
}

// Rows or elements first .. first + n of a dense buffer, each piece with its own storage.
Tensor leading_part(const Tensor& buffer, i64 first, i64 n) {
  Shape shape = buffer.shape();
  shape[0] = n;
  return tensor_in_block(buffer.impl()->storage->block(), buffer.dtype(), shape, buffer.strides(),
                         place_in_block(buffer) + first * buffer.strides()[0]);
}

// Inputs: x, the weights, the biases. One gradient per weight and bias, one dx.
struct PackedRule {
  SavedTensor x;
  std::vector<SavedTensor> weights;
  std::vector<i64> widths;
  i64 in;

  Grads operator()(std::span<Tensor> g, const Need& need) const {
    const size_t n = widths.size();
    bool all = true, any_weight = false, all_weights = true, any_bias = false;
    for (size_t i = 0; i < n; ++i) {
      all &= g[i].defined();
      any_weight |= need[1 + i];
      all_weights &= need[1 + i];
      any_bias |= need[1 + n + i];
    }
    std::vector<Tensor> w;
    if (need[0])
      for (const SavedTensor& s : weights) w.push_back(*s);
    const Tensor packed = need[0] ? one_matrix(w) : Tensor();
    const bool one_product = all && (!need[0] || packed.defined()) && all_weights == any_weight;
    return fused_backward_allowed() && one_product ? together(g, need, packed, any_weight, any_bias) : apart(g, need, w);
  }

 private:
  Grads together(std::span<Tensor> g, const Need& need, const Tensor& packed, bool any_weight, bool any_bias) const {
    const size_t n = widths.size();
    i64 total = 0;
    for (const i64 width : widths) total += width;
    const Tensor rows = make_empty({rows_of(g[0]), total}, g[0].dtype());
    const std::vector<Tensor> windows = column_windows(rows, widths, {rows.shape()[0], 0});
    for (size_t i = 0; i < n; ++i) copy_into(windows[i], fold_rows(g[i]));
    Tensor dx, dw, db;
    if (need[0]) dx = make_empty(with_last(g[0].shape(), in), rows.dtype());
    if (any_weight) dw = make_empty({total, in}, rows.dtype());
    linear_backward(dx, dw, rows, packed, any_weight ? fold_rows(*x) : Tensor());
    if (any_bias) db = sum_value(rows, {0}, false);
    Grads out;
    out.emplace_back(std::move(dx));
    i64 first = 0;
    for (size_t i = 0; i < n; first += widths[i++]) out.emplace_back(dw.defined() ? leading_part(dw, first, widths[i]) : Tensor());
    first = 0;
    for (size_t i = 0; i < n; first += widths[i++])
      out.emplace_back(need[1 + n + i] ? leading_part(db, first, widths[i]) : Tensor());
    return out;
  }

  Grads apart(std::span<Tensor> g, const Need& need, const std::vector<Tensor>& w) const {
    const size_t n = widths.size();
    Tensor dx;
    std::vector<Tensor> dw(n), db(n);
    const auto flat = [](const Tensor& t) { return reshape(t, {rows_of(t), t.shape().back()}); };
    for (size_t i = 0; i < n; ++i) {
      if (!g[i].defined()) continue;
      if (need[0]) {
        const Tensor part = matmul(g[i], w[i]);
        dx = dx.defined() ? add(dx, part) : part;
      }
      if (need[1 + i]) dw[i] = matmul(mT(flat(g[i])), flat(*x));
      if (need[1 + n + i]) db[i] = sum(flat(g[i]), 0);
    }
    Grads out;
    out.emplace_back(std::move(dx));
    for (Tensor& t : dw) out.emplace_back(std::move(t));
    for (Tensor& t : db) out.emplace_back(std::move(t));
    return out;
  }
};

}  // namespace

extern constexpr OpInfo kLinearPacked{
    .name = "linear_packed", .family = "matmul", .doc = "several affine maps of one input, as one product where possible",
    .schema = "linear_packed(Tensor input, Tensor[] weights, Tensor?[] biases=[]) -> Tensor[]",
    .formula = "yᵢ = x·Wᵢᵀ + bᵢ", .rule = "dx = Σᵢ gᵢ·Wᵢ,  dWᵢ = gᵢᵀ·x,  dbᵢ = Σ_rows gᵢ",
    .saves = {{"input", For{}}, {"weights", For{0}}}, .twin = "linear",
    .flops = [](OpCall& c) {
      double flops = 0;
      for (const Tensor& w : c.tensors("weights")) flops += product_flops(c.tensor("input"), transposed(w));
      return flops;
    },
    .apply = [](OpCall& c) {
      const std::vector<Tensor> biases = c.has("biases") ? c.tensors("biases") : std::vector<Tensor>{};
      const std::vector<Tensor> y = linear_packed(c.tensor("input"), c.tensors("weights"), biases);
      for (size_t i = 0; i < y.size(); ++i) c.result(std::to_string(i), y[i]);
    }};

std::vector<Tensor> linear_packed(Arg x, const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  const size_t n = weights.size();
  if (n == 0) fail_at(x.loc(), "linear_packed", "needs at least one weight");
  if (!biases.empty() && biases.size() != n)
    fail_at(x.loc(), "linear_packed", "{} weights but {} biases; give one for each weight (undefined: none), or none at all", n, biases.size());
  const auto bias = [&](size_t i) { return biases.empty() ? Tensor() : biases[i]; };
  std::vector<i64> widths;
  i64 total = 0;
  for (size_t i = 0; i < n; ++i) {
    check_linear("linear_packed", x, Arg(weights[i], x.loc()), bias(i));
    widths.push_back(weights[i].shape()[0]);
    total += widths.back();
  }
  std::vector<Tensor> y;
  if (explain_mode()) {
    for (size_t i = 0; i < n; ++i) y.push_back(linear(x, Arg(weights[i], x.loc()), bias(i)));
    return y;
  }
  const Tensor rows = fold_rows(*x), packed = one_matrix(weights);
  const i64 count = rows.shape()[0];
  if (packed.defined()) {
    const Tensor buffer = make_empty({count, total}, x->dtype());
    bool any_bias = false;
    for (size_t i = 0; i < n; ++i) any_bias |= bias(i).defined();
    if (any_bias) {
      const std::vector<Tensor> columns = column_windows(buffer, widths, {count, 0});
      for (size_t i = 0; i < n; ++i) {
        if (bias(i).defined()) copy_into(columns[i], expand_value(bias(i), columns[i].shape()));
        else fill_into(columns[i], 0);
      }
    }
    mm_into(buffer, 1, rows, transposed(packed), any_bias ? 1 : 0);
    y = column_windows(buffer, widths, x->shape());
  } else {
    for (size_t i = 0; i < n; ++i) {
      y.push_back(make_empty(with_last(x->shape(), widths[i]), x->dtype()));
      linear_into(alias(y[i], {count, widths[i]}, {widths[i], 1}, 0), rows, weights[i], bias(i));
    }
  }
  std::vector<Tensor> inputs{*x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  for (size_t i = 0; i < n; ++i) inputs.push_back(bias(i));
  record_many(kLinearPacked, y, Inputs(inputs, x.loc()), [&](Saver& s) {
    bool any_weight = false;
    for (size_t i = 0; i < n; ++i) any_weight |= s.needs(1 + i);
    PackedRule rule{s.input(0, any_weight), {}, widths, x->shape().back()};
    for (size_t i = 0; i < n; ++i) rule.weights.push_back(s.input(1 + i, s.needs(0)));
    return rule;
  });
  return y;
}

}  // namespace waymark
