// Inner loops of elementwise losses of (x, t), as those of elementwise.h; f32 and f64, null otherwise.
#pragma once

#include "core/kernels/elementwise.h"

namespace waymark::kernels {

enum class Loss : u8 {  // d = x − t
  mse,         // d²
  l1,          // |d|
  smooth_l1,   // |d| < p0 ? d²/(2 p0) : |d| − p0/2
  huber,       // |d| ≤ p0 ? d²/2 : p0 (|d| − p0/2)
  kl_div,      // t log t − t x, the first term 0 at t = 0
  kl_div_log,  // e^t (t − x), 0 at t = −inf
  bce,         // −t max(log x, −100) − (1 − t) max(log(1 − x), −100)
  bce_logits,  // (1 − t) x + log(1 + e^−x)
};
BinaryLoop loss_loop(Loss f, DType t);

}  // namespace waymark::kernels
