#include "core/ops/pointwise.h"

#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"

namespace waymark {

using kernels::Binary;
using kernels::Unary;
using namespace ops;

namespace {

// A rule that is one fused kernel k(g, saved) where nothing differentiates it, and composed ops otherwise.
Tensor fused(Binary kernel, const Tensor& g, const Tensor& saved) {
  return binary_value("backward", kernel, g, saved, saved.dtype());
}

}  // namespace

// An op y = f(x) whose rule needs the input: RULE is an expression of g (given away) and x.
#define WAYMARK_FROM_INPUT(K, NAME, LOOP, DTYPE, DOC, FORMULA, TEXT, KINKS, RULE)                                     \
  extern constexpr OpInfo K{                                                                                          \
      .name = #NAME, .family = "pointwise", .doc = DOC, .schema = #NAME "(Tensor input) -> Tensor",                   \
      .formula = FORMULA, .rule = TEXT, .saves = {{"input", For{0}}}, .kinks = KINKS,                                 \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};                                                 \
  Tensor NAME(Arg x_) {                                                                                               \
    check_defined(#NAME, x_);                                                                                         \
    const bool free = nothing_recorded({&*x_});                                                                       \
    return record(K, unary_value(#NAME, Unary::LOOP, x_, DTYPE(x_->dtype()), {}, free), {x_}, [](Saver& s) {          \
      return [x_ = s.input(0)](Tensor g, const Need&) -> Grads {                                                      \
        const Tensor x = *x_;                                                                                         \
        return {RULE};                                                                                                \
      };                                                                                                              \
    });                                                                                                               \
  }
// The same from the output y.
#define WAYMARK_FROM_OUTPUT(K, NAME, LOOP, DTYPE, DOC, FORMULA, TEXT, KINKS, RULE)                                    \
  extern constexpr OpInfo K{                                                                                          \
      .name = #NAME, .family = "pointwise", .doc = DOC, .schema = #NAME "(Tensor input) -> Tensor",                   \
      .formula = FORMULA, .rule = TEXT, .saves = {{"output", For{0}}}, .kinks = KINKS,                                \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};                                                 \
  Tensor NAME(Arg x_) {                                                                                               \
    check_defined(#NAME, x_);                                                                                         \
    return record(K, unary_value(#NAME, Unary::LOOP, x_, DTYPE(x_->dtype()), {}, true), {x_}, [](Saver& s) {          \
      return [y_ = s.output()](Tensor g, const Need&) -> Grads {                                                      \
        const Tensor y = *y_;                                                                                         \
        return {RULE};                                                                                                \
      };                                                                                                              \
    });                                                                                                               \
  }

static DType number(std::string_view op, DType t) {
  if (t == kB8) fail(op, "b8 is not supported; convert with to(...)");
  return t;
}
static DType abs_dtype(DType t) { return number("abs", t); }
static DType sign_dtype(DType t) { return number("sign", t); }
static DType square_dtype(DType t) { return t == kB8 ? kI64 : t; }

WAYMARK_FROM_INPUT(kAbs, abs, abs, abs_dtype, "absolute value", "y = |x|", "dx = g·sign(x), 0 at 0", "x = 0",
                   fused_backward_allowed() ? fused(Binary::abs_backward, g, x) : mul(g, sign(x)))
WAYMARK_FROM_INPUT(kSquare, square, square, square_dtype, "x times x", "y = x²", "dx = 2·g·x", "", mul(mul(g, x), 2))
WAYMARK_FROM_OUTPUT(kReciprocal, reciprocal, reciprocal, to_float, "one over x", "y = 1/x", "dx = −g·y²", "",
                    neg(mul(g, square(y))))
WAYMARK_FROM_OUTPUT(kSqrt, sqrt, sqrt, to_float, "square root", "y = √x", "dx = g/(2y)", "", div(g, mul(y, 2)))
WAYMARK_FROM_OUTPUT(kRsqrt, rsqrt, rsqrt, to_float, "one over the square root", "y = 1/√x", "dx = −g·y³/2", "",
                    mul(mul(g, mul(square(y), y)), -0.5))
WAYMARK_FROM_OUTPUT(kExp, exp, exp, to_float, "exponential", "y = eˣ", "dx = g·y", "", mul(g, y))
WAYMARK_FROM_INPUT(kLog, log, log, to_float, "natural logarithm", "y = ln x", "dx = g/x", "", div(g, x))
WAYMARK_FROM_INPUT(kSin, sin, sin, to_float, "sine", "y = sin x", "dx = g·cos x", "", mul(g, cos(x)))
WAYMARK_FROM_INPUT(kCos, cos, cos, to_float, "cosine", "y = cos x", "dx = −g·sin x", "", neg(mul(g, sin(x))))
WAYMARK_FROM_OUTPUT(kTanh, tanh, tanh, to_float, "hyperbolic tangent", "y = tanh x", "dx = g·(1 − y²)", "",
                    fused_backward_allowed() ? fused(Binary::tanh_backward, g, y) : mul(g, rsub(square(y), 1)))
WAYMARK_FROM_OUTPUT(kSigmoid, sigmoid, sigmoid, to_float, "logistic function", "y = 1/(1 + e⁻ˣ)", "dx = g·y·(1 − y)", "",
                    fused_backward_allowed() ? fused(Binary::sigmoid_backward, g, y) : mul(g, mul(y, rsub(y, 1))))
WAYMARK_FROM_INPUT(kErf, erf, erf, to_float, "error function", "y = erf x", "dx = g·(2/√π)·e^(−x²)", "",
                   mul(mul(g, exp(neg(square(x)))), 1.12837916709551257390))

// Piecewise constant: the derivative is 0, and requires_grad is kept, as PyTorch.
#define WAYMARK_STEP(K, NAME, LOOP, DTYPE, DOC, FORMULA, KINKS)                                                       \
  extern constexpr OpInfo K{                                                                                          \
      .name = #NAME, .family = "pointwise", .doc = DOC, .schema = #NAME "(Tensor input) -> Tensor",                   \
      .formula = FORMULA, .rule = "dx = 0", .kinks = KINKS,                                                           \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};                                                 \
  Tensor NAME(Arg x) {                                                                                                \
    check_defined(#NAME, x);                                                                                          \
    return record(K, unary_value(#NAME, Unary::LOOP, x, DTYPE(x->dtype()), {}, true), {x}, [](Saver&) {               \
      return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; };                                   \
    });                                                                                                               \
  }
static DType floor_dtype(DType t) { return number("floor", t); }
static DType ceil_dtype(DType t) { return number("ceil", t); }
WAYMARK_STEP(kSign, sign, sign, sign_dtype, "−1, 0 or 1", "y = sign x", "x = 0")
WAYMARK_STEP(kFloor, floor, floor, floor_dtype, "largest integer not above x", "y = ⌊x⌋", "x an integer")
WAYMARK_STEP(kCeil, ceil, ceil, ceil_dtype, "smallest integer not below x", "y = ⌈x⌉", "x an integer")

#define WAYMARK_TEST(K, NAME, DOC, FORMULA)                                                                           \
  extern constexpr OpInfo K{                                                                                          \
      .name = #NAME, .family = "comparison", .doc = DOC, .schema = #NAME "(Tensor input) -> Tensor",                  \
      .formula = FORMULA, .rule = not_differentiable("a test is piecewise constant"),                                 \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};                                                 \
  Tensor NAME(Arg x) {                                                                                                \
    check_defined(#NAME, x);                                                                                          \
    return record_nondiff(K, unary_value(#NAME, Unary::NAME, x, x->dtype()), {x});                                    \
  }
WAYMARK_TEST(kIsnan, isnan, "is the element NaN", "y = [x ≠ x]")
WAYMARK_TEST(kIsfinite, isfinite, "is the element a finite number", "y = [|x| < ∞]")

extern constexpr OpInfo kClamp{
    .name = "clamp", .family = "pointwise", .doc = "limits to [min, max]; max wins where min > max",
    .schema = "clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor", .formula = "y = min(max(x, lo), hi)",
    .rule = "dx = g·[lo ≤ x ≤ hi]", .saves = {{"input", For{0}}}, .kinks = "x = min, x = max",
    .apply = [](OpCall& c) {
      if (c.is_tensor("min") || c.is_tensor("max")) {
        c.result(clamp(c.tensor("input"), c.optional_tensor("min"), c.optional_tensor("max")));
        return;
      }
      std::optional<Scalar> lo, hi;
      if (c.has("min")) lo = c.scalar("min");
      if (c.has("max")) hi = c.scalar("max");
      c.result(clamp(c.tensor("input"), lo, hi));
    }};

Tensor clamp(Arg x, std::optional<Scalar> min, std::optional<Scalar> max) {
  check_defined("clamp", x);
  if (!min && !max) fail_at(x.loc(), "clamp", "at least one of min and max is needed");
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double lo = min ? min->to_double() : -inf, hi = max ? max->to_double() : inf;
  DType dtype = x->dtype();
  if (min) dtype = std::max(dtype, promote(*x, *min), [](DType a, DType b) { return category_of(a) < category_of(b); });
  if (max) dtype = std::max(dtype, promote(*x, *max), [](DType a, DType b) { return category_of(a) < category_of(b); });
  if (dtype == kB8) fail_at(x.loc(), "clamp", "b8 is not supported; convert with to(...)");
  // Of i64 the open side is the end of the range, not an infinity that would convert to INT64_MIN.
  const double bounds[] = {min || dtype != kI64 ? lo : -0x1p63, max || dtype != kI64 ? hi : 0x1.fffffffffffffp62};
  return record(kClamp, unary_value("clamp", Unary::clamp, x, dtype, bounds), {x}, [&](Saver& s) {
    return [x = s.input(0), lo, hi](Tensor g, const Need&) -> Grads {
      const Tensor v = *x;
      return {where(logical_and(ge(v, lo), le(v, hi)), g, 0)};
    };
  }, [&](Attrs& at) { at("min", lo); at("max", hi); });
}

#undef WAYMARK_FROM_INPUT
#undef WAYMARK_FROM_OUTPUT
#undef WAYMARK_STEP
#undef WAYMARK_TEST

}  // namespace waymark
