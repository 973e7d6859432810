#include "nn/attention/random_blocks.h"

#include <algorithm>

namespace waymark::nn {

std::vector<i64> pick_blocks(const Draw& draw, i64 head, i64 block, std::vector<i64> candidates, i64 count) {
  const i64 n = static_cast<i64>(candidates.size()), picks = std::min(count, n);
  for (i64 t = 0; t < picks; ++t) {
    const i64 other = t + randint_at(draw, 0, n - t, static_cast<u64>(head), static_cast<u64>(block), static_cast<u64>(t));
    std::swap(candidates[static_cast<size_t>(t)], candidates[static_cast<size_t>(other)]);
  }
  candidates.resize(static_cast<size_t>(picks));
  return candidates;
}

}  // namespace waymark::nn
