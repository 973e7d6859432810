// Internal: queries or keys whose channel pairs turn with the position, for rope and xpos.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// Channel pair t of x [B, H, L, d] turned by p/interpolation·frequencies[t], and times growth(row, slot, t), if that is
// given: pairs (2t, 2t+1), or (t, t + number of pairs) with halves. Channels behind the pairs stay, and so do tokens without
// position. Angles are formed and evaluated in f64, then cast.
struct Rotation {
  std::vector<double> frequencies = {};
  double interpolation = 1;
  bool halves = false;
};
Tensor rotated(const Tensor& x, const Positions& positions, const Rotation& rotation);
// rows: 1 or B, for growths that differ between rows of shared positions.
Tensor rotated(const Tensor& x, const Positions& positions, const Rotation& rotation, i64 rows,
               const std::function<double(i64 row, i64 slot, i64 t)>& growth);

}  // namespace waymark::nn::encodings
