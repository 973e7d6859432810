// Draws by seed and stream, for the tests of their values.
#pragma once

#include <string_view>
#include <vector>

#include "core/random/draws.h"

namespace waymark::test {

inline Draw draw_of(u64 seed, std::string_view stream, u32 number = 0, u64 first = 0) {
  Draw draw;
  draw.key = key64(seed, stream);
  draw.number = number;
  draw.first = first;
  return draw;
}
inline std::vector<double> normals(const Draw& draw, const std::vector<i64>& shape) {
  const DrawGrid grid = draw_grid(draw, shape);
  std::vector<double> out(static_cast<size_t>(grid.numel()));
  fill_normal(draw, grid, 0, grid.numel(), out.data());
  return out;
}

}  // namespace waymark::test
