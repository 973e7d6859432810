// Activations of the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

template <class F> void activation(OpTable& t, const std::string& name, F f) {
  t.add(name, [](Maker& m, Instruction& in) { in.set("input", m.input()); },
        [f](const Call& c) { return std::vector{elementwise(f, c.grid("input"))}; });
}
template <class X> X sigmoid(const X& x) { return 1.0 / (exp(-x) + 1.0); }
template <class X> X softplus(const X& x) { return log(exp(x) + 1.0); }
template <class X> X clamped(const X& x, double low, double high) {
  const X y = choose(primal(x) - low, x, lift(low, x));
  return choose(high - primal(x), y, lift(high, x));
}
// x above 0, f(x) below.
template <class X, class F> X kinked(const X& x, const F& f) { return choose(primal(x), x, f(x)); }
// With one number as parameter.
template <class F>
void with_number(OpTable& t, const std::string& name, const std::string& parameter, double low, double high, double usual,
                 F f) {
  t.add(name,
        [=](Maker& m, Instruction& in) {
          in.set("input", m.input());
          if (m.coin()) in.set(parameter, m.uniform(low, high));
        },
        [=](const Call& c) {
          const double p = c.number(parameter, usual);
          return std::vector{elementwise([p, f](auto x) { return f(x, p); }, c.grid("input"))};
        });
}

}  // namespace

#define ACTIVATION(NAME, EXPRESSION) activation(t, #NAME, [](auto x) { return EXPRESSION; })

void add_activations(OpTable& t) {
  ACTIVATION(relu, choose(primal(x), x, lift(0, x)));
  ACTIVATION(silu, x * sigmoid(x));
  ACTIVATION(relu6, clamped(x, 0, 6));
  ACTIVATION(mish, x * tanh(softplus(x)));
  ACTIVATION(softsign, x / (absolute(x) + 1.0));
  ACTIVATION(tanhshrink, x - tanh(x));
  ACTIVATION(hardsigmoid, clamped(x / 6.0 + 0.5, 0, 1));
  ACTIVATION(hardswish, x * clamped(x / 6.0 + 0.5, 0, 1));
  ACTIVATION(logsigmoid, -softplus(-x));
  ACTIVATION(selu, kinked(x, [](auto z) { return expm1(z) * 1.6732632423543772; }) * 1.0507009873554805);
  with_number(t, "leaky_relu", "negative_slope", 0.01, 0.5, 0.01,
              [](auto x, double p) { return kinked(x, [p](auto z) { return z * p; }); });
  with_number(t, "elu", "alpha", 0.3, 1.5, 1, [](auto x, double p) { return kinked(x, [p](auto z) { return expm1(z) * p; }); });
  with_number(t, "celu", "alpha", 0.3, 1.5, 1,
              [](auto x, double p) { return kinked(x, [p](auto z) { return expm1(z / p) * p; }); });
  with_number(t, "softplus", "beta", 0.5, 2, 1, [](auto x, double p) {
    if (primal(x) * p > 19) return choose(primal(x) * p - 20, x, softplus(x * p) / p);  // as it is declared
    return softplus(x * p) / p;
  });
  t.add("hardtanh",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          if (m.coin()) {
            in.set("min_val", m.uniform(-1.5, -0.1));
            in.set("max_val", m.uniform(0.1, 1.5));
          }
        },
        [](const Call& c) {
          const double low = c.number("min_val", -1), high = c.number("max_val", 1);
          return std::vector{elementwise([low, high](auto x) { return clamped(x, low, high); }, c.grid("input"))};
        });
  t.add("threshold",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          in.set("threshold", m.uniform(-1, 1));
          in.set("value", m.uniform(-1, 1));
        },
        [](const Call& c) {
          const double at = c.number("threshold"), value = c.number("value");
          return std::vector{
              elementwise([at, value](auto x) { return choose(primal(x) - at, x, lift(value, x)); }, c.grid("input"))};
        });
  t.add("gelu",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          in.set("approximate", std::string(m.coin() ? "none" : "tanh"));
        },
        [](const Call& c) {
          const bool exact = c.word("approximate") == "none";
          return std::vector{elementwise([exact](auto x) {
            if (exact) return x * (erf(x * std::sqrt(0.5)) + 1.0) * 0.5;
            return x * (tanh((x + x * x * x * 0.044715) * std::sqrt(2 / M_PI)) + 1.0) * 0.5;
          }, c.grid("input"))};
        });
  t.add("prelu",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(2);
          in.set("input", x);
          in.set("weight", m.real_of({m.coin() ? 1 : m.grid(x).shape[1]}));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          Ints wide(static_cast<size_t>(x.rank()), 1);
          wide[1] = c.grid("weight").shape[0];
          return std::vector{elementwise([](auto a, auto w) { return choose(primal(a), a, a * w); }, x,
                                         contents(c.grid("weight"), wide))};
        });
  t.add("glu",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 d = m.dim(x);
          m.need(m.extent(x, d) % 2 == 0);
          in.set("input", x);
          in.set("dim", d);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
          Ints half = x.shape;
          half[d] /= 2;
          const Grid a = view(x, half, [](const Ints& i) { return i; });
          const Grid b = view(x, half, [&](Ints i) {
            i[d] += half[d];
            return i;
          });
          return std::vector{elementwise([](auto u, auto v) { return u * sigmoid(v); }, a, b)};
        });
}

}  // namespace waymark::test::graph
