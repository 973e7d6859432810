// Functions of two tensors (declared in functions.h).
#include <cmath>
#include <limits>

#include "core/kernels/functions.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attributes.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/pointwise.h"
#include "core/tensor/strided.h"

namespace waymark {

using kernels::Pair;
using namespace ops;

#define WAYMARK_PAIR_INFO(K, NAME, DOC, FORMULA, TEXT, KINKS)                         \
  extern constexpr OpInfo K{.name = #NAME,                                            \
                            .family = "functions",                                    \
                            .doc = DOC,                                               \
                            .schema = #NAME "(Tensor input, Tensor other) -> Tensor", \
                            .formula = FORMULA,                                       \
                            .rule = TEXT,                                             \
                            .saves = {{"input", For{0, 1}}, {"other", For{0, 1}}},    \
                            .kinks = KINKS,                                           \
                            .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"), c.tensor("other"))); }};
WAYMARK_PAIR_INFO(kAtan2, atan2, "angle of the point (b, a)", "y = atan(a/b), by quadrant",
                  "da = g·b/(a² + b²),  db = −g·a/(a² + b²)", "")
WAYMARK_PAIR_INFO(kHypot, hypot, "length of the vector (a, b)", "y = √(a² + b²)",
                  "da = g·a/y,  db = g·b/y,  0 where y = 0", "")
WAYMARK_PAIR_INFO(kLogaddexp, logaddexp, "logarithm of a sum of exponentials", "y = log(eᵃ + eᵇ)",
                  "da = g·e^(a − y),  db = g·e^(b − y);  y = −inf: 0;  y = +inf: shared by the infinite", "")
extern constexpr OpInfo kXlogy{.name = "xlogy",
                               .family = "functions",
                               .doc = "a log b, 0 where a = 0",
                               .schema = "xlogy(Tensor input, Tensor other) -> Tensor",
                               .formula = "y = a·ln b",
                               .rule = "da = g·ln b, 0 where a = 0 and b ≤ 0;  db = g·a/b",
                               .saves = {{"input", For{0, 1}}, {"other", For{0, 1}}},
                               .apply = [](OpCall& c) {
                                 if (!c.is_tensor("input"))
                                   c.result(xlogy(c.scalar("input"), c.tensor("other")));
                                 else if (!c.is_tensor("other"))
                                   c.result(xlogy(c.tensor("input"), c.scalar("other")));
                                 else
                                   c.result(xlogy(c.tensor("input"), c.tensor("other")));
                               }};
WAYMARK_PAIR_INFO(kXlog1py, xlog1py, "a log(1 + b), 0 where a = 0", "y = a·ln(1 + b)",
                  "da = g·ln(1 + b), 0 where a = 0 and b ≤ −1;  db = g·a/(1 + b)", "")
WAYMARK_PAIR_INFO(kCopysign, copysign, "size of a with the sign of b", "y = ±|a|",
                  "da = g·(sign y·sign a), 0 at a = 0;  db = 0", "a = 0")
WAYMARK_PAIR_INFO(kFmax, fmax, "larger of two elements; NaN is ignored", "y = max(a, b)",
                  "g to the one chosen, the first on a tie", "a = b")
WAYMARK_PAIR_INFO(kFmin, fmin, "smaller of two elements; NaN is ignored", "y = min(a, b)",
                  "g to the one chosen, the first on a tie", "a = b")

namespace {

void check_broadcast(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  static_cast<void>(broadcast_shapes(op, a->shape(), b->shape()));
}

Tensor pair_value(Pair f, const Tensor& a, const Tensor& b, DType t) {
  return zip_value(kernels::pair_loop(f, t), cast_value(a, t), cast_value(b, t));
}
Tensor pair_value(Pair f, const Tensor& a, const Scalar& b, DType t, bool scalar_first = false) {
  return zip_value(kernels::pair_loop(f, t), cast_value(a, t), b, scalar_first);
}

// RULE(g, a, b, need) -> {da, db}
template <class Rule> Tensor float_pair(const OpInfo& op, Pair f, const Arg& a, const Arg& b, Rule rule) {
  check_broadcast(op.name, a, b);
  return record(op, pair_value(f, *a, *b, to_float(promote(*a, *b))), {a, b}, [&](Saver& s) {
    return [rule, a = s.input(0), b = s.input(1)](Tensor g, const Need& need) -> Grads {
      Grads out(2);
      const auto [da, db] = rule(g, *a, *b);
      if (need[0]) out[0] = da;
      if (need[1]) out[1] = db;
      return out;
    };
  });
}
using Two = std::pair<Tensor, Tensor>;

// 1/x, 0 where x = 0, at every order.
Tensor inverse_or_zero(const Tensor& x) {
  const Tensor none = eq(x, 0);
  return masked_fill(reciprocal(masked_fill(x, none, 1)), none, 0);
}

}  // namespace

Tensor atan2(Arg a, Arg b) {
  return float_pair(kAtan2, Pair::atan2, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor q = mul(g, inverse_or_zero(add(square(x), square(z))));
    return Two(mul(q, z), neg(mul(q, x)));
  });
}
Tensor hypot(Arg a, Arg b) {
  return float_pair(kHypot, Pair::hypot, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor q = mul(g, inverse_or_zero(hypot(x, z)));
    return Two(mul(q, x), mul(q, z));
  });
}
Tensor logaddexp(Arg a, Arg b) {
  return float_pair(kLogaddexp, Pair::logaddexp, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor y = logaddexp(x, z), infinite = isinf(y);
    const Tensor top = masked_fill(y, infinite, 0);
    const double peak = std::numeric_limits<double>::infinity();
    const Tensor count =
        masked_fill(to(add(to(eq(x, peak), kI64), to(eq(z, peak), kI64)), g.dtype()), logical_not(gt(y, 0)), 1);
    const auto side = [&](const Tensor& v) {
      const Tensor share = div(where(eq(v, peak), g, 0), count);
      return where(infinite, share, mul(g, exp(sub(masked_fill(v, infinite, 0), top))));
    };
    return Two(side(x), side(z));
  });
}
Tensor xlogy(Arg a, Arg b) {
  return float_pair(kXlogy, Pair::xlogy, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor off = logical_and(eq(x, 0), le(z, 0));
    return Two(masked_fill(mul(g, log(masked_fill(z, off, 1))), off, 0), mul(g, div(x, z)));
  });
}
Tensor xlogy(Arg a, Scalar b) {
  check_defined("xlogy", a);
  const DType t = to_float(promote(*a, b));
  const double z = b.to_double();
  return record(
      kXlogy, pair_value(Pair::xlogy, *a, b, t), {a},
      [&](Saver& s) {
        return [z, a = s.input(0, z <= 0)](Tensor g, const Need&) -> Grads {
          const Tensor da = mul(g, std::log(z));
          return {z <= 0 ? masked_fill(da, eq(*a, 0), 0) : da};
        };
      },
      [&](Attrs& at) { at("other", z); });
}
Tensor xlogy(Scalar a, Arg b) {
  check_defined("xlogy", b);
  const DType t = to_float(promote(*b, a));
  const double x = a.to_double();
  return record(
      kXlogy, pair_value(Pair::xlogy, *b, a, t, true), {b},
      [&](Saver& s) {
        return [x, b = s.input(0)](Tensor g, const Need&) -> Grads { return {mul(div(g, *b), x)}; };
      },
      [&](Attrs& at) { at("input", x); });
}
Tensor xlog1py(Arg a, Arg b) {
  return float_pair(kXlog1py, Pair::xlog1py, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor off = logical_and(eq(x, 0), le(z, -1));
    return Two(masked_fill(mul(g, log1p(masked_fill(z, off, 1))), off, 0), mul(g, div(x, add(z, 1))));
  });
}
Tensor copysign(Arg a, Arg b) {
  return float_pair(kCopysign, Pair::copysign, a, b, [](const Tensor& g, const Tensor& x, const Tensor& z) {
    const Tensor same = eq(signbit(x), signbit(z));
    return Two(masked_fill(where(same, g, neg(g)), eq(x, 0), 0), mul(g, 0));
  });
}

namespace {

Tensor chosen(const OpInfo& op, Pair f, const Arg& a, const Arg& b, bool larger) {
  check_broadcast(op.name, a, b);
  DType t = promote(*a, *b);
  if (!is_float(t)) {  // no NaN to ignore
    return record_nondiff(
        op, binary_value(op.name, larger ? kernels::Binary::maximum : kernels::Binary::minimum, a, b, t), {a, b});
  }
  return record(op, pair_value(f, *a, *b, t), {a, b}, [&](Saver& s) {
    return [larger, a = s.input(0), b = s.input(1)](Tensor g, const Need& need) -> Grads {
      const Tensor x = *a, z = *b;
      const Tensor first = logical_or(isnan(z), larger ? ge(x, z) : le(x, z));
      return {need[0] ? where(first, g, 0) : Tensor(), need[1] ? where(first, 0, g) : Tensor()};
    };
  });
}

}  // namespace

Tensor fmax(Arg a, Arg b) { return chosen(kFmax, Pair::fmax, a, b, true); }
Tensor fmin(Arg a, Arg b) { return chosen(kFmin, Pair::fmin, a, b, false); }

// ---- division with remainder ----------------------------------------------------------------------------------------

#define WAYMARK_DIVISION_INFO(K, NAME, DOC, FORMULA, ...)                             \
  extern constexpr OpInfo K{.name = #NAME,                                            \
                            .family = "functions",                                    \
                            .doc = DOC,                                               \
                            .schema = #NAME "(Tensor input, Tensor other) -> Tensor", \
                            .formula = FORMULA,                                       \
                            __VA_ARGS__,                                              \
                            .apply = [](OpCall& c) {                                  \
                              if (c.is_tensor("other"))                               \
                                c.result(NAME(c.tensor("input"), c.tensor("other"))); \
                              else                                                    \
                                c.result(NAME(c.tensor("input"), c.scalar("other"))); \
                            }};
WAYMARK_DIVISION_INFO(kRemainder, remainder, "what floor division leaves; the divisor's sign", "y = a − b·⌊a/b⌋",
                      .rule = "da = g,  db = −g·⌊a/b⌋", .saves = {{"input", For{1}}, {"other", For{1}}},
                      .kinks = "a/b an integer")
WAYMARK_DIVISION_INFO(kFmod, fmod, "what truncated division leaves; the dividend's sign", "y = a − b·trunc(a/b)",
                      .rule = "da = g,  db = −g·trunc(a/b)", .saves = {{"input", For{1}}, {"other", For{1}}},
                      .kinks = "a/b an integer")
WAYMARK_DIVISION_INFO(kFloorDivide, floor_divide, "quotient rounded to −inf", "y = ⌊a/b⌋",
                      .rule = not_differentiable("a rounded quotient is piecewise constant"))
extern constexpr OpInfo kDivRounded{.name = "div_rounded",
                                    .family = "functions",
                                    .doc = "quotient, rounded: div with a rounding_mode",
                                    .schema = "div_rounded(Tensor input, Tensor other, str rounding_mode) -> Tensor",
                                    .formula = "y = ⌊a/b⌋ or trunc(a/b)",
                                    .rule = "da = 0,  db = 0",
                                    .kinks = "a/b an integer",
                                    .apply = [](OpCall& c) {
                                      if (c.is_tensor("other"))
                                        c.result(div(c.tensor("input"), c.tensor("other"), c.word("rounding_mode")));
                                      else
                                        c.result(div(c.tensor("input"), c.scalar("other"), c.word("rounding_mode")));
                                    }};

namespace {

// dtype of a division; i64 by 0 and b8 are Errors.
DType check_division(std::string_view op, const Arg& a, const Arg& b) {
  check_broadcast(op, a, b);
  const DType t = promote(*a, *b);
  if (t == kB8) fail_at(a.loc(), op, "b8 is not supported; convert with to(...)");
  if (t != kI64 || a->numel() == 0) return t;
  const Tensor divisor = contiguous_value(cast_value(*b, kI64));
  for (i64 i = 0; i < divisor.numel(); ++i)
    if (divisor.data<i64>()[i] == 0)
      fail_at(a.loc(), op, "integer division by 0 at position {} of the divisor", position_text(b->shape(), i));
  return t;
}
DType check_division(std::string_view op, const Arg& a, const Scalar& b) {
  check_defined(op, a);
  const DType t = promote(*a, b);
  if (t == kB8) fail_at(a.loc(), op, "b8 is not supported; convert with to(...)");
  if (t == kI64 && a->numel() > 0 && b.to_i64() == 0) fail_at(a.loc(), op, "integer division by 0");
  return t;
}

// B: a tensor or a scalar.
template <class B> Tensor quotient_value(const Tensor& a, const B& b, DType t, bool floor) {
  if (floor) return pair_value(Pair::floor_divide, a, b, t);
  if (t != kI64) return pair_value(Pair::trunc_divide, a, b, t);
  // (a − fmod(a, b)) / b is exact and what floor division of it gives, too.
  const Tensor rest = pair_value(Pair::fmod, a, b, t);
  return pair_value(Pair::floor_divide, binary_value("div", kernels::Binary::sub, Arg(a), Arg(rest), t), b, t);
}

Tensor rest(const OpInfo& op, Pair f, const Arg& a, const Arg& b) {
  const DType t = check_division(op.name, a, b);
  const bool floor = f == Pair::remainder;
  return record(op, pair_value(f, *a, *b, t), {a, b}, [&](Saver& s) {
    return [floor, a = s.input(0, s.needs(1)), b = s.input(1, s.needs(1))](Tensor g, const Need& need) -> Grads {
      Tensor db;
      if (need[1]) db = neg(mul(g, div(*a, *b, floor ? "floor" : "trunc")));
      return {std::move(g), std::move(db)};
    };
  });
}

Tensor rest(const OpInfo& op, Pair f, const Arg& a, const Scalar& b) {
  const DType t = check_division(op.name, a, b);
  return record(
      op, pair_value(f, *a, b, t), {a},
      [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; }; },
      [&](Attrs& at) { at("other", b.to_double()); });
}

void check_rounding(const Arg& a, std::string_view mode) {
  if (mode != "floor" && mode != "trunc")
    fail_at(a.loc(), "div", "rounding_mode must be floor or trunc, got \"{}\"", mode);
}

}  // namespace

Tensor remainder(Arg a, Arg b) { return rest(kRemainder, Pair::remainder, a, b); }
Tensor fmod(Arg a, Arg b) { return rest(kFmod, Pair::fmod, a, b); }
Tensor remainder(Arg a, Scalar b) { return rest(kRemainder, Pair::remainder, a, b); }
Tensor fmod(Arg a, Scalar b) { return rest(kFmod, Pair::fmod, a, b); }

Tensor floor_divide(Arg a, Arg b) {
  const DType t = check_division("floor_divide", a, b);
  return record_nondiff(kFloorDivide, quotient_value(*a, *b, t, true), {a, b});
}
Tensor floor_divide(Arg a, Scalar b) {
  const DType t = check_division("floor_divide", a, b);
  return record_nondiff(kFloorDivide, quotient_value(*a, b, t, true), {a}, [&](Attrs& at) { at("other", attribute_of(b)); });
}

Tensor div(Arg a, Arg b, std::string_view rounding_mode) {
  check_rounding(a, rounding_mode);
  const DType t = check_division("div", a, b);
  return record(
      kDivRounded, quotient_value(*a, *b, t, rounding_mode == "floor"), {a, b},
      [](Saver&) {
        return [](Tensor g, const Need& need) -> Grads {
          const Tensor zero = mul(g, 0);
          return {need[0] ? zero : Tensor(), need[1] ? zero : Tensor()};
        };
      },
      [&](Attrs& at) { at("rounding_mode", std::string(rounding_mode)); });
}
Tensor div(Arg a, Scalar b, std::string_view rounding_mode) {
  check_rounding(a, rounding_mode);
  const DType t = check_division("div", a, b);
  return record(
      kDivRounded, quotient_value(*a, b, t, rounding_mode == "floor"), {a},
      [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; }; },
      [&](Attrs& at) {
        at("other", b.to_double());
        at("rounding_mode", std::string(rounding_mode));
      });
}

// ---- not differentiable ---------------------------------------------------------------------------------------------

extern constexpr OpInfo kHeaviside{
    .name = "heaviside",
    .family = "functions",
    .doc = "step function with a given value at 0",
    .schema = "heaviside(Tensor input, Tensor values) -> Tensor",
    .formula = "y = [x > 0], values where x = 0",
    .rule = not_differentiable("it is piecewise constant"),
    .apply = [](OpCall& c) { c.result(heaviside(c.tensor("input"), c.tensor("values"))); }};
#define WAYMARK_BITS_INFO(K, NAME, DOC, FORMULA)                                      \
  extern constexpr OpInfo K{.name = #NAME,                                            \
                            .family = "functions",                                    \
                            .doc = DOC,                                               \
                            .schema = #NAME "(Tensor input, Tensor other) -> Tensor", \
                            .formula = FORMULA,                                       \
                            .rule = not_differentiable("it is piecewise constant"),   \
                            .apply = [](OpCall& c) {                                  \
                              if (c.is_tensor("other"))                               \
                                c.result(NAME(c.tensor("input"), c.tensor("other"))); \
                              else                                                    \
                                c.result(NAME(c.tensor("input"), c.scalar("other"))); \
                            }};
WAYMARK_BITS_INFO(kBitwiseAnd, bitwise_and, "bits that both have", "y = a ∧ b")
WAYMARK_BITS_INFO(kBitwiseOr, bitwise_or, "bits that either has", "y = a ∨ b")
WAYMARK_BITS_INFO(kBitwiseXor, bitwise_xor, "bits that one of them has", "y = a ⊕ b")
WAYMARK_BITS_INFO(kLeftShift, left_shift, "bits moved up", "y = a·2ᵇ")
WAYMARK_BITS_INFO(kRightShift, right_shift, "bits moved down, the sign kept", "y = ⌊a/2ᵇ⌋")
extern constexpr OpInfo kBitwiseNot{.name = "bitwise_not",
                                    .family = "functions",
                                    .doc = "all bits turned",
                                    .schema = "bitwise_not(Tensor input) -> Tensor",
                                    .formula = "y = ¬x",
                                    .rule = not_differentiable("it is piecewise constant"),
                                    .apply = [](OpCall& c) { c.result(bitwise_not(c.tensor("input"))); }};

namespace {

Tensor plain(const OpInfo& op, Pair f, const Arg& a, const Arg& b) {
  check_broadcast(op.name, a, b);
  const DType t = promote(*a, *b);
  if (!kernels::pair_loop(f, t)) fail_at(a.loc(), op.name, "{} is not supported; convert with to(...)", name_of(t));
  return record_nondiff(op, pair_value(f, *a, *b, t), {a, b});
}
Tensor plain(const OpInfo& op, Pair f, const Arg& a, const Scalar& b) {
  check_defined(op.name, a);
  const DType t = promote(*a, b);
  if (!kernels::pair_loop(f, t)) fail_at(a.loc(), op.name, "{} is not supported; convert with to(...)", name_of(t));
  return record_nondiff(op, pair_value(f, *a, b, t), {a}, [&](Attrs& at) { at("other", b.to_double()); });
}

}  // namespace

Tensor bitwise_and(Arg a, Scalar b) { return plain(kBitwiseAnd, Pair::bitwise_and, a, b); }
Tensor bitwise_or(Arg a, Scalar b) { return plain(kBitwiseOr, Pair::bitwise_or, a, b); }
Tensor bitwise_xor(Arg a, Scalar b) { return plain(kBitwiseXor, Pair::bitwise_xor, a, b); }
Tensor left_shift(Arg a, Scalar b) { return plain(kLeftShift, Pair::left_shift, a, b); }
Tensor right_shift(Arg a, Scalar b) { return plain(kRightShift, Pair::right_shift, a, b); }

Tensor heaviside(Arg x, Arg values) { return plain(kHeaviside, Pair::heaviside, x, values); }
Tensor bitwise_and(Arg a, Arg b) { return plain(kBitwiseAnd, Pair::bitwise_and, a, b); }
Tensor bitwise_or(Arg a, Arg b) { return plain(kBitwiseOr, Pair::bitwise_or, a, b); }
Tensor bitwise_xor(Arg a, Arg b) { return plain(kBitwiseXor, Pair::bitwise_xor, a, b); }
Tensor left_shift(Arg a, Arg b) { return plain(kLeftShift, Pair::left_shift, a, b); }
Tensor right_shift(Arg a, Arg b) { return plain(kRightShift, Pair::right_shift, a, b); }
Tensor bitwise_not(Arg x) {
  check_defined("bitwise_not", x);
  if (is_float(x->dtype()))
    fail_at(x.loc(), "bitwise_not", "{} is not supported; convert with to(...)", name_of(x->dtype()));
  Tensor ones = make_empty({}, x->dtype());  // all bits
  fill_into(ones, x->dtype() == kB8 ? Scalar(true) : Scalar(-1));
  return record_nondiff(kBitwiseNot, pair_value(Pair::bitwise_xor, *x, ones, x->dtype()), {x});
}

}  // namespace waymark
