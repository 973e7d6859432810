// Elementary functions of one element, for use inside the vectorised loops.
#pragma once

#include <cmath>

namespace waymark::kernels::vmath {

template <class T> inline T exp(T x) { return std::exp(x); }
template <class T> inline T log(T x) { return std::log(x); }
template <class T> inline T sin(T x) { return std::sin(x); }
template <class T> inline T cos(T x) { return std::cos(x); }
template <class T> inline T tanh(T x) { return std::tanh(x); }
template <class T> inline T erf(T x) { return std::erf(x); }
template <class T> inline T sigmoid(T x) { return x >= T(0) ? T(1) / (T(1) + std::exp(-x)) : std::exp(x) / (T(1) + std::exp(x)); }
// x·Φ(x)
template <class T> inline T gelu(T x) { return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))); }
// Φ(x) + x·φ(x)
template <class T> inline T gelu_derivative(T x) {
  return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) + x * std::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
}
// ½x(1 + tanh u), u = √(2/π)(x + 0.044715x³)
template <class T> inline T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}
template <class T> inline T gelu_tanh_derivative(T x) {
  const T t = std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
}
template <class T> inline T silu(T x) { return x * sigmoid(x); }
template <class T> inline T silu_derivative(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

}  // namespace waymark::kernels::vmath
