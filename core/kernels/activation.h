// Inner loops of activations and of their derivatives (relu, gelu and silu: elementwise.h). An element has the same bits
// in any layout: strided operands pass through buffers. f32 and f64 only; null for other dtypes.
#pragma once

#include "core/kernels/elementwise.h"

namespace waymark::kernels {

// Three parameters each; those that an activation does not name are ignored.
enum class Activation : u8 {
  hardtanh,     // min(max(x, p0), p1)
  leaky_relu,   // x > 0 ? x : p0 x
  elu,          // x > 0 ? p1 x : p0 p1 (e^(p2 x) − 1): elu {α, 1, 1}, celu {α, 1, 1/α}, selu {α, λ, 1}
  mish,         // x tanh(softplus x)
  softplus,     // p0 x > p1 ? x : log(1 + e^(p0 x)) / p0
  softsign,     // x / (1 + |x|)
  tanhshrink,   // x − tanh x
  threshold,    // x ≤ p0 ? p1 : x
  hardsigmoid,  // min(max(x / 6 + 1/2, 0), 1)
  hardswish,    // x hardsigmoid(x)
  logsigmoid,   // log σ(x)
};
UnaryLoop activation_loop(Activation f, DType t);
// dx from (g, x).
BinaryLoop activation_backward_loop(Activation f, DType t);
// x > 0 ? x : w x, from (x, w)
BinaryLoop prelu_loop(DType t);

}  // namespace waymark::kernels
