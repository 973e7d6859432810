// Matrix products. Operands must have one dtype: there is no silent conversion. An inner size of 0
// gives zeros. Transposed views are flags, not copies.
#pragma once

#include <vector>

#include "core/autograd/arg.h"

namespace waymark {

// (..., m, k) x (..., k, n) -> (..., m, n). Leading axes broadcast; a 1-d operand gets an axis that is removed again.
[[nodiscard]] WAYMARK_API Tensor matmul(Arg a, Arg b);
// The same with fixed ranks: 2-d x 2-d, 3-d x 3-d with equal batches, 2-d x 1-d, 1-d x 1-d.
[[nodiscard]] WAYMARK_API Tensor mm(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor bmm(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor mv(Arg a, Arg vec);
[[nodiscard]] WAYMARK_API Tensor dot(Arg a, Arg b);
// (m) x (n) -> (m, n)
[[nodiscard]] WAYMARK_API Tensor outer(Arg a, Arg b);
// β·C + α·A·B, C expands to the product's shape. β = 0 ignores C, α = 0 ignores A and B, also where they are NaN.
[[nodiscard]] WAYMARK_API Tensor addmm(Arg c, Arg a, Arg b, Scalar beta = 1, Scalar alpha = 1);
[[nodiscard]] WAYMARK_API Tensor baddbmm(Arg c, Arg a, Arg b, Scalar beta = 1, Scalar alpha = 1);

// x·Wᵀ + b for x (..., in), W (out, in), b (out) or undefined.
[[nodiscard]] WAYMARK_API Tensor linear(Arg x, Arg weight, const Tensor& bias = {});
// linear with each weight (out_i, in) and bias (out_i). When the weights lie one behind the other in memory, as the q, k
// and v weights of a self-attention in flat parameters do, the value, dx and all dW are one product each; the results
// are then column windows of one buffer. biases: as many as weights, some or all undefined, or empty.
[[nodiscard]] WAYMARK_API std::vector<Tensor> linear_packed(Arg x, const std::vector<Tensor>& weights,
                                                            const std::vector<Tensor>& biases = {});

}  // namespace waymark
