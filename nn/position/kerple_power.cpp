// kerple-power: b_ij = −a_h·|δ|^p_h, 0 at δ = 0 with gradients 0.
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "nn/position/kerple.h"

namespace waymark::nn::encodings {

EncodingInfo kerple_power() {
  return kerple("kerple-power", "bias that falls with a power of the distance, trained per head (Chi 2022)",
                "b_ij = −a_h·|p_j − p_i|^p_h,  p_h 0.01 to 2, a_h at least 0.01", 2,
                [](const Tensor& distance, const Tensor& p, const Tensor& a) {
                  // The derivative by p would be 0·ln 0 at distance 0: 1 stands in there, times 0.
                  const Tensor nearest = clamp(distance, 1, {});
                  return neg(mul(mul(a, pow(nearest, p)), sign(distance)));
                });
}

}  // namespace waymark::nn::encodings
