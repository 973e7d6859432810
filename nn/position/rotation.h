// Internal: what rope and xpos share. Angles and factors are formed and evaluated in f64, then cast: as rounded products
// of positions and frequencies they would be wrong already at positions in the thousands.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/convert.h"
#include "core/ops/rotary.h"
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// ω_t = base^(−2t/channels), t = 0 ... channels/2 − 1.
inline std::vector<double> frequencies(double base, i64 channels) {
  std::vector<double> omega;
  for (i64 t = 0; t < channels / 2; ++t)
    omega.push_back(std::pow(base, -2 * static_cast<double>(t) / static_cast<double>(channels)));
  return omega;
}

struct Turn {
  double angle = 0;
  double factor = 1;
};

// x [B, H, L, d] with its first `pairs` channel pairs turned and stretched by turn(b, i, t) of batch row b < rows (1: all
// rows alike), slot i and pair t.
template <class F> Tensor rotated(const Tensor& x, i64 rows, i64 length, i64 pairs, bool halves, F turn) {
  const Tensor cos = make_empty({rows, 1, length, pairs}, kF64), sin = make_empty({rows, 1, length, pairs}, kF64);
  double *c = cos.data<double>(), *s = sin.data<double>();
  for (i64 b = 0; b < rows; ++b)
    for (i64 i = 0; i < length; ++i)
      for (i64 t = 0; t < pairs; ++t, ++c, ++s) {
        const Turn at = turn(b, i, t);
        *c = at.factor * std::cos(at.angle);
        *s = at.factor * std::sin(at.angle);
      }
  return rotate_pairs(x, to(cos, x.dtype()), to(sin, x.dtype()), halves);
}

}  // namespace waymark::nn::encodings
