// huang-m2: m_ij = scale[h, clip(δ, -C, C) + C]: method 1 with a sign.
#include "nn/position/encoding.h"
#include "nn/position/huang_scalar.h"

namespace waymark::nn::encodings {

EncodingInfo huang_m2() {
  return huang_scalar(
      "huang-m2", "scalar multiplier per signed distance (Huang 2020, method 2 as commonly cited)",
      "e_ij = s·scale[h, clip(δ, −clip, clip) + clip]·q_i·k_j", true, [](i64 clip) { return 2 * clip + 1; },
      [](i64 clip) { return PairIndex{-clip, clip}; });
}

}  // namespace waymark::nn::encodings
