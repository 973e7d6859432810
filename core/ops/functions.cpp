// Functions of one tensor.
#include "core/ops/functions.h"

#include <cmath>
#include <limits>

#include "core/kernels/functions.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"
#include "core/parallel/parallel.h"

namespace waymark {

using kernels::Function;
using namespace ops;

namespace {

DType number_type(const Arg& x, std::string_view op) {
  if (x->dtype() == kB8) fail_at(x.loc(), op, "b8 is not supported; convert with to(...)");
  return x->dtype();
}

// A float function: i64 and b8 go to the default float first. The buffer of an rvalue may take the result where the
// rule does not need the input.
Tensor function_value(Function f, const Arg& x, bool input_kept, std::span<const double> p = {}) {
  const DType t = to_float(x->dtype());
  const bool free = !input_kept || nothing_recorded({&*x});
  if (x->dtype() == t) return map_value(kernels::function_loop(f, t), x, p, free);
  return map_value(kernels::function_loop(f, t), Arg(cast_value(*x, t), x.loc()), p);
}

}  // namespace

// RULE: an expression of g and the input x, or of g and the output y.
#define WAYMARK_INFO(K, NAME, DOC, FORMULA, TEXT, SAVED)                \
  extern constexpr OpInfo K{.name = #NAME,                              \
                            .family = "functions",                      \
                            .doc = DOC,                                 \
                            .schema = #NAME "(Tensor input) -> Tensor", \
                            .formula = FORMULA,                         \
                            .rule = TEXT,                               \
                            .saves = {{SAVED, For{0}}},                 \
                            .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};
#define WAYMARK_FROM_INPUT(K, NAME, DOC, FORMULA, TEXT, RULE)                       \
  WAYMARK_INFO(K, NAME, DOC, FORMULA, TEXT, "input")                                \
  Tensor NAME(Arg x_) {                                                             \
    check_defined(#NAME, x_);                                                       \
    return record(K, function_value(Function::NAME, x_, true), {x_}, [](Saver& s) { \
      return [x_ = s.input(0)](Tensor g, const Need&) -> Grads {                    \
        const Tensor x = *x_;                                                       \
        return {RULE};                                                              \
      };                                                                            \
    });                                                                             \
  }
#define WAYMARK_FROM_OUTPUT(K, NAME, DOC, FORMULA, TEXT, RULE)                       \
  WAYMARK_INFO(K, NAME, DOC, FORMULA, TEXT, "output")                                \
  Tensor NAME(Arg x_) {                                                              \
    check_defined(#NAME, x_);                                                        \
    return record(K, function_value(Function::NAME, x_, false), {x_}, [](Saver& s) { \
      return [y_ = s.output()](Tensor g, const Need&) -> Grads {                     \
        const Tensor y = *y_;                                                        \
        return {RULE};                                                               \
      };                                                                             \
    });                                                                              \
  }

static constexpr double kLn2 = 0.69314718055994530942, kLn10 = 2.30258509299404568402,
                        kHalfSqrtPi = 0.88622692545275801365;

WAYMARK_FROM_OUTPUT(kExp2, exp2, "power of two", "y = 2ˣ", "dx = g·y·ln 2", mul(mul(g, y), kLn2))
WAYMARK_FROM_OUTPUT(kExpm1, expm1, "exponential minus one, exact near 0", "y = eˣ − 1", "dx = g·(y + 1)",
                    mul(g, add(y, 1)))
WAYMARK_FROM_INPUT(kLog2, log2, "binary logarithm", "y = log₂ x", "dx = g/(x·ln 2)", div(g, mul(x, kLn2)))
WAYMARK_FROM_INPUT(kLog10, log10, "decimal logarithm", "y = log₁₀ x", "dx = g/(x·ln 10)", div(g, mul(x, kLn10)))
WAYMARK_FROM_INPUT(kLog1p, log1p, "logarithm of 1 + x, exact near 0", "y = ln(1 + x)", "dx = g/(1 + x)",
                   div(g, add(x, 1)))
WAYMARK_FROM_OUTPUT(kTan, tan, "tangent", "y = tan x", "dx = g·(1 + y²)", mul(g, add(square(y), 1)))
WAYMARK_FROM_INPUT(kAsin, asin, "inverse sine", "y = asin x", "dx = g/√(1 − x²)", mul(g, rsqrt(rsub(square(x), 1))))
WAYMARK_FROM_INPUT(kAcos, acos, "inverse cosine", "y = acos x", "dx = −g/√(1 − x²)",
                   neg(mul(g, rsqrt(rsub(square(x), 1)))))
WAYMARK_FROM_INPUT(kAtan, atan, "inverse tangent", "y = atan x", "dx = g/(1 + x²)", div(g, add(square(x), 1)))
WAYMARK_FROM_INPUT(kSinh, sinh, "hyperbolic sine", "y = sinh x", "dx = g·cosh x", mul(g, cosh(x)))
WAYMARK_FROM_INPUT(kCosh, cosh, "hyperbolic cosine", "y = cosh x", "dx = g·sinh x", mul(g, sinh(x)))
WAYMARK_FROM_INPUT(kAsinh, asinh, "inverse hyperbolic sine", "y = asinh x", "dx = g/√(x² + 1)",
                   mul(g, rsqrt(add(square(x), 1))))
WAYMARK_FROM_INPUT(kAcosh, acosh, "inverse hyperbolic cosine", "y = acosh x", "dx = g/√(x² − 1)",
                   mul(g, rsqrt(sub(square(x), 1))))
WAYMARK_FROM_INPUT(kAtanh, atanh, "inverse hyperbolic tangent", "y = atanh x", "dx = g/(1 − x²)",
                   div(g, rsub(square(x), 1)))
WAYMARK_FROM_INPUT(kErfc, erfc, "complementary error function", "y = 1 − erf x", "dx = −g·(2/√π)·e^(−x²)",
                   mul(mul(g, exp(neg(square(x)))), -1.12837916709551257390))
WAYMARK_FROM_OUTPUT(kErfinv, erfinv, "inverse error function", "erf y = x", "dx = g·(√π/2)·e^(y²)",
                    mul(mul(g, exp(square(y))), kHalfSqrtPi))

extern constexpr OpInfo kLogit{.name = "logit",
                               .family = "functions",
                               .doc = "log-odds",
                               .schema = "logit(Tensor input, float? eps=None) -> Tensor",
                               .formula = "y = ln(x/(1 − x)), x in [eps, 1 − eps]",
                               .rule = "dx = g/(x(1 − x)), 0 outside [eps, 1 − eps]; without eps NaN outside [0, 1]",
                               .saves = {{"input", For{0}}},
                               .kinks = "x = eps, x = 1 − eps",
                               .apply = [](OpCall& c) {
                                 std::optional<double> eps;
                                 if (c.has("eps")) eps = c.number("eps");
                                 c.result(logit(c.tensor("input"), eps));
                               }};

Tensor logit(Arg x, std::optional<double> eps) {
  check_defined("logit", x);
  const double nan = std::numeric_limits<double>::quiet_NaN(), low = eps.value_or(nan), high = eps ? 1 - *eps : nan;
  const double p[] = {low, high};
  return record(
      kLogit, function_value(Function::logit, x, true, p), {x},
      [&](Saver& s) {
        return [x = s.input(0), low, high, limited = eps.has_value()](Tensor g, const Need&) -> Grads {
          const Tensor v = *x;
          if (!limited) {
            const Tensor dx = div(g, mul(v, rsub(v, 1)));
            return {masked_fill(dx, logical_or(lt(v, 0), gt(v, 1)), low)};
          }
          // Outside, the quotient may be anything, so it is formed of ½ there.
          const Tensor outside = logical_or(lt(v, low), gt(v, high)), safe = masked_fill(v, outside, 0.5);
          return {masked_fill(div(g, mul(safe, rsub(safe, 1))), outside, 0)};
        };
      },
      [&](Attrs& at) { at("eps", low); });
}

extern constexpr OpInfo kNanToNum{
    .name = "nan_to_num",
    .family = "functions",
    .doc = "NaN and infinities replaced by numbers",
    .schema = "nan_to_num(Tensor input, float nan=0, float? posinf=None, float? neginf=None) -> Tensor",
    .formula = "y = x where finite, else nan, posinf, neginf",
    .rule = "dx = g where x is finite, else 0",
    .saves = {{"mask bits", For{0}}},
    .apply = [](OpCall& c) {
      std::optional<double> high, low;
      if (c.has("posinf")) high = c.number("posinf");
      if (c.has("neginf")) low = c.number("neginf");
      c.result(nan_to_num(c.tensor("input"), c.number("nan", 0.0), high, low));
    }};

Tensor nan_to_num(Arg x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  check_defined("nan_to_num", x);
  Tensor y;
  if (is_float(x->dtype())) {
    const double most = x->dtype() == kF64 ? std::numeric_limits<double>::max()
                                           : static_cast<double>(std::numeric_limits<float>::max());
    const double p[] = {nan, posinf.value_or(most), neginf.value_or(-most)};
    y = map_value(kernels::function_loop(Function::nan_to_num, x->dtype()), Arg(*x, x.loc()), p);
  } else {
    y = make_empty_like(*x, x->dtype());
    copy_into(y, *x);
  }
  return record(
      kNanToNum, std::move(y), {x},
      [&](Saver& s) {
        const Unrecorded off;
        return [finite = s.bits(isfinite(*x))](Tensor g, const Need&) -> Grads { return {where(*finite, g, 0)}; };
      },
      [&](Attrs& at) {
        at("nan", nan);
        if (posinf) at("posinf", *posinf);
        if (neginf) at("neginf", *neginf);
      });
}

extern constexpr OpInfo kPositive{.name = "positive",
                                  .family = "functions",
                                  .doc = "x itself",
                                  .schema = "positive(Tensor input) -> Tensor",
                                  .formula = "y = x",
                                  .rule = "dx = g",
                                  .view = true,
                                  .apply = [](OpCall& c) { c.result(positive(c.tensor("input"))); }};

Tensor positive(Arg x) {
  check_defined("positive", x);
  static_cast<void>(number_type(x, "positive"));
  return record_view(kPositive, alias(*x), x,
                     [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; }; });
}

// ---- rounding -------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kTrunc{.name = "trunc",
                               .family = "functions",
                               .doc = "rounded towards 0",
                               .schema = "trunc(Tensor input) -> Tensor",
                               .formula = "y = trunc x",
                               .rule = "dx = 0",
                               .kinks = "x an integer",
                               .apply = [](OpCall& c) { c.result(trunc(c.tensor("input"))); }};
extern constexpr OpInfo kFrac{.name = "frac",
                              .family = "functions",
                              .doc = "what rounding towards 0 takes away",
                              .schema = "frac(Tensor input) -> Tensor",
                              .formula = "y = x − trunc x",
                              .rule = "dx = g",
                              .kinks = "x an integer",
                              .apply = [](OpCall& c) { c.result(frac(c.tensor("input"))); }};
extern constexpr OpInfo kRound{
    .name = "round",
    .family = "functions",
    .doc = "rounded to so many decimals, half to even",
    .schema = "round(Tensor input, *, int decimals=0) -> Tensor",
    .formula = "y = round(x·10ᵈ)/10ᵈ",
    .rule = "dx = 0",
    .kinks = "halfway between two results",
    .apply = [](OpCall& c) { c.result(round(c.tensor("input"), c.integer("decimals", 0))); }};

namespace {

Tensor copied(const Tensor& x) {
  Tensor y = make_empty_like(x, x.dtype());
  copy_into(y, x);
  return y;
}

Tensor step(const OpInfo& op, const Arg& x, Tensor y, i64 decimals = 0) {
  return record(op, std::move(y), {x},
                [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; }; },
                [&](Attrs& at) { if (decimals != 0) at("decimals", decimals); });
}

}  // namespace

Tensor trunc(Arg x) {
  check_defined("trunc", x);
  if (number_type(x, "trunc") == kI64) return step(kTrunc, x, copied(*x));
  return step(kTrunc, x, function_value(Function::trunc, x, false));
}
Tensor round(Arg x, i64 decimals) {
  check_defined("round", x);
  if (number_type(x, "round") == kI64) {
    if (decimals != 0)
      fail_at(x.loc(), "round", "i64 has no decimals to round to ({}); convert with to(...)", decimals);
    return step(kRound, x, copied(*x));
  }
  const double p[] = {std::pow(10.0, std::abs(static_cast<double>(decimals))), decimals < 0 ? 1.0 : 0.0};
  return step(kRound, x, function_value(Function::round, x, false, p), decimals);
}
Tensor frac(Arg x) {
  check_defined("frac", x);
  need_float("frac", *x);
  return record(kFrac, function_value(Function::frac, x, false), {x},
                [](Saver&) { return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; }; });
}

// ---- tests ----------------------------------------------------------------------------------------------------------

namespace {

template <class F> Tensor test_value(const Tensor& given, F test) {
  const Tensor x = contiguous_value(given);
  Tensor y = make_empty(x.shape(), kB8);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* xs = x.data<T>();
    bool* ys = y.data<bool>();
    parallel_for(x.numel(), kGrain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) ys[i] = test(xs[i]);
    });
  });
  return y;
}

struct Infinite {
  template <class T> bool operator()(T v) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::isinf(v);
    else
      return false;
  }
};
template <int kSign> struct SignedInfinite {
  template <class T> bool operator()(T v) const { return Infinite()(v) && (v > T(0)) == (kSign > 0); }
};
struct Negative {
  template <class T> bool operator()(T v) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::signbit(v);
    else if constexpr (std::is_same_v<T, bool>)
      return false;
    else
      return v < 0;
  }
};

}  // namespace

#define WAYMARK_TEST(K, NAME, TEST, DOC, FORMULA)                                           \
  extern constexpr OpInfo K{.name = #NAME,                                                  \
                            .family = "comparison",                                         \
                            .doc = DOC,                                                     \
                            .schema = #NAME "(Tensor input) -> Tensor",                     \
                            .formula = FORMULA,                                             \
                            .rule = not_differentiable("a test is piecewise constant"),     \
                            .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }}; \
  Tensor NAME(Arg x) {                                                                      \
    check_defined(#NAME, x);                                                                \
    return record_nondiff(K, test_value(*x, TEST), {x});                                    \
  }
WAYMARK_TEST(kIsinf, isinf, Infinite(), "is the element infinite", "y = [|x| = ∞]")
WAYMARK_TEST(kIsposinf, isposinf, SignedInfinite<1>(), "is the element +inf", "y = [x = ∞]")
WAYMARK_TEST(kIsneginf, isneginf, SignedInfinite<-1>(), "is the element -inf", "y = [x = −∞]")
WAYMARK_TEST(kSignbit, signbit, Negative(), "is the sign negative (also of −0)", "y = [sign bit of x]")

#undef WAYMARK_INFO
#undef WAYMARK_FROM_INPUT
#undef WAYMARK_FROM_OUTPUT
#undef WAYMARK_TEST

}  // namespace waymark
