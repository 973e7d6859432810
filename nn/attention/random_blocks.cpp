#include "nn/attention/random_blocks.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/tensor/error.h"

namespace waymark::nn {

std::vector<i64> pick_blocks(const Draw& draw, i64 head, i64 block, i64 candidates, i64 count) {
  constexpr i64 kMostPicks = i64{1} << 24;
  const i64 picks = std::min(count, candidates);
  if (picks > kMostPicks) fail("mask", "{} random blocks of {}: at most {} can be drawn", picks, candidates, kMostPicks);
  const auto other_of = [&](i64 t) {
    return t + randint_at(draw, 0, candidates - t, static_cast<u64>(head), static_cast<u64>(block), static_cast<u64>(t));
  };
  std::vector<i64> list;
  if (candidates <= 4 * picks + 64) {
    list.resize(static_cast<size_t>(candidates));
    std::iota(list.begin(), list.end(), 0);
    for (i64 t = 0; t < picks; ++t) std::swap(list[static_cast<size_t>(t)], list[static_cast<size_t>(other_of(t))]);
    list.resize(static_cast<size_t>(picks));
    return list;
  }
  // The places that the shuffle has moved, alone; all others hold their own number.
  std::unordered_map<i64, i64> moved;
  const auto at = [&](i64 place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  for (i64 t = 0; t < picks; ++t) {
    const i64 other = other_of(t);
    list.push_back(at(other));
    moved[other] = at(t);
  }
  return list;
}

}  // namespace waymark::nn
