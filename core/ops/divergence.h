// Kullback-Leibler divergences between the distributions of two tensors of logits: p = softmax(x), q = softmax(other)
// over the axis `dim`, one value for every slice along it. Computed from log-softmax, so logits of any size are fine.
//
// * keep (b8, expands to x): classes that take part; p and q are shares among them. A slice that keeps nothing has value
//   0 and gradient 0. Classes that are −inf on both sides take no part either.
// * p = q gives exactly 0, and a gradient of exact zeros.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// KL(p‖q) = Σ p (log p − log q)
[[nodiscard]] WAYMARK_API Tensor softmax_kl(Arg x, Arg other, i64 dim = -1, const Tensor& keep = {});
// ½ (KL(p‖q) + KL(q‖p)) = ½ Σ (p − q)(log p − log q)
[[nodiscard]] WAYMARK_API Tensor symmetric_kl(Arg x, Arg other, i64 dim = -1, const Tensor& keep = {});

}  // namespace waymark
