// kerple-log: b_ij = −p_h·ln(1 + a_h·|δ|).
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/functions.h"
#include "nn/position/kerple.h"

namespace waymark::nn::encodings {

EncodingInfo kerple_log() {
  return kerple("kerple-log", "bias that falls with the logarithm of the distance, trained per head (Chi 2022)",
                "b_ij = −p_h·ln(1 + a_h·|p_j − p_i|),  p_h and a_h at least 0.01", std::numeric_limits<double>::infinity(),
                [](const Tensor& distance, const Tensor& p, const Tensor& a) { return neg(mul(p, log1p(mul(a, distance)))); });
}

}  // namespace waymark::nn::encodings
