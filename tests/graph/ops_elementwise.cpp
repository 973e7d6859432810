// Elementwise ops of the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

template <class F> void unary(OpTable& t, const std::string& name, F f) {
  t.add(name, [](Maker& m, Instruction& in) { in.set("input", m.input()); },
        [f](const Call& c) { return std::vector{elementwise(f, c.grid("input"))}; });
}
template <class F> void binary(OpTable& t, const std::string& name, F f, const std::string& second = "other") {
  t.add(name,
        [second](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set(second, m.coin(0.1) ? a : m.partner(m.grid(a).shape));
        },
        [f, second](const Call& c) { return std::vector{elementwise(f, c.grid("input"), c.grid(second))}; });
}
// The second operand may be a number.
template <class F> void binary_or_number(OpTable& t, const std::string& name, F f, const std::string& second = "other") {
  t.add(name,
        [second](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          if (m.coin(0.3)) in.set(second, m.coin() ? Value(m.between(1, 3)) : Value(m.uniform(0.3, 2)));
          else in.set(second, m.coin(0.1) ? a : m.partner(m.grid(a).shape));
        },
        [f, second](const Call& c) {
          if (c.is_grid(second)) return std::vector{elementwise(f, c.grid("input"), c.grid(second))};
          const Grid number = fresh_numbers(Kind::real, {}, {c.number(second)});
          return std::vector{elementwise(f, c.grid("input"), number)};
        },
        3);
}
template <class F> void compare(OpTable& t, const std::string& name, F f) {
  t.add(name,
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("other", m.partner(m.grid(a).shape));
        },
        [f](const Call& c) {
          const Ints shape = *broadcast_shape(c.grid("input").shape, c.grid("other").shape);
          const Grid a = expanded(c.grid("input"), shape), b = expanded(c.grid("other"), shape);
          std::vector<double> out;
          for (size_t i = 0; i < a.numel(); ++i) {
            near(a.value(i) - b.value(i));
            out.push_back(f(a.value(i), b.value(i)));
          }
          return std::vector{fresh_numbers(Kind::boolean, shape, out)};
        });
}

// From above 0; elsewhere the graph does not go.
template <class X> X positive_only(const X& x) {
  if (primal(x) < 0.05) throw Unsuitable{};
  return x;
}
template <class X> X away_from_0(const X& x) {
  if (std::abs(primal(x)) < 0.1) throw Unsuitable{};
  return x;
}
// x - b·q with q a whole number that depends on a/b.
template <class X> X remainder_of(const X& a, const X& b, bool floor) {
  const double ratio = primal(a) / primal(away_from_0(b));
  near(ratio - std::round(ratio));
  return a - b * (floor ? std::floor(ratio) : std::trunc(ratio));
}
template <class X> double rounded_ratio(const X& a, const X& b, bool floor) {
  const double ratio = primal(a) / primal(away_from_0(b));
  near(ratio - std::round(ratio));
  return floor ? std::floor(ratio) : std::trunc(ratio);
}

}  // namespace

#define UNARY(NAME, EXPRESSION) unary(t, #NAME, [](auto x) { return EXPRESSION; })
#define BINARY(NAME, EXPRESSION) binary(t, #NAME, [](auto x, auto y) { return EXPRESSION; })

void add_elementwise(OpTable& t) {
  UNARY(neg, -x);
  UNARY(positive, x);
  t.maybe_a_view();
  UNARY(clone, x);
  UNARY(abs, absolute(x));
  UNARY(square, x * x);
  UNARY(reciprocal, 1.0 / away_from_0(x));
  UNARY(sqrt, sqrt(positive_only(x)));
  UNARY(rsqrt, 1.0 / sqrt(positive_only(x)));
  UNARY(exp, exp(x));
  UNARY(exp2, exp(x * std::log(2.0)));
  UNARY(expm1, expm1(x));
  UNARY(log, log(positive_only(x)));
  UNARY(log2, log(positive_only(x)) / std::log(2.0));
  UNARY(log10, log(positive_only(x)) / std::log(10.0));
  UNARY(log1p, log1p(inside(x, -0.95, 1e9)));
  UNARY(sin, sin(x));
  UNARY(cos, cos(x));
  UNARY(tan, tan(inside(x, -1.4, 1.4)));
  UNARY(asin, asin(inside(x, -0.9, 0.9)));
  UNARY(acos, acos(inside(x, -0.9, 0.9)));
  UNARY(atan, atan(x));
  UNARY(sinh, sinh(x));
  UNARY(cosh, cosh(x));
  UNARY(tanh, tanh(x));
  UNARY(asinh, asinh(x));
  UNARY(acosh, acosh(inside(x, 1.1, 1e9)));
  UNARY(atanh, atanh(inside(x, -0.9, 0.9)));
  UNARY(erf, erf(x));
  UNARY(erfc, 1.0 - erf(inside(x, -9, 3)));
  UNARY(erfinv, erfinv(inside(x, -0.9, 0.9)));
  UNARY(sigmoid, 1.0 / (exp(-x) + 1.0));
  UNARY(sign, step_value(x, primal(x) > 0 ? 1 : -1, primal(x)));
  UNARY(floor, step_value(x, std::floor(primal(x)), primal(x) - std::round(primal(x))));
  UNARY(ceil, step_value(x, std::ceil(primal(x)), primal(x) - std::round(primal(x))));
  UNARY(trunc, step_value(x, std::trunc(primal(x)), primal(x) - std::round(primal(x))));
  UNARY(frac, x - step_value(x, std::trunc(primal(x)), primal(x) - std::round(primal(x))));
  UNARY(round, step_value(x, std::nearbyint(primal(x)), primal(x) - std::floor(primal(x)) - 0.5));
  UNARY(nan_to_num, x);

  BINARY(maximum, choose(primal(x - y), x, y));
  BINARY(minimum, choose(primal(y - x), x, y));
  BINARY(fmax, choose(primal(x - y), x, y));
  BINARY(fmin, choose(primal(y - x), x, y));
  BINARY(hypot, sqrt(positive_only(x * x + y * y)));
  BINARY(logaddexp, log(exp(x) + exp(y)));
  BINARY(xlogy, x * log(positive_only(y)));
  BINARY(xlog1py, x * log1p(inside(y, -0.95, 1e9)));
  BINARY(copysign, absolute(x) * (primal(step_value(y, 0, primal(y))), primal(y) > 0 ? 1.0 : -1.0));
  binary(t, "atan2", [](auto x, auto y) {
    // The angle is that of atan(x / y), moved by a multiple of half a turn.
    const auto base = atan(x / away_from_0(y));
    near(primal(x));
    return primal(y) > 0 ? base : base + (primal(x) > 0 ? M_PI : -M_PI);
  });
  binary_or_number(t, "add", [](auto x, auto y) { return x + y; });
  binary_or_number(t, "sub", [](auto x, auto y) { return x - y; });
  binary_or_number(t, "mul", [](auto x, auto y) { return x * y; });
  binary_or_number(t, "div", [](auto x, auto y) { return x / away_from_0(y); });
  binary_or_number(t, "remainder", [](auto x, auto y) { return remainder_of(x, y, true); });
  binary_or_number(t, "fmod", [](auto x, auto y) { return remainder_of(x, y, false); });
  binary_or_number(t, "pow", [](auto x, auto y) { return exp(log(positive_only(x)) * y); }, "exponent");
  t.add("floor_divide",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("other", m.partner(m.grid(a).shape));
        },
        [](const Call& c) {  // declared to have no derivative: constants
          const Grid q = elementwise([](auto x, auto y) { return lift(rounded_ratio(x, y, true), x); }, c.grid("input"),
                                     c.grid("other"));
          std::vector<double> values;
          for (size_t i = 0; i < q.numel(); ++i) values.push_back(q.value(i));
          return std::vector{fresh_numbers(Kind::real, q.shape, values)};
        });
  t.add("div_rounded",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("other", m.partner(m.grid(a).shape));
          in.set("rounding_mode", std::string(m.coin() ? "floor" : "trunc"));
        },
        [](const Call& c) {
          const bool floor = c.word("rounding_mode") == "floor";
          return std::vector{elementwise([floor](auto x, auto y) { return lift(rounded_ratio(x, y, floor), x); },
                                         c.grid("input"), c.grid("other"))};
        });
  for (const char* name : {"add", "sub"}) {
    const double sign = name[0] == 'a' ? 1 : -1;
    t.add(name,
          [](Maker& m, Instruction& in) {
            const Slot a = m.input();
            in.set("input", a);
            in.set("other", m.partner(m.grid(a).shape));
            in.set("alpha", m.uniform(-1.5, 1.5));
          },
          [sign](const Call& c) {
            const double alpha = c.is_grid("other") ? sign * c.number("alpha", 1) : sign;
            const Grid other = c.is_grid("other") ? c.grid("other") : fresh_numbers(Kind::real, {}, {c.number("other")});
            return std::vector{elementwise([alpha](auto x, auto y) { return x + y * alpha; }, c.grid("input"), other)};
          });
  }
  t.add("rsub",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          in.set("other", m.uniform(-1, 1));
        },
        [](const Call& c) {
          const double other = c.number("other");
          return std::vector{elementwise([other](auto x) { return other - x; }, c.grid("input"))};
        });
  // Whole exponents take negative bases, too.
  t.add("pow",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          in.set("exponent", m.between(0, 4));
        },
        [](const Call& c) {
          if (c.is_grid("exponent"))
            return std::vector{elementwise([](auto x, auto y) { return exp(log(positive_only(x)) * y); },
                                           c.grid("input"), c.grid("exponent"))};
          const double p = c.number("exponent");
          return std::vector{elementwise([p](auto x) {
            if (p != std::floor(p)) positive_only(x);
            return power(x, p);
          }, c.grid("input"))};
        });
  t.add("clamp",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          if (m.coin(0.8)) in.set("min", m.uniform(-1.5, 0));
          in.set("max", m.uniform(0.1, 1.5));
        },
        [](const Call& c) {
          const double low = c.number("min", -1e9), high = c.number("max", 1e9);
          return std::vector{elementwise([low, high](auto x) {
            const auto y = choose(primal(x) - low, x, lift(low, x));
            return choose(high - primal(y), y, lift(high, x));
          }, c.grid("input"))};
        });
  t.add("clamp_tensor",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("min", m.smaller(m.grid(a).shape));
          in.set("max", m.smaller(m.grid(a).shape));
        },
        [](const Call& c) {
          return std::vector{elementwise([](auto x, auto low, auto high) {
            near(primal(low) - primal(high));
            if (primal(low) > primal(high)) return high;
            const auto y = choose(primal(x - low), x, low);
            return choose(primal(high - y), y, high);
          }, c.grid("input"), c.grid("min"), c.grid("max"))};
        });
  t.add("lerp",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("end", m.partner(m.grid(a).shape));
          if (m.coin()) in.set("weight", m.uniform(0, 1));
          else in.set("weight", m.partner(m.grid(a).shape));
        },
        [](const Call& c) {
          const Grid w = c.is_grid("weight") ? c.grid("weight") : fresh_numbers(Kind::real, {}, {c.number("weight")});
          return std::vector{elementwise([](auto x, auto y, auto u) { return x + (y - x) * u; }, c.grid("input"),
                                         c.grid("end"), w)};
        });
  for (const bool divide : {false, true})
    t.add(divide ? "addcdiv" : "addcmul",
          [](Maker& m, Instruction& in) {
            const Slot a = m.input();
            in.set("input", a);
            in.set("tensor1", m.partner(m.grid(a).shape));
            in.set("tensor2", m.smaller(m.grid(a).shape));
            if (m.coin()) in.set("value", m.uniform(-1, 1));
          },
          [divide](const Call& c) {
            const double v = c.number("value", 1);
            const auto multiply = [v](auto x, auto y, auto z) { return x + y * z * v; };
            const auto quotient = [v](auto x, auto y, auto z) { return x + y / away_from_0(z) * v; };
            const Grid &x = c.grid("input"), &y = c.grid("tensor1"), &z = c.grid("tensor2");
            return std::vector{divide ? elementwise(quotient, x, y, z) : elementwise(multiply, x, y, z)};
          });
  compare(t, "gt", [](double a, double b) { return a > b; });
  compare(t, "ge", [](double a, double b) { return a >= b; });
  compare(t, "lt", [](double a, double b) { return a < b; });
  compare(t, "le", [](double a, double b) { return a <= b; });
  compare(t, "ne", [](double a, double b) { return a != b; });
  t.add("where",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input(), b = m.partner(m.grid(a).shape);
          in.set("condition", m.mask(*broadcast_shape(m.grid(a).shape, m.grid(b).shape)));
          in.set("input", a);
          in.set("other", b);
        },
        [](const Call& c) {
          return std::vector{elementwise([](auto k, auto x, auto y) { return primal(k) != 0 ? x : y; },
                                         c.grid("condition"), c.grid("input"), c.grid("other"))};
        },
        3);
  t.add("masked_fill",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input();
          in.set("input", a);
          in.set("mask", m.mask(m.grid(a).shape));
          if (m.coin(0.7)) in.set("value", m.uniform(-1, 1));
          else in.set("value", m.real_of({}));
        },
        [](const Call& c) {
          const Grid v = c.is_grid("value") ? c.grid("value") : fresh_numbers(Kind::real, {}, {c.number("value")});
          return std::vector{elementwise([](auto k, auto x, auto y) { return primal(k) != 0 ? y : x; }, c.grid("mask"),
                                         c.grid("input"), v)};
        },
        2);
  t.add("detach", [](Maker& m, Instruction& in) { in.set("input", m.input()); },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          std::vector<double> values;
          for (size_t i = 0; i < x.numel(); ++i) values.push_back(x.value(i));
          x.store->frozen = true;  // a write would be seen here and there, with two histories
          Grid y = fresh_numbers(Kind::real, x.shape, values);
          y.store->frozen = true;
          return std::vector{y};
        });
}

}  // namespace waymark::test::graph
