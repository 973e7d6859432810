#include "core/ops/arithmetic.h"

#include "core/ops/attributes.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"

namespace waymark {

using kernels::Binary;
using namespace ops;

// ---- add, sub -------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kAdd{
    .name = "add", .family = "arithmetic", .doc = "sum of two tensors, the second times alpha",
    .schema = "add(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
    .formula = "y = a + α·b", .rule = "da = g,  db = α·g",
    .apply = [](OpCall& c) {
      const Scalar alpha = c.scalar("alpha", Scalar(1));
      if (c.is_tensor("other")) c.result(add(c.tensor("input"), c.tensor("other"), alpha));
      else c.result(add(c.tensor("input"), c.scalar("other"), alpha));
    }};
extern constexpr OpInfo kSub{
    .name = "sub", .family = "arithmetic", .doc = "difference of two tensors, the second times alpha",
    .schema = "sub(Tensor input, Tensor other, *, Scalar alpha=1) -> Tensor",
    .formula = "y = a − α·b", .rule = "da = g,  db = −α·g",
    .apply = [](OpCall& c) {
      const Scalar alpha = c.scalar("alpha", Scalar(1));
      if (!c.is_tensor("other")) c.result(sub(c.tensor("input"), c.scalar("other"), alpha));
      else c.result(sub(c.tensor("input"), c.tensor("other"), alpha));
    }};

namespace {

bool is_one(const Scalar& s) { return s.is_integral() ? s.to_i64() == 1 : s.to_double() == 1; }

Tensor add_or_sub(const OpInfo& op, Binary loop, const Arg& a, const Arg& b, const Scalar& alpha, double sign) {
  check_defined(op.name, a);
  check_defined(op.name, b);
  const DType dtype = promote(*a, *b);
  if (!alpha.is_integral() && !is_float(dtype)) fail_at(a.loc(), op.name, "alpha is a float, but the result is {}", name_of(dtype));
  const double factor = sign * alpha.to_double();
  Tensor y;
  if (is_one(alpha)) {
    y = binary_value(op.name, loop, a, b, dtype, true);
  } else {
    const Tensor scaled = binary_value(op.name, Binary::mul, b, alpha, dtype);
    y = binary_value(op.name, loop, a, Arg(scaled, b.loc()), dtype);
  }
  return record(op, std::move(y), {a, b}, [&](Saver&) {
    return [factor](Tensor g, const Need& need) -> Grads {
      Tensor db;
      if (need[1]) db = factor == 1 ? g : mul(g, factor);
      return {need[0] ? std::move(g) : Tensor(), std::move(db)};
    };
  }, [&](Attrs& at) { at("alpha", attribute_of(alpha)); });
}

}  // namespace

Tensor add(Arg a, Arg b, Scalar alpha) { return add_or_sub(kAdd, Binary::add, a, b, alpha, 1); }

namespace {

// alpha·b as an i64 or float number.
Scalar scaled(std::string_view op, const Arg& a, const Scalar& b, const Scalar& alpha) {
  if (is_one(alpha)) return b;
  if (!alpha.is_integral() && !is_float(promote(*a, b)))
    fail_at(a.loc(), op, "alpha is a float, but the result is {}", name_of(promote(*a, b)));
  if (b.is_integral() && alpha.is_integral())
    return Scalar(static_cast<i64>(static_cast<u64>(b.to_i64()) * static_cast<u64>(alpha.to_i64())));
  return Scalar(b.to_double() * alpha.to_double());
}

}  // namespace

Tensor add(Arg a, Scalar b, Scalar alpha) {
  check_defined("add", a);
  b = scaled("add", a, b, alpha);
  return record(kAdd, binary_value("add", Binary::add, a, b, promote(*a, b), true), {a}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

static void refuse_b8(const Arg& a, bool b_is_b8) {
  if (a->dtype() == kB8 || b_is_b8) fail_at(a.loc(), "sub", "b8 has no difference; use logical_xor or logical_not");
}

Tensor sub(Arg a, Arg b, Scalar alpha) {
  check_defined("sub", a);
  check_defined("sub", b);
  refuse_b8(a, b->dtype() == kB8);
  return add_or_sub(kSub, Binary::sub, a, b, alpha, -1);
}

Tensor sub(Arg a, Scalar b, Scalar alpha) {
  check_defined("sub", a);
  refuse_b8(a, b.category() == 0);
  b = scaled("sub", a, b, alpha);
  return record(kSub, binary_value("sub", Binary::sub, a, b, promote(*a, b), true), {a}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

extern constexpr OpInfo kRsub{
    .name = "rsub", .family = "arithmetic", .doc = "a number minus a tensor",
    .schema = "rsub(Tensor input, Scalar other) -> Tensor", .formula = "y = b − a", .rule = "da = −g",
    .apply = [](OpCall& c) { c.result(rsub(c.tensor("input"), c.scalar("other"))); }};

Tensor rsub(Arg a, Scalar b) {
  check_defined("rsub", a);
  refuse_b8(a, b.category() == 0);
  return record(kRsub, binary_value("rsub", Binary::sub, a, b, promote(*a, b), true, true), {a}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {neg(std::move(g))}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

// ---- mul, div, neg --------------------------------------------------------------------------------------------------

extern constexpr OpInfo kMul{
    .name = "mul", .family = "arithmetic", .doc = "elementwise product",
    .schema = "mul(Tensor input, Tensor other) -> Tensor", .formula = "y = a·b", .rule = "da = g·b,  db = g·a",
    .saves = {{"input", For{1}}, {"other", For{0}}},
    .apply = [](OpCall& c) {
      if (c.is_tensor("other")) c.result(mul(c.tensor("input"), c.tensor("other")));
      else c.result(mul(c.tensor("input"), c.scalar("other")));
    }};

Tensor mul(Arg a, Arg b) {
  check_defined("mul", a);
  check_defined("mul", b);
  const bool free = nothing_recorded({&*a, &*b});
  return record(kMul, binary_value("mul", Binary::mul, a, b, promote(*a, *b), free), {a, b}, [&](Saver& s) {
    return [a = s.input(0, s.needs(1)), b = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      return {need[0] ? mul(g, *b) : Tensor(), need[1] ? mul(g, *a) : Tensor()};
    };
  });
}

Tensor mul(Arg a, Scalar b) {
  check_defined("mul", a);
  return record(kMul, binary_value("mul", Binary::mul, a, b, promote(*a, b), true), {a}, [&](Saver&) {
    return [b](Tensor g, const Need&) -> Grads { return {mul(std::move(g), b)}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

extern constexpr OpInfo kDiv{
    .name = "div", .family = "arithmetic", .doc = "true division",
    .schema = "div(Tensor input, Tensor other, *, str? rounding_mode=None) -> Tensor",
    .formula = "y = a/b", .rule = "da = g/b,  db = −g·y/b", .saves = {{"other", For{0, 1}}, {"output", For{1}}},
    .apply = [](OpCall& c) {
      if (c.has("rounding_mode")) {
        const std::string mode = c.word("rounding_mode");
        if (c.is_tensor("other")) c.result(div(c.tensor("input"), c.tensor("other"), mode));
        else c.result(div(c.tensor("input"), c.scalar("other"), mode));
      } else if (c.is_tensor("other")) c.result(div(c.tensor("input"), c.tensor("other")));
      else c.result(div(c.tensor("input"), c.scalar("other")));
    }};

Tensor div(Arg a, Arg b) {
  check_defined("div", a);
  check_defined("div", b);
  const bool free = nothing_recorded({&*a, &*b});
  return record(kDiv, binary_value("div", Binary::div, a, b, to_float(promote(*a, *b)), free), {a, b}, [&](Saver& s) {
    return [b = s.input(1), y = s.output(0, s.needs(1))](Tensor g, const Need& need) -> Grads {
      const Tensor q = div(g, *b);
      return {need[0] ? q : Tensor(), need[1] ? neg(mul(q, *y)) : Tensor()};
    };
  });
}

Tensor div(Arg a, Scalar b) {
  check_defined("div", a);
  return record(kDiv, binary_value("div", Binary::div, a, b, to_float(promote(*a, b)), true), {a}, [&](Saver&) {
    return [b](Tensor g, const Need&) -> Grads { return {div(std::move(g), b)}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

Tensor operator/(Scalar a, Arg b) { return mul(reciprocal(b), a); }

extern constexpr OpInfo kNeg{
    .name = "neg", .family = "arithmetic", .doc = "sign change", .schema = "neg(Tensor input) -> Tensor",
    .formula = "y = −x", .rule = "dx = −g", .apply = [](OpCall& c) { c.result(neg(c.tensor("input"))); }};

Tensor neg(Arg x) {
  check_defined("neg", x);
  if (x->dtype() == kB8) fail_at(x.loc(), "neg", "b8 has no sign; use logical_not");
  return record(kNeg, unary_value("neg", kernels::Unary::neg, x, x->dtype(), {}, true), {x}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {neg(std::move(g))}; };
  });
}

// ---- maximum, minimum -----------------------------------------------------------------------------------------------

extern constexpr OpInfo kMaximum{
    .name = "maximum", .family = "arithmetic", .doc = "larger of two elements; NaN wins",
    .schema = "maximum(Tensor input, Tensor other) -> Tensor", .formula = "y = max(a, b)",
    .rule = "g to the winner, g/2 to each on a tie; where an operand is NaN: g to both but a kept number",
    .saves = {{"input", For{0, 1}}, {"other", For{0, 1}}}, .kinks = "a = b",
    .apply = [](OpCall& c) { c.result(maximum(c.tensor("input"), c.tensor("other"))); }};
extern constexpr OpInfo kMinimum{
    .name = "minimum", .family = "arithmetic", .doc = "smaller of two elements; NaN wins",
    .schema = "minimum(Tensor input, Tensor other) -> Tensor", .formula = "y = min(a, b)",
    .rule = "g to the winner, g/2 to each on a tie; where an operand is NaN: g to both but a kept number",
    .saves = {{"input", For{0, 1}}, {"other", For{0, 1}}}, .kinks = "a = b",
    .apply = [](OpCall& c) { c.result(minimum(c.tensor("input"), c.tensor("other"))); }};

static Tensor extreme(const OpInfo& op, Binary loop, const Arg& a, const Arg& b) {
  check_defined(op.name, a);
  check_defined(op.name, b);
  const bool larger = loop == Binary::maximum;
  return record(op, binary_value(op.name, loop, a, b, promote(*a, *b)), {a, b}, [&](Saver& s) {
    return [larger, a = s.input(0), b = s.input(1)](Tensor g, const Need& need) -> Grads {
      const Tensor x = *a, y = *b, half = mul(g, 0.5), tie = eq(x, y);
      // PyTorch: the loser is where its comparison says so; a NaN loses no comparison.
      const auto side = [&](const Tensor& mine, const Tensor& other) {
        const Tensor loses = larger ? lt(mine, other) : gt(mine, other);
        return where(tie, half, masked_fill(g, loses, 0));
      };
      return {need[0] ? side(x, y) : Tensor(), need[1] ? side(y, x) : Tensor()};
    };
  });
}
Tensor maximum(Arg a, Arg b) { return extreme(kMaximum, Binary::maximum, a, b); }
Tensor minimum(Arg a, Arg b) { return extreme(kMinimum, Binary::minimum, a, b); }

// ---- comparisons ----------------------------------------------------------------------------------------------------

#define WAYMARK_COMPARISON(K, NAME, FORMULA)                                                                        \
  extern constexpr OpInfo K{                                                                                        \
      .name = #NAME, .family = "comparison", .doc = "elementwise comparison, b8; NaN compares false (ne: true)",    \
      .schema = #NAME "(Tensor input, Tensor other) -> Tensor", .formula = FORMULA,                                 \
      .rule = not_differentiable("a comparison is piecewise constant"),                                             \
      .apply = [](OpCall& c) {                                                                                      \
        if (c.is_tensor("other")) c.result(NAME(c.tensor("input"), c.tensor("other")));                             \
        else c.result(NAME(c.tensor("input"), c.scalar("other")));                                                  \
      }};                                                                                                           \
  Tensor NAME(Arg a, Arg b) {                                                                                       \
    check_defined(#NAME, a);                                                                                        \
    check_defined(#NAME, b);                                                                                        \
    return record_nondiff(K, binary_value(#NAME, Binary::NAME, a, b, promote(*a, *b)), {a, b});                     \
  }                                                                                                                 \
  Tensor NAME(Arg a, Scalar b) {                                                                                    \
    check_defined(#NAME, a);                                                                                        \
    return record_nondiff(K, binary_value(#NAME, Binary::NAME, a, b, promote(*a, b)), {a},                          \
                          [&](Attrs& at) { at("other", attribute_of(b)); });                                        \
  }
WAYMARK_COMPARISON(kEq, eq, "y = [a = b]")
WAYMARK_COMPARISON(kNe, ne, "y = [a ≠ b]")
WAYMARK_COMPARISON(kLt, lt, "y = [a < b]")
WAYMARK_COMPARISON(kLe, le, "y = [a ≤ b]")
WAYMARK_COMPARISON(kGt, gt, "y = [a > b]")
WAYMARK_COMPARISON(kGe, ge, "y = [a ≥ b]")

#define WAYMARK_LOGICAL(K, NAME, FORMULA)                                                                          \
  extern constexpr OpInfo K{                                                                                       \
      .name = #NAME, .family = "comparison", .doc = "elementwise logic on x ≠ 0, b8",                              \
      .schema = #NAME "(Tensor input, Tensor other) -> Tensor", .formula = FORMULA,                                \
      .rule = not_differentiable("logic is piecewise constant"),                                                   \
      .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.tensor("other"))); }};                           \
  Tensor NAME(Arg a, Arg b) {                                                                                      \
    check_defined(#NAME, a);                                                                                       \
    check_defined(#NAME, b);                                                                                       \
    return record_nondiff(K, binary_value(#NAME, Binary::NAME, a, b, promote(*a, *b)), {a, b});                    \
  }
WAYMARK_LOGICAL(kLogicalAnd, logical_and, "y = [a ≠ 0] ∧ [b ≠ 0]")
WAYMARK_LOGICAL(kLogicalOr, logical_or, "y = [a ≠ 0] ∨ [b ≠ 0]")
WAYMARK_LOGICAL(kLogicalXor, logical_xor, "y = [a ≠ 0] ≠ [b ≠ 0]")

extern constexpr OpInfo kLogicalNot{
    .name = "logical_not", .family = "comparison", .doc = "x = 0, b8", .schema = "logical_not(Tensor input) -> Tensor",
    .formula = "y = [x = 0]", .rule = not_differentiable("logic is piecewise constant"),
    .apply = [](OpCall& c) { c.result(logical_not(c.tensor("input"))); }};
Tensor logical_not(Arg x) {
  check_defined("logical_not", x);
  return record_nondiff(kLogicalNot, unary_value("logical_not", kernels::Unary::logical_not, x, x->dtype()), {x});
}

}  // namespace waymark
