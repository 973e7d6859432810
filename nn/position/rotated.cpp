#include "nn/position/rotated.h"

#include <algorithm>
#include <cmath>

#include "core/ops/convert.h"
#include "core/ops/rotary.h"

namespace waymark::nn::encodings {

Tensor rotated(const Tensor& x, const Positions& positions, const Rotation& rotation) {
  return rotated(x, positions, rotation, positions.rows(), {});
}

Tensor rotated(const Tensor& x, const Positions& positions, const Rotation& rotation, i64 rows,
               const std::function<double(i64, i64, i64)>& growth) {
  const i64 length = positions.length(), pairs = static_cast<i64>(rotation.frequencies.size());
  const Tensor cos = make_empty({rows, 1, length, pairs}, kF64), sin = make_empty({rows, 1, length, pairs}, kF64);
  double *c = cos.data<double>(), *s = sin.data<double>();
  for (i64 b = 0; b < rows; ++b)
    for (i64 i = 0; i < length; ++i) {
      const i64 p = positions.at(b, i);
      for (i64 t = 0; t < pairs; ++t, ++c, ++s) {
        const double angle = static_cast<double>(std::max<i64>(0, p)) / rotation.interpolation * rotation.frequencies[static_cast<size_t>(t)];
        const double factor = growth && p >= 0 ? growth(b, i, t) : 1;
        *c = factor * std::cos(angle);
        *s = factor * std::sin(angle);
      }
    }
  return rotate_pairs(x, to(cos, x.dtype()), to(sin, x.dtype()), rotation.halves);
}

}  // namespace waymark::nn::encodings
