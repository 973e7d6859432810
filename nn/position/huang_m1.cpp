// huang-m1: m_ij = scale[h, min(|δ|, C)]. It sees distances, not directions.
#include <cstdlib>

#include "nn/position/encoding.h"
#include "nn/position/huang_scalar.h"

namespace waymark::nn::encodings {

EncodingInfo huang_m1() {
  return huang_scalar(
      "huang-m1", "scalar multiplier per distance (Huang 2020, method 1 as commonly cited)",
      "e_ij = s·scale[h, min(|δ|, clip)]·q_i·k_j", false, [](i64 clip) { return clip + 1; },
      [](i64 clip) {
        PairIndex index{-clip, clip};
        for (i64 delta = -clip; delta <= clip; ++delta) index.row.push_back(std::abs(delta));
        return index;
      });
}

}  // namespace waymark::nn::encodings
