// pow (declared in arithmetic.h).
#include "core/ops/arithmetic.h"

#include <cmath>
#include <limits>

#include "core/ops/elementwise.h"
#include "core/ops/pointwise.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kPow{
    .name = "pow", .family = "arithmetic", .doc = "power; i64 wraps",
    .schema = "pow(Tensor input, Tensor exponent) -> Tensor", .formula = "y = aᵇ",
    .rule = "da = g·b·a^(b−1), 0 where b = 0;  db = g·y·ln a, 0 where a = 0 and b ≥ 0",
    .saves = {{"input", For{0, 1}}, {"exponent", For{0, 1}}, {"output", For{1}}},
    .apply = [](OpCall& c) {
      if (!c.is_tensor("input")) c.result(pow(c.scalar("input"), c.tensor("exponent")));
      else if (!c.is_tensor("exponent")) c.result(pow(c.tensor("input"), c.scalar("exponent")));
      else c.result(pow(c.tensor("input"), c.tensor("exponent")));
    }};

Tensor pow(Arg a, Arg b) {
  check_defined("pow", a);
  check_defined("pow", b);
  const DType dtype = promote(*a, *b);
  if (dtype == kB8) fail_at(a.loc(), "pow", "b8 is not supported; convert with to(...)");
  return record(kPow, binary_value("pow", kernels::Binary::pow, a, b, dtype), {a, b}, [&](Saver& s) {
    return [a = s.input(0), b = s.input(1), y = s.output(0, s.needs(1))](Tensor g, const Need& need) -> Grads {
      const Tensor base = *a, exponent = *b;
      Tensor da, db;
      if (need[0]) da = masked_fill(mul(g, mul(exponent, pow(base, sub(exponent, 1)))), eq(exponent, 0), 0);
      if (need[1]) db = masked_fill(mul(g, mul(*y, log(base))), logical_and(eq(base, 0), ge(exponent, 0)), 0);
      return {std::move(da), std::move(db)};
    };
  });
}

Tensor pow(Arg a, Scalar e) {
  check_defined("pow", a);
  if (promote(*a, e) == kB8) fail_at(a.loc(), "pow", "b8 is not supported; convert with to(...)");
  if (promote(*a, e) == kI64 && e.to_i64() < 0)
    fail_at(a.loc(), "pow", "an integer to the negative power {} is no integer; convert with .to(kF32)", e.to_i64());
  const double s = e.to_double();
  // The powers with a better form than exp(s·log a).
  if (is_float(a->dtype())) {
    if (s == 2) return square(a);
    if (s == 0.5) return sqrt(a);
    if (s == -1) return reciprocal(a);
    if (s == -0.5) return rsqrt(a);
  }
  return record(kPow, binary_value("pow", kernels::Binary::pow, a, e, promote(*a, e)), {a}, [&](Saver& save) {
    return [s, a = save.input(0, s != 0 && s != 1)](Tensor g, const Need&) -> Grads {
      if (s == 0) return {mul(g, 0)};
      if (s == 1) return {g};
      return {mul(g, mul(pow(*a, s - 1), s))};
    };
  }, [&](Attrs& at) { at("exponent", s); });
}

Tensor pow(Scalar base, Arg b) {
  check_defined("pow", b);
  const DType dtype = promote(*b, base);
  if (dtype == kB8) fail_at(b.loc(), "pow", "b8 is not supported; convert with to(...)");
  const double a = base.to_double();
  return record(kPow, binary_value("pow", kernels::Binary::pow, b, base, dtype, false, true), {b}, [&](Saver& s) {
    return [a, b = s.input(0, a == 0), y = s.output()](Tensor g, const Need&) -> Grads {
      if (a == 0) return {masked_fill(mul(mul(g, *y), -std::numeric_limits<double>::infinity()), ge(*b, 0), 0)};
      return {mul(g, mul(*y, std::log(a)))};
    };
  }, [&](Attrs& at) { at("input", a); });
}

}  // namespace waymark
