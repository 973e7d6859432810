// In-place forms of functions (declared in inplace.h).
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

namespace waymark {

using kernels::Unary;
using namespace ops;

#define WAYMARK_INPLACE_FUNCTION(K, NAME, PARTNER, ARGS, FORMULA)                               \
  extern constexpr OpInfo K{.name = NAME,                                              \
                            .family = "inplace",                                       \
                            .doc = "in-place form of " PARTNER,                        \
                            .schema = NAME "(Tensor(a!) input" ARGS ") -> Tensor(a!)", \
                            .formula = FORMULA,                                        \
                            .rule = "as " PARTNER};
WAYMARK_INPLACE_FUNCTION(kNegInplace, "neg_", "neg", "", "x ← −x")
WAYMARK_INPLACE_FUNCTION(kExpInplace, "exp_", "exp", "", "x ← eˣ")
WAYMARK_INPLACE_FUNCTION(kSqrtInplace, "sqrt_", "sqrt", "", "x ← √x")
WAYMARK_INPLACE_FUNCTION(kReluInplace, "relu_", "relu", "", "x ← max(x, 0)")
WAYMARK_INPLACE_FUNCTION(kTanhInplace, "tanh_", "tanh", "", "x ← tanh x")
WAYMARK_INPLACE_FUNCTION(kSigmoidInplace, "sigmoid_", "sigmoid", "", "x ← 1/(1 + e⁻ˣ)")
WAYMARK_INPLACE_FUNCTION(kPowInplace, "pow_", "pow", ", Tensor exponent", "x ← xᵇ")
WAYMARK_INPLACE_FUNCTION(kClampInplace, "clamp_", "clamp", ", Tensor? min=None, Tensor? max=None", "x ← min(max(x, lo), hi)")
WAYMARK_INPLACE_FUNCTION(kMaskedFillInplace, "masked_fill_", "masked_fill", ", Tensor mask, Tensor value", "x ← m ? v : x")
WAYMARK_INPLACE_FUNCTION(kLerpInplace, "lerp_", "lerp", ", Tensor end, Tensor weight", "x ← x + w·(b − x)")
WAYMARK_INPLACE_FUNCTION(kAddcmulInplace, "addcmul_", "addcmul", ", Tensor tensor1, Tensor tensor2, *, Scalar value=1",
                "x ← x + v·a·b")
WAYMARK_INPLACE_FUNCTION(kAddcdivInplace, "addcdiv_", "addcdiv", ", Tensor tensor1, Tensor tensor2, *, Scalar value=1",
                "x ← x + v·a/b")

extern const OpInfo kDivInplace;  // inplace.cpp

namespace {

void check_number(std::string_view op, const Tensor& x, bool only_float, Loc loc) {
  if (only_float && !is_float(x.dtype()))
    fail_at(loc, op, "the result is {}, which does not fit into the target of {}", name_of(default_dtype()),
            name_of(x.dtype()));
  if (x.dtype() == kB8) fail_at(loc, op, "b8 is not supported; convert with to(...)");
}

// A function whose rule needs the result only: rule(g, y).
template <class Rule>
const Tensor& function(const OpInfo& op, Unary loop, const Tensor& x, bool only_float, bool keeps, Loc loc, Rule rule) {
  check_inplace(op.name, x, {Arg(x, loc)});
  check_number(op.name, x, only_float, loc);
  const Tensor old = history_before(x);
  unary_into(loop, x, x);
  record_inplace(op, x, {Arg(old, loc)}, [&](Saver& s) {
    return [rule, y = s.output(0, keeps)](Tensor g, const Need&) -> Grads { return {rule(g, y ? *y : Tensor())}; };
  });
  return x;
}

}  // namespace

const Tensor& neg_(const Tensor& x, Loc loc) {
  return function(kNegInplace, Unary::neg, x, false, false, loc, [](const Tensor& g, const Tensor&) { return neg(g); });
}
const Tensor& exp_(const Tensor& x, Loc loc) {
  return function(kExpInplace, Unary::exp, x, true, true, loc,
                  [](const Tensor& g, const Tensor& y) { return mul(g, y); });
}
const Tensor& sqrt_(const Tensor& x, Loc loc) {
  return function(kSqrtInplace, Unary::sqrt, x, true, true, loc,
                  [](const Tensor& g, const Tensor& y) { return div(g, mul(y, 2)); });
}
const Tensor& relu_(const Tensor& x, Loc loc) {
  return function(kReluInplace, Unary::relu, x, false, true, loc,
                  [](const Tensor& g, const Tensor& y) { return masked_fill(g, le(y, 0), 0); });
}
const Tensor& tanh_(const Tensor& x, Loc loc) {
  return function(kTanhInplace, Unary::tanh, x, true, true, loc,
                  [](const Tensor& g, const Tensor& y) { return mul(g, rsub(square(y), 1)); });
}
const Tensor& sigmoid_(const Tensor& x, Loc loc) {
  return function(kSigmoidInplace, Unary::sigmoid, x, true, true, loc,
                  [](const Tensor& g, const Tensor& y) { return mul(g, mul(y, rsub(y, 1))); });
}

namespace {

// The value comes from the op without the underscore, the history from rule(saver) -> rule of (g, need).
template <class Value, class Factory>
const Tensor& overwrite(const OpInfo& op, const Tensor& x, Inputs inputs, Value value, Factory factory) {
  Tensor y;
  {
    const Unrecorded off;
    y = value();
  }
  const Loc loc = inputs.loc();
  if (category_of(y.dtype()) > category_of(x.dtype()))
    fail_at(loc, op.name, "the result is {}, which does not fit into the target of {}", name_of(y.dtype()),
            name_of(x.dtype()));
  if (!(y.shape() == x.shape()))
    fail_at(loc, op.name, "the target {} cannot take a result of shape {}", x.shape(), y.shape());
  copy_into(x, y);
  record_inplace(op, x, inputs, factory);
  return x;
}

// An operand that the op saves: a copy where it is the target itself.
Tensor operand(const Tensor& x, const Arg& b) { return overlap_of(x, *b) == Overlap::full ? copy_before(*b) : *b; }

}  // namespace

const Tensor& pow_(const Tensor& x, Scalar exponent, Loc loc) {
  check_inplace("pow_", x, {Arg(x, loc)});
  const double s = exponent.to_double();
  const bool keep = grad_enabled() && edge_of(x).wanted() && s != 0 && s != 1;
  const Tensor old = keep ? copy_before(x) : history_before(x);
  return overwrite(
      kPowInplace, x, {Arg(old, loc)}, [&] { return pow(Arg(x, loc), exponent); },
      [&](Saver& saver) {
        return [s, a = saver.input(0, s != 0 && s != 1)](Tensor g, const Need&) -> Grads {
          if (s == 0) return {mul(g, 0)};
          if (s == 1) return {g};
          return {mul(g, mul(pow(*a, s - 1), s))};
        };
      });
}

const Tensor& clamp_(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max, Loc loc) {
  check_inplace("clamp_", x, {Arg(x, loc)});
  const Tensor old = history_before(x);
  Tensor inside;
  if (grad_enabled() && edge_of(x).wanted()) {
    const Unrecorded off;
    const double inf = std::numeric_limits<double>::infinity();
    inside = logical_and(ge(x, min ? min->to_double() : -inf), le(x, max ? max->to_double() : inf));
  }
  return overwrite(
      kClampInplace, x, {Arg(old, loc)}, [&] { return clamp(Arg(x, loc), min, max); },
      [&](Saver& s) { return [m = s.bits(inside)](Tensor g, const Need&) -> Grads { return {where(*m, g, 0)}; }; });
}

const Tensor& masked_fill_(const Tensor& x, Arg mask, Scalar value) {
  check_inplace("masked_fill_", x, {mask});
  const Tensor old = history_before(x), m = operand(x, mask);
  return overwrite(
      kMaskedFillInplace, x, {Arg(old, mask.loc()), Arg(m, mask.loc())},
      [&] { return masked_fill(Arg(x, mask.loc()), Arg(m, mask.loc()), value); },
      [&](Saver& s) {
        return [m = s.input(1)](Tensor g, const Need&) -> Grads { return {masked_fill(g, *m, 0), Tensor()}; };
      });
}

const Tensor& masked_fill_(const Tensor& x, Arg mask, Arg value) {
  check_inplace("masked_fill_", x, {mask, value});
  const Tensor old = history_before(x), m = operand(x, mask), v = operand(x, value);
  const Loc loc = mask.loc();
  return overwrite(
      kMaskedFillInplace, x, {Arg(old, loc), Arg(m, loc), Arg(v, loc)},
      [&] { return masked_fill(Arg(x, loc), Arg(m, loc), Arg(v, loc)); },
      [&](Saver& s) {
        return [m = s.input(1)](Tensor g, const Need& need) -> Grads {
          return {need[0] ? masked_fill(g, *m, 0) : Tensor(), Tensor(), need[2] ? sum(where(*m, g, 0)) : Tensor()};
        };
      });
}

namespace {

// x takes the value that `form` gives for x as it was; the node of `form` is the history.
template <class Form> const Tensor& by_form(const OpInfo& op, const Tensor& x, Loc loc, Form form) {
  const Tensor y = form(copy_before(x));
  return overwrite(op, x, {Arg(y, loc)}, [&] { return y; },
                   [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; }; });
}

}  // namespace

const Tensor& pow_(const Tensor& x, Arg exponent) {
  check_inplace("pow_", x, {exponent});
  const Tensor b = operand(x, exponent);
  const Loc loc = exponent.loc();
  return by_form(kPowInplace, x, loc, [&](const Tensor& old) { return pow(Arg(old, loc), Arg(b, loc)); });
}

const Tensor& clamp_(const Tensor& x, Arg min, Arg max) {
  check_inplace("clamp_", x, {min, max});
  const Tensor lo = min->defined() ? operand(x, min) : Tensor(), hi = max->defined() ? operand(x, max) : Tensor();
  const Loc loc = min.loc();
  return by_form(kClampInplace, x, loc,
                 [&](const Tensor& old) { return clamp(Arg(old, loc), Arg(lo, loc), Arg(hi, loc)); });
}

const Tensor& lerp_(const Tensor& x, Arg end, Arg weight) {
  check_inplace("lerp_", x, {end, weight});
  const Tensor b = operand(x, end), w = operand(x, weight);
  const Loc loc = end.loc();
  return by_form(kLerpInplace, x, loc,
                 [&](const Tensor& old) { return lerp(Arg(old, loc), Arg(b, loc), Arg(w, loc)); });
}

const Tensor& div_(const Tensor& x, Arg other, std::string_view rounding_mode) {
  check_inplace("div_", x, {other});
  const Tensor old = history_before(x), b = operand(x, other);
  const Loc loc = other.loc();
  return overwrite(
      kDivInplace, x, {Arg(old, loc), Arg(b, loc)}, [&] { return div(Arg(x, loc), Arg(b, loc), rounding_mode); },
      [](Saver&) {
        return [](Tensor g, const Need& need) -> Grads {
          const Tensor zero = mul(g, 0);
          return {need[0] ? zero : Tensor(), need[1] ? zero : Tensor()};
        };
      });
}

const Tensor& div_(const Tensor& x, Scalar other, std::string_view rounding_mode, Loc loc) {
  check_inplace("div_", x, {Arg(x, loc)});
  const Tensor old = history_before(x);
  return overwrite(
      kDivInplace, x, {Arg(old, loc)}, [&] { return div(Arg(x, loc), other, rounding_mode); },
      [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; }; });
}

const Tensor& lerp_(const Tensor& x, Arg end, Scalar weight) {
  check_inplace("lerp_", x, {end});
  const Tensor old = history_before(x);
  const double w = weight.to_double();
  return overwrite(
      kLerpInplace, x, {Arg(old, end.loc()), end}, [&] { return lerp(Arg(x, end.loc()), end, weight); },
      [&](Saver&) {
        return [w](Tensor g, const Need& need) -> Grads {
          return {need[0] ? mul(g, 1 - w) : Tensor(), need[1] ? mul(g, w) : Tensor()};
        };
      });
}

const Tensor& addcmul_(const Tensor& x, Arg a_, Arg b_, Scalar value) {
  check_inplace("addcmul_", x, {a_, b_});
  const Tensor old = history_before(x), a = operand(x, a_), b = operand(x, b_);
  const Loc loc = a_.loc();
  return overwrite(
      kAddcmulInplace, x, {Arg(old, loc), Arg(a, loc), Arg(b, loc)},
      [&] { return addcmul(Arg(x, loc), Arg(a, loc), Arg(b, loc), value); },
      [&](Saver& s) {
        return [value, a = s.input(1, s.needs(2)), b = s.input(2, s.needs(1))](Tensor g, const Need& need) -> Grads {
          const Tensor scaled = mul(g, value);
          return {g, need[1] ? mul(scaled, *b) : Tensor(), need[2] ? mul(scaled, *a) : Tensor()};
        };
      });
}

const Tensor& addcdiv_(const Tensor& x, Arg a_, Arg b_, Scalar value) {
  check_inplace("addcdiv_", x, {a_, b_});
  const Tensor old = history_before(x), a = operand(x, a_), b = operand(x, b_);
  const Loc loc = a_.loc();
  return overwrite(
      kAddcdivInplace, x, {Arg(old, loc), Arg(a, loc), Arg(b, loc)},
      [&] { return addcdiv(Arg(x, loc), Arg(a, loc), Arg(b, loc), value); },
      [&](Saver& s) {
        return [value, a = s.input(1, s.needs(2)), b = s.input(2, s.needs(1) || s.needs(2))](
                   Tensor g, const Need& need) -> Grads {
          Grads out(3);
          out[0] = g;
          if (!need[1] && !need[2]) return out;
          const Tensor da = div(mul(g, value), *b);
          if (need[1]) out[1] = da;
          if (need[2]) out[2] = neg(mul(da, div(*a, *b)));
          return out;
        };
      });
}

const Tensor& detach_(const Tensor& x, Loc loc) {
  check_defined("detach_", Arg(x, loc));
  AutogradMeta* m = meta_of(x);
  if (!m) return x;
  if (m->view) fail_at(loc, "detach_", "this is a view, whose history is that of its base; use detach()");
  m->history = {};
  m->requires_grad = false;
  return x;
}

}  // namespace waymark
