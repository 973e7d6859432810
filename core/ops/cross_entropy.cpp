// cross_entropy, nll_loss (declared in loss.h).
#include "core/kernels/cross_entropy.h"

#include "core/kernels/pick.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"
#include "core/ops/reduction.h"
#include "core/ops/rows.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/tensor/strided.h"

namespace waymark {

using namespace ops;

namespace {

struct Classes {
  int axis = 0;          // of the classes in x
  i64 count = 0;         // C
  Shape positions;       // x's shape without that axis: the targets' shape
};

Classes check_logits(std::string_view op, const Arg& x, const Arg& target, const Tensor& weight, std::string_view empty) {
  check_defined(op, x);
  check_defined(op, target);
  need_float(op, *x);
  if (x->dim() == 0) fail_at(x.loc(), op, "the input is 0-d; it needs a class axis: [C], [N, C] or [N, C, ...]");
  Classes c{.axis = x->dim() == 1 ? 0 : 1, .count = 0, .positions = x->shape()};
  c.count = x->shape()[c.axis];
  c.positions.erase(c.axis);
  if (weight.defined()) {
    if (weight.shape() != Shape{c.count}) fail_at(x.loc(), op, "the weight must be [{}], got {}", c.count, weight.shape());
    if (weight.dtype() != x->dtype())
      fail_at(x.loc(), op, "dtypes differ: {} and weight {}; convert one with to(...)", name_of(x->dtype()), name_of(weight.dtype()));
    if (grad_enabled() && weight.requires_grad())
      fail_at(x.loc(), op, "the class weight is a constant, it has no gradient; detach() it");
  }
  if (empty != "error" && empty != "zero") fail_at(x.loc(), op, "empty is \"error\" or \"zero\", not \"{}\"", empty);
  return c;
}

// Targets as rows: checked, −1 where ignored.
struct Targets {
  Tensor ids;                 // contiguous i64, one for each row
  Tensor row_weight;          // w of each row's class, 0 where ignored; undefined without class weights
  i64 kept = 0;
  double divisor = 1;         // of the mean; 0: nothing is kept
};

Targets check_targets(std::string_view op, const Arg& x, const Arg& target, const Classes& c, const Tensor& weight,
                      i64 ignore_index, Reduction reduction, std::string_view empty) {
  if (target->dtype() != kI64)
    fail_at(x.loc(), op, "the target must be class ids (i64){}, got {}",
            op == "cross_entropy" ? " or probabilities of the input's dtype" : "", name_of(target->dtype()));
  if (target->shape() != c.positions)
    fail_at(x.loc(), op, "the target must be {} for the input {}, got {}", c.positions, x->shape(), target->shape());
  Targets t{.ids = make_empty({target->numel()}, kI64), .row_weight = {}};
  const Tensor given = contiguous_value(*target);
  const i64 n = given.numel(), *const from = given.data<i64>();
  i64* const to = t.ids.data<i64>();
  for (i64 i = 0; i < n; ++i) {
    const bool ignored = from[i] == ignore_index;
    if (!ignored && (from[i] < 0 || from[i] >= c.count))
      fail_at(x.loc(), op, "class {} at position {} is outside [0, {}) and is not ignore_index ({})", from[i],
              position_text(target->shape(), i), c.count, ignore_index);
    to[i] = ignored ? -1 : from[i];
    t.kept += !ignored;
  }
  t.divisor = static_cast<double>(t.kept);
  if (weight.defined()) {
    t.row_weight = make_empty({n}, weight.dtype());
    const Tensor w = contiguous_value(weight);
    visit_float(weight.dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::pick<T>(w.data<T>(), 0, to, t.row_weight.data<T>(), n);
    });
    t.divisor = sum_value(t.row_weight, {0}, false).item<double>();
  }
  if (reduction == Reduction::mean && t.divisor == 0 && empty == "error") {
    if (t.kept == 0)
      fail_at(x.loc(), op, "none of the {} targets is kept (ignore_index {}): there is no mean; pass empty = \"zero\" for 0", n, ignore_index);
    fail_at(x.loc(), op, "the kept targets have total weight 0: there is no mean; pass empty = \"zero\" for 0");
  }
  return t;
}

// Row losses (without history) to the result.
Tensor reduced_value(const Tensor& rows, const Shape& positions, Reduction reduction, double divisor) {
  if (reduction == Reduction::none) return alias(rows, positions, contiguous_strides(positions), 0);
  Tensor total = sum_value(rows, {0}, false);
  if (reduction == Reduction::sum) return total;
  if (divisor == 0) {
    fill_into(total, 0);
    return total;
  }
  return binary_value("mean", kernels::Binary::div, std::move(total), divisor, rows.dtype(), true);
}
double factor_of(Reduction reduction, double divisor) {
  return reduction != Reduction::mean ? 1 : divisor == 0 ? 0 : 1 / divisor;
}

// (..., C) in rows -> x's order of axes, for a constant.
Tensor in_place_of(const Tensor& rows, const Classes& c, const Shape& x_shape) {
  Shape last = c.positions;
  last.push_back(c.count);
  return axis_back(alias(rows, last, contiguous_strides(last), rows.offset()), c.axis, x_shape);
}

// w_t·e_t in every row, 0 where ignored.
Tensor weighted_one_hot(const Targets& t, i64 classes, DType dtype) {
  Tensor row_weight = t.row_weight;
  if (!row_weight.defined()) {
    row_weight = make_empty(t.ids.shape(), dtype);
    fill_into(row_weight, 1);
  }
  Tensor out = make_empty({t.ids.numel(), classes}, dtype);
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    kernels::place<T>(row_weight.data<T>(), t.ids.data<i64>(), out.data<T>(), t.ids.numel(), classes);
  });
  return out;
}

// The targets as a constant distribution over the classes, times the weights: row r of the loss is −Σ_c B_rc log p_rc.
//   B = (1−ε)·w_t·e_t + (ε/C)·w, 0 in ignored rows
Tensor target_matrix(const Targets& t, const Classes& c, const Tensor& weight, double smoothing, const Shape& x_shape, DType dtype) {
  const Unrecorded off;
  Tensor b = weighted_one_hot(t, c.count, dtype);
  if (smoothing != 0) {
    const Tensor kept = unsqueeze(to(ge(t.ids, 0), dtype), 1);
    const double share = smoothing / static_cast<double>(c.count);
    b = add(mul(b, 1 - smoothing), weight.defined() ? mul(kept, mul(weight, share)) : mul(kept, share));
  }
  return in_place_of(b, c, x_shape);
}

// g of one number, or of each position, against x.
Tensor spread_rows(const Tensor& g, Reduction reduction, double factor, int axis) {
  return reduction == Reduction::none ? unsqueeze(g, axis) : mul(g, factor);
}

Tensor cross_entropy_twin(const Tensor& x, const Tensor& b, int axis, Reduction reduction, double divisor) {
  const Tensor terms = masked_fill(mul(b, log_softmax(x, axis)), eq(b, 0), 0);  // 0·(−∞) is 0 here
  const Tensor rows = neg(sum(terms, axis));
  if (reduction == Reduction::none) return rows;
  return reduction == Reduction::sum ? sum(rows) : mul(sum(rows), factor_of(reduction, divisor));
}

Tensor of_probabilities(const Arg& x, const Arg& target, const Classes& c, const CrossEntropyOptions& o, Reduction reduction) {
  if (target->dtype() != x->dtype())
    fail_at(x.loc(), "cross_entropy", "dtypes differ: {} x {}; convert one with to(...)", name_of(x->dtype()), name_of(target->dtype()));
  if (target->shape() != x->shape())
    fail_at(x.loc(), "cross_entropy", "target probabilities must have the input's shape {}, got {}", x->shape(), target->shape());
  i64 count = 1;
  for (const i64 n : c.positions) count *= n;
  if (reduction == Reduction::mean && count == 0 && o.empty == "error")
    fail_at(x.loc(), "cross_entropy", "there are no positions, so there is no mean; pass empty = \"zero\" for 0");
  Tensor t = *target;
  if (o.label_smoothing != 0) t = add(mul(target, 1 - o.label_smoothing), o.label_smoothing / static_cast<double>(c.count));
  if (o.weight.defined()) {
    Shape along(x->dim() - c.axis, 1);
    along[0] = c.count;
    t = mul(t, reshape(o.weight, along));
  }
  const Tensor rows = neg(sum(mul(t, log_softmax(x, c.axis)), c.axis));
  if (reduction == Reduction::none) return rows;
  const Tensor total = sum(rows);
  return reduction == Reduction::sum || count == 0 ? total : div(total, static_cast<double>(count));
}

}  // namespace

// ---- cross_entropy --------------------------------------------------------------------------------------------------

extern constexpr OpInfo kCrossEntropy{
    .name = "cross_entropy", .family = "loss", .doc = "negative log-probability of the target class, from logits",
    .schema = "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, str reduction='mean', "
              "float label_smoothing=0.0, str empty='error') -> Tensor",
    .formula = "yᵢ = (1−ε)·w_t·(−log p_t) + (ε/C)·Σ_c w_c·(−log p_c),  p = softmax(x); mean: Σ yᵢ / Σ_kept w_t",
    .rule = "dx = g·[(1−ε)·w_t·(p − e_t) + (ε/C)·(p·Σ w − w)] (mean: / Σ_kept w_t), 0 in ignored rows",
    .saves = {{"input", For{0}}, {"indices", For{0}}, {"row statistics", For{0}}}, .twin = "cross_entropy_twin",
    .flops = [](OpCall& c) { return 5.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      const std::string reduction = c.word("reduction", "mean"), empty = c.word("empty", "error");
      c.result(cross_entropy(c.tensor("input"), c.tensor("target"),
                             {.weight = c.optional_tensor("weight"), .ignore_index = c.integer("ignore_index", -100),
                              .reduction = reduction, .label_smoothing = c.number("label_smoothing", 0), .empty = empty}));
    }};

Tensor cross_entropy(Arg x, Arg target, const CrossEntropyOptions& o) {
  const Reduction reduction = reduction_of("cross_entropy", o.reduction, x.loc());
  const Classes c = check_logits("cross_entropy", x, target, o.weight, o.empty);
  const double smoothing = o.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    fail_at(x.loc(), "cross_entropy", "label_smoothing {} is outside [0, 1]", smoothing);
  if (is_float(target->dtype())) return of_probabilities(x, target, c, o, reduction);
  const Targets t = check_targets("cross_entropy", x, target, c, o.weight, o.ignore_index, reduction, o.empty);
  const DType dtype = x->dtype();
  if (explain_mode()) {
    const Tensor b = target_matrix(t, c, o.weight, smoothing, x->shape(), dtype);
    return cross_entropy_twin(*x, b, c.axis, reduction, t.divisor);
  }
  const Tensor logits = axis_last(*x, c.axis), weight = o.weight.defined() ? contiguous_value(o.weight) : Tensor();
  const i64 n = t.ids.numel();
  const Tensor loss = make_empty({n}, dtype), stats = nothing_recorded({&*x}) ? Tensor() : make_empty({n, 2}, dtype);
  const auto problem = [classes = c.count, smoothing](auto zero, const Tensor& ids, const Tensor& w) {
    using T = decltype(zero);
    return kernels::CrossEntropy<T>{ids.data<i64>(), w.defined() ? w.data<T>() : nullptr, static_cast<T>(smoothing), classes};
  };
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* sums = stats.defined() ? reinterpret_cast<kernels::RowLogSum<T>*>(stats.data<T>()) : nullptr;
    kernels::cross_entropy<T>(problem(zero, t.ids, weight), logits.data<T>(), loss.data<T>(), sums, n);
  });
  // Target and weight are constants here; they are listed so that the op can be called again.
  const Tensor constant_weight = o.weight.defined() ? alias(o.weight) : Tensor();
  return record(kCrossEntropy, reduced_value(loss, c.positions, reduction, t.divisor), {x, target, constant_weight}, [&](Saver& s) {
    const double factor = factor_of(reduction, t.divisor);
    return [=, x = s.input(0), ids = s.indices(t.ids), stats = s.stats(stats), w = s.stats(weight),
            row_w = s.stats(t.row_weight)](Tensor g, const Need&) -> Grads {
      const Tensor w_value = w ? *w : Tensor();
      if (!fused_backward_allowed()) {
        const Targets saved{.ids = *ids, .row_weight = row_w ? *row_w : Tensor()};
        const Tensor input = *x, b = target_matrix(saved, c, w_value, smoothing, input.shape(), input.dtype());
        const Tensor a = sum(b, c.axis, true);  // a constant: Σ_c B
        const Tensor dx = mul(spread_rows(g, reduction, factor, c.axis), sub(mul(softmax(input, c.axis), a), b));
        return {masked_fill(dx, eq(a, 0), 0), Tensor(), Tensor()};
      }
      const Tensor input = *x, rows = axis_last(input, c.axis), from = contiguous_value(g), targets = *ids, sums = *stats;
      const Tensor dx = make_empty(rows.shape(), rows.dtype());
      visit_float(rows.dtype(), [&](auto zero) {
        using T = decltype(zero);
        kernels::cross_entropy_backward<T>(problem(zero, targets, w_value), rows.data<T>(),
                                           reinterpret_cast<const kernels::RowLogSum<T>*>(sums.data<T>()), from.data<T>(),
                                           reduction == Reduction::none ? 1 : 0, static_cast<T>(factor), dx.data<T>(),
                                           targets.numel());
      });
      return {axis_back(dx, c.axis, input.shape()), Tensor(), Tensor()};
    };
  }, [&](Attrs& at) {
    at("ignore_index", o.ignore_index);
    at("reduction", std::string(o.reduction));
    at("label_smoothing", smoothing);
    at("empty", std::string(o.empty));
  });
}

// ---- nll_loss -------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kNllLoss{
    .name = "nll_loss", .family = "loss", .doc = "negative log-probability of the target class, from log-probabilities",
    .schema = "nll_loss(Tensor input, Tensor target, Tensor? weight=None, int ignore_index=-100, str reduction='mean', "
              "str empty='error') -> Tensor",
    .formula = "yᵢ = −w_t·logp_t; mean: Σ yᵢ / Σ_kept w_t", .rule = "dlogp = −g·w_t·e_t (mean: / Σ_kept w_t)",
    .saves = {{"indices", For{0}}, {"row statistics", For{0}}, {"shape", For{0}}}, .apply = [](OpCall& c) {
      const std::string reduction = c.word("reduction", "mean"), empty = c.word("empty", "error");
      c.result(nll_loss(c.tensor("input"), c.tensor("target"),
                        {.weight = c.optional_tensor("weight"), .ignore_index = c.integer("ignore_index", -100),
                         .reduction = reduction, .empty = empty}));
    }};

Tensor nll_loss(Arg logp, Arg target, const NllLossOptions& o) {
  const Reduction reduction = reduction_of("nll_loss", o.reduction, logp.loc());
  const Classes c = check_logits("nll_loss", logp, target, o.weight, o.empty);
  const Targets t = check_targets("nll_loss", logp, target, c, o.weight, o.ignore_index, reduction, o.empty);
  const DType dtype = logp->dtype();
  const Tensor rows = axis_last(*logp, c.axis);
  Tensor loss = make_empty({t.ids.numel()}, dtype);
  visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    kernels::pick<T>(rows.data<T>(), c.count, t.ids.data<i64>(), loss.data<T>(), t.ids.numel());
  });
  if (t.row_weight.defined()) loss = binary_value("nll_loss", kernels::Binary::mul, std::move(loss), t.row_weight, dtype, true);
  loss = unary_value("nll_loss", kernels::Unary::neg, std::move(loss), dtype, {}, true);
  const Tensor constant_weight = o.weight.defined() ? alias(o.weight) : Tensor();
  return record(kNllLoss, reduced_value(loss, c.positions, reduction, t.divisor), {logp, target, constant_weight}, [&](Saver& s) {
    const double factor = factor_of(reduction, t.divisor);
    return [=, shape = s.shape(0), ids = s.indices(t.ids), row_w = s.stats(t.row_weight)](Tensor g, const Need&) -> Grads {
      const Targets saved{.ids = *ids, .row_weight = row_w ? *row_w : Tensor()};
      const Tensor one_hot = in_place_of(weighted_one_hot(saved, c.count, g.dtype()), c, shape);
      return {neg(mul(one_hot, spread_rows(g, reduction, factor, c.axis))), Tensor(), Tensor()};
    };
  }, [&](Attrs& at) {
    at("ignore_index", o.ignore_index);
    at("reduction", std::string(o.reduction));
    at("empty", std::string(o.empty));
  });
}

}  // namespace waymark
