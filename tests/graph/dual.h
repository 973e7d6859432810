// Dual numbers: a value and its derivative along one direction. A Dual of Duals carries a second derivative. Written for
// the tests from the calculus alone; nothing of core is used.
#pragma once

#include <algorithm>
#include <cmath>

namespace waymark::test::graph {

template <class T> struct Dual {
  T v{}, d{};
};
using D1 = Dual<double>;
using D2 = Dual<D1>;

inline double primal(double x) { return x; }
template <class T> double primal(const Dual<T>& x) { return primal(x.v); }
inline double lift(double c, double) { return c; }
template <class T> Dual<T> lift(double c, const Dual<T>& like) { return {lift(c, like.v), {}}; }

// Distance to the nearest kink or end of a domain that was met; graphs keep away from them.
inline thread_local double nearest_kink = 1e9;
inline void near(double distance) { nearest_kink = std::min(nearest_kink, std::abs(distance)); }

template <class T> Dual<T> operator+(const Dual<T>& a, const Dual<T>& b) { return {a.v + b.v, a.d + b.d}; }
template <class T> Dual<T> operator-(const Dual<T>& a, const Dual<T>& b) { return {a.v - b.v, a.d - b.d}; }
template <class T> Dual<T> operator*(const Dual<T>& a, const Dual<T>& b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
template <class T> Dual<T> operator/(const Dual<T>& a, const Dual<T>& b) {
  const T q = a.v / b.v;
  return {q, (a.d - q * b.d) / b.v};
}
template <class T> Dual<T> operator+(const Dual<T>& a, double b) { return {a.v + b, a.d}; }
template <class T> Dual<T> operator-(const Dual<T>& a, double b) { return {a.v - b, a.d}; }
template <class T> Dual<T> operator*(const Dual<T>& a, double b) { return {a.v * b, a.d * b}; }
template <class T> Dual<T> operator/(const Dual<T>& a, double b) { return {a.v / b, a.d / b}; }
template <class T> Dual<T> operator+(double a, const Dual<T>& b) { return b + a; }
template <class T> Dual<T> operator-(double a, const Dual<T>& b) { return {a - b.v, b.d * -1.0}; }
template <class T> Dual<T> operator*(double a, const Dual<T>& b) { return b * a; }
template <class T> Dual<T> operator/(double a, const Dual<T>& b) { return lift(a, b) / b; }
template <class T> Dual<T> operator-(const Dual<T>& a) { return a * -1.0; }

// The inverse of erf by Newton steps.
inline double erfinv(double x) {
  double y = x;
  for (int i = 0; i < 60; ++i) {
    const double step = (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
    y -= std::clamp(step, -0.5, 0.5);
  }
  return y;
}

// Each function on numbers, and on duals with its derivative in terms of the argument v and the value y.
#define WAYMARK_SCALAR(NAME) inline double NAME(double x) { return std::NAME(x); }
#define WAYMARK_DUAL(NAME, DERIVATIVE)                 \
  template <class T> Dual<T> NAME(const Dual<T>& x) {  \
    const T& v = x.v;                                  \
    const T y = NAME(v);                               \
    static_cast<void>(v);                              \
    return {y, x.d * (DERIVATIVE)};                    \
  }
WAYMARK_SCALAR(exp)
WAYMARK_SCALAR(expm1)
WAYMARK_SCALAR(log)
WAYMARK_SCALAR(log1p)
WAYMARK_SCALAR(sqrt)
WAYMARK_SCALAR(sin)
WAYMARK_SCALAR(cos)
WAYMARK_SCALAR(tan)
WAYMARK_SCALAR(asin)
WAYMARK_SCALAR(acos)
WAYMARK_SCALAR(atan)
WAYMARK_SCALAR(sinh)
WAYMARK_SCALAR(cosh)
WAYMARK_SCALAR(tanh)
WAYMARK_SCALAR(asinh)
WAYMARK_SCALAR(acosh)
WAYMARK_SCALAR(atanh)
WAYMARK_SCALAR(erf)
WAYMARK_DUAL(exp, y)
WAYMARK_DUAL(expm1, y + 1.0)
WAYMARK_DUAL(log, 1.0 / v)
WAYMARK_DUAL(log1p, 1.0 / (v + 1.0))
WAYMARK_DUAL(sqrt, 0.5 / y)
WAYMARK_DUAL(sin, cos(v))
WAYMARK_DUAL(cos, sin(v) * -1.0)
WAYMARK_DUAL(tan, y * y + 1.0)
WAYMARK_DUAL(asin, 1.0 / sqrt(1.0 - v * v))
WAYMARK_DUAL(acos, -1.0 / sqrt(1.0 - v * v))
WAYMARK_DUAL(atan, 1.0 / (v * v + 1.0))
WAYMARK_DUAL(sinh, cosh(v))
WAYMARK_DUAL(cosh, sinh(v))
WAYMARK_DUAL(tanh, 1.0 - y * y)
WAYMARK_DUAL(asinh, 1.0 / sqrt(v * v + 1.0))
WAYMARK_DUAL(acosh, 1.0 / sqrt(v * v - 1.0))
WAYMARK_DUAL(atanh, 1.0 / (1.0 - v * v))
WAYMARK_DUAL(erf, exp(v * v * -1.0) * (2 / std::sqrt(M_PI)))
WAYMARK_DUAL(erfinv, exp(y * y) * (std::sqrt(M_PI) / 2))
#undef WAYMARK_SCALAR
#undef WAYMARK_DUAL

inline double power(double x, double p) { return std::pow(x, p); }
template <class T> Dual<T> power(const Dual<T>& x, double p) {
  if (p == 0) return lift(1, x);
  return {power(x.v, p), x.d * (power(x.v, p - 1) * p)};
}

// f(x) where the sign of `test` decides; the graph keeps `test` away from 0.
template <class X> X choose(double test, const X& if_positive, const X& otherwise) {
  near(test);
  return test > 0 ? if_positive : otherwise;
}
template <class X> X absolute(const X& x) { return choose(primal(x), x, x * -1.0); }
// A function that is constant between its jumps.
template <class X> X step_value(const X& x, double value, double distance_to_jump) {
  near(distance_to_jump);
  return lift(value, x);
}

}  // namespace waymark::test::graph
