// Activations. Names, arguments and defaults are PyTorch's, and so are the derivatives at kinks
// (0 for relu, hardtanh and their kin). Float tensors only, except relu.
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API Tensor relu(Arg x);  // max(x, 0)
// x·Φ(x); approximate = "tanh": x/2·(1 + tanh(√(2/π)·(x + 0.044715 x³))). (Hendrycks, Gimpel 2016)
[[nodiscard]] WAYMARK_API Tensor gelu(Arg x, std::string_view approximate = "none");
[[nodiscard]] WAYMARK_API Tensor silu(Arg x);  // x·σ(x)
[[nodiscard]] WAYMARK_API Tensor hardtanh(Arg x, double min_val = -1, double max_val = 1);
[[nodiscard]] WAYMARK_API Tensor relu6(Arg x);  // hardtanh(0, 6)
[[nodiscard]] WAYMARK_API Tensor leaky_relu(Arg x, double negative_slope = 0.01);
// x > 0 ? x : w·x; w has one element, or one for each index of axis 1.
[[nodiscard]] WAYMARK_API Tensor prelu(Arg x, Arg weight);
[[nodiscard]] WAYMARK_API Tensor elu(Arg x, double alpha = 1);   // x > 0 ? x : α(eˣ − 1)
[[nodiscard]] WAYMARK_API Tensor celu(Arg x, double alpha = 1);  // x > 0 ? x : α(e^(x/α) − 1)
[[nodiscard]] WAYMARK_API Tensor selu(Arg x);                    // (Klambauer et al. 2017)
[[nodiscard]] WAYMARK_API Tensor mish(Arg x);                    // x·tanh(softplus(x))
// log(1 + e^(βx))/β; x where βx > threshold
[[nodiscard]] WAYMARK_API Tensor softplus(Arg x, double beta = 1, double threshold = 20);
[[nodiscard]] WAYMARK_API Tensor softsign(Arg x);    // x/(1 + |x|)
[[nodiscard]] WAYMARK_API Tensor tanhshrink(Arg x);  // x − tanh x
[[nodiscard]] WAYMARK_API Tensor threshold(Arg x, double threshold, double value);  // x ≤ threshold ? value : x
[[nodiscard]] WAYMARK_API Tensor hardsigmoid(Arg x);  // x/6 + ½ within [0, 1]
[[nodiscard]] WAYMARK_API Tensor hardswish(Arg x);    // x·hardsigmoid(x)
[[nodiscard]] WAYMARK_API Tensor logsigmoid(Arg x);   // log σ(x), without underflow
// a·σ(b), a and b the halves of x along dim, which must have an even extent. (Dauphin et al. 2017)
[[nodiscard]] WAYMARK_API Tensor glu(Arg x, i64 dim = -1);

}  // namespace waymark
