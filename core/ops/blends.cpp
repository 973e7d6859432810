// lerp, addcmul, addcdiv, clamp and masked_fill with tensors, isclose, allclose, equal (declared in functions.h).
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/counts.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

namespace waymark {

using kernels::Binary;
using namespace ops;

extern constexpr OpInfo kLerp{.name = "lerp",
                              .family = "functions",
                              .doc = "linear interpolation",
                              .schema = "lerp(Tensor input, Tensor end, Tensor weight) -> Tensor",
                              .formula = "y = a + w·(b − a)",
                              .rule = "da = g·(1 − w),  db = g·w,  dw = g·(b − a)",
                              .saves = {{"input", For{2}}, {"end", For{2}}, {"weight", For{0, 1}}},
                              .apply = [](OpCall& c) {
                                if (c.is_tensor("weight"))
                                  c.result(lerp(c.tensor("input"), c.tensor("end"), c.tensor("weight")));
                                else
                                  c.result(lerp(c.tensor("input"), c.tensor("end"), c.scalar("weight")));
                              }};
#define WAYMARK_ADDC(K, NAME, FORMULA, TEXT)                                                                       \
  extern constexpr OpInfo K{                                                                                       \
      .name = #NAME,                                                                                               \
      .family = "functions",                                                                                       \
      .doc = "a tensor plus value times a product or quotient",                                                    \
      .schema = #NAME "(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",               \
      .formula = FORMULA,                                                                                          \
      .rule = TEXT,                                                                                                \
      .saves = {{"tensor1", For{2}}, {"tensor2", For{1, 2}}},                                                      \
      .apply = [](OpCall& c) {                                                                                     \
        c.result(NAME(c.tensor("input"), c.tensor("tensor1"), c.tensor("tensor2"), c.scalar("value", Scalar(1)))); \
      }};
WAYMARK_ADDC(kAddcmul, addcmul, "y = x + v·a·b", "dx = g,  da = v·g·b,  db = v·g·a")
WAYMARK_ADDC(kAddcdiv, addcdiv, "y = x + v·a/b", "dx = g,  da = v·g/b,  db = −v·g·a/b²")
extern constexpr OpInfo kClampTensor{
    .name = "clamp_tensor",
    .family = "functions",
    .doc = "limits that are tensors: clamp with tensors; max wins where min > max",
    .schema = "clamp_tensor(Tensor input, Tensor? min=None, Tensor? max=None) -> Tensor",
    .formula = "y = min(max(x, lo), hi)",
    .rule = "dx = g·[lo ≤ x ≤ hi];  dlo = g where x < lo < hi;  dhi = g where x > hi or lo > hi",
    .saves = {{"input", For{0, 1, 2}}, {"min", For{0, 1, 2}}, {"max", For{0, 1, 2}}},
    .kinks = "x = min, x = max",
    .apply = [](OpCall& c) { c.result(clamp(c.tensor("input"), c.optional_tensor("min"), c.optional_tensor("max"))); }};
extern constexpr OpInfo kMaskedFillTensor{
    .name = "masked_fill_tensor",
    .family = "functions",
    .doc = "a 0-d tensor's value where the mask is true: masked_fill with a tensor",
    .schema = "masked_fill_tensor(Tensor input, Tensor mask, Tensor value) -> Tensor",
    .formula = "y = m ? v : x",
    .rule = "dx = m ? 0 : g,  dv = Σ g at m",
    .saves = {{"mask", For{0, 2}}},
    .apply = [](OpCall& c) { c.result(masked_fill(c.tensor("input"), c.tensor("mask"), c.tensor("value"))); }};
extern constexpr OpInfo kIsclose{
    .name = "isclose",
    .family = "comparison",
    .doc = "are elements nearly equal",
    .schema = "isclose(Tensor input, Tensor other, float rtol=1e-5, float atol=1e-8, bool equal_nan=False) -> Tensor",
    .formula = "y = [|a − b| ≤ atol + rtol·|b|]",
    .rule = not_differentiable("a comparison is piecewise constant"),
    .apply = [](OpCall& c) {
      c.result(isclose(c.tensor("input"), c.tensor("other"), c.number("rtol", 1e-5), c.number("atol", 1e-8),
                       c.flag("equal_nan", false)));
    }};

namespace {

void check_float_three(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  need_float(op, *a);
  need_float(op, *b);
}

Tensor binary(Binary f, const Tensor& a, const Tensor& b) {
  return binary_value("value", f, Arg(a), Arg(b), promote(a, b));
}

}  // namespace

Tensor lerp(Arg a, Arg b, Scalar weight) {
  check_float_three("lerp", a, b);
  const double w = weight.to_double();
  // From the nearer end, so that w = 1 gives b exactly.
  const Tensor difference = binary(Binary::sub, *b, *a);
  const Tensor scaled =
      binary_value("lerp", Binary::mul, Arg(difference), Scalar(w < 0.5 ? w : 1 - w), difference.dtype());
  return record(
      kLerp, w < 0.5 ? binary(Binary::add, *a, scaled) : binary(Binary::sub, *b, scaled), {a, b},
      [&](Saver&) {
        return [w](Tensor g, const Need& need) -> Grads {
          return {need[0] ? mul(g, 1 - w) : Tensor(), need[1] ? mul(g, w) : Tensor()};
        };
      },
      [&](Attrs& at) { at("weight", w); });
}

Tensor lerp(Arg a, Arg b, Arg weight) {
  check_float_three("lerp", a, b);
  check_defined("lerp", weight);
  need_float("lerp", *weight);
  Tensor y;
  {
    const Unrecorded off;
    const Tensor difference = sub(*b, *a);
    y = where(lt(*weight, 0.5), add(*a, mul(*weight, difference)), sub(*b, mul(difference, rsub(*weight, 1))));
  }
  return record(kLerp, std::move(y), {a, b, weight}, [&](Saver& s) {
    return [a = s.input(0, s.needs(2)), b = s.input(1, s.needs(2)), w = s.input(2, s.needs(0) || s.needs(1))](
               Tensor g, const Need& need) -> Grads {
      return {need[0] ? mul(g, rsub(*w, 1)) : Tensor(), need[1] ? mul(g, *w) : Tensor(),
              need[2] ? mul(g, sub(*b, *a)) : Tensor()};
    };
  });
}

namespace {

void check_addc(std::string_view op, const Arg& x, const Arg& a, const Arg& b, const Scalar& value, bool quotient) {
  for (const Arg* t : {&x, &a, &b}) check_defined(op, *t);
  const Tensor list[] = {*x, *a, *b};
  const DType t = promote(std::span<const Tensor>(list));
  if (quotient && !is_float(t)) fail_at(x.loc(), op, "needs float tensors, got {}; convert with to(...)", name_of(t));
  if (t == kB8) fail_at(x.loc(), op, "b8 is not supported; convert with to(...)");
  if (!value.is_integral() && !is_float(t)) fail_at(x.loc(), op, "value is a float, but the result is {}", name_of(t));
}

// x + v·(a ∘ b), computed as values.
Tensor addc_value(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value, bool quotient) {
  const Unrecorded off;
  return add(x, quotient ? div(a, b) : mul(a, b), value);
}

}  // namespace

Tensor addcmul(Arg x, Arg a, Arg b, Scalar value) {
  check_addc("addcmul", x, a, b, value, false);
  return record(
      kAddcmul, addc_value(*x, *a, *b, value, false), {x, a, b},
      [&](Saver& s) {
        return [value, a = s.input(1, s.needs(2)), b = s.input(2, s.needs(1))](Tensor g, const Need& need) -> Grads {
          const Tensor scaled = need[1] || need[2] ? mul(g, value) : Tensor();
          return {g, need[1] ? mul(scaled, *b) : Tensor(), need[2] ? mul(scaled, *a) : Tensor()};
        };
      },
      [&](Attrs& at) { at("value", value.to_double()); });
}
Tensor addcdiv(Arg x, Arg a, Arg b, Scalar value) {
  check_addc("addcdiv", x, a, b, value, true);
  return record(
      kAddcdiv, addc_value(*x, *a, *b, value, true), {x, a, b},
      [&](Saver& s) {
        return [value, a = s.input(1, s.needs(2)), b = s.input(2, s.needs(1) || s.needs(2))](
                   Tensor g, const Need& need) -> Grads {
          Tensor da, db;
          if (need[1] || need[2]) da = div(mul(g, value), *b);
          if (need[2]) db = neg(mul(da, div(*a, *b)));
          return {g, need[1] ? da : Tensor(), std::move(db)};
        };
      },
      [&](Attrs& at) { at("value", value.to_double()); });
}

Tensor clamp(Arg x, Arg min, Arg max) {
  check_defined("clamp", x);
  if (!min->defined() && !max->defined()) fail_at(x.loc(), "clamp", "at least one of min and max is needed");
  Tensor y;
  {
    const Unrecorded off;
    y = *x;
    if (min->defined()) y = maximum(y, *min);
    if (max->defined()) y = minimum(y, *max);
  }
  return record(kClampTensor, std::move(y), {x, min, max}, [&](Saver& s) {
    return [x = s.input(0), lo = s.input(1), hi = s.input(2)](Tensor g, const Need& need) -> Grads {
      const Tensor v = *x, low = lo ? *lo : Tensor(), high = hi ? *hi : Tensor();
      Grads out(3);
      if (need[0]) {
        const Tensor above = lo ? ge(v, low) : Tensor(), below = hi ? le(v, high) : Tensor();
        out[0] = where(lo && hi ? logical_and(above, below) : lo ? above : below, g, 0);
      }
      if (need[1]) out[1] = where(hi ? logical_and(lt(v, low), lt(low, high)) : lt(v, low), g, 0);
      if (need[2]) out[2] = where(lo ? logical_or(gt(v, high), gt(low, high)) : gt(v, high), g, 0);
      return out;
    };
  });
}

Tensor masked_fill(Arg x, Arg mask, Arg v) {
  check_defined("masked_fill", v);
  if (v->dim() != 0) fail_at(x.loc(), "masked_fill", "the value must be 0-d, got {}", v->shape());
  Tensor y;
  {
    const Unrecorded off;
    y = masked_fill(x, mask,
                    v->dtype() == kI64  ? Scalar(v->item<i64>())
                    : v->dtype() == kB8 ? Scalar(v->item<bool>())
                                        : Scalar(v->item<double>()));
  }
  return record(kMaskedFillTensor, std::move(y), {x, mask, v}, [&](Saver& s) {
    return [m = s.input(1)](Tensor g, const Need& need) -> Grads {
      return {need[0] ? masked_fill(g, *m, 0) : Tensor(), Tensor(), need[2] ? sum(where(*m, g, 0)) : Tensor()};
    };
  });
}

Tensor isclose(Arg a, Arg b, double rtol, double atol, bool equal_nan) {
  check_defined("isclose", a);
  check_defined("isclose", b);
  if (!(rtol >= 0) || !(atol >= 0)) fail_at(a.loc(), "isclose", "rtol {} and atol {} must not be negative", rtol, atol);
  Tensor y;
  {
    const Unrecorded off;
    // b8 has no difference.
    const Tensor u = a->dtype() == kB8 ? cast_value(*a, kI64) : *a, v = b->dtype() == kB8 ? cast_value(*b, kI64) : *b;
    y = eq(u, v);
    if (is_float(promote(u, v)) || atol > 0 || rtol > 0) {
      const Tensor distance = abs(sub(u, v)), allowed = add(mul(abs(v), rtol), atol);
      y = logical_or(y, logical_and(isfinite(distance), le(distance, allowed)));
    }
    if (equal_nan) y = logical_or(y, logical_and(isnan(u), isnan(v)));
  }
  return record_nondiff(kIsclose, std::move(y), {a, b}, [&](Attrs& at) {
    at("rtol", rtol);
    at("atol", atol);
  });
}
bool allclose(Arg a, Arg b, double rtol, double atol, bool equal_nan) {
  const Unrecorded off;
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}
bool equal(Arg a, Arg b) {
  check_defined("equal", a);
  check_defined("equal", b);
  if (!(a->shape() == b->shape())) return false;
  const Unrecorded off;
  return all(eq(*a, *b)).item<bool>();
}

}  // namespace waymark
