// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3") and the keys of named streams.
// A block is a pure function of (key, counter): 4 words of 32 bits. Nothing here has a state.
#pragma once

#include <array>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark {

// FNV-1a of the bytes of a stream name.
constexpr u64 fnv1a64(std::string_view name) {
  u64 h = 0xcbf29ce484222325u;
  for (char c : name) h = (h ^ static_cast<u8>(c)) * 0x100000001b3u;
  return h;
}

// The finisher of splitmix64: a bijection that spreads each bit over all 64.
constexpr u64 mix64(u64 z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The Philox key of a stream; its low half is key word 0.
constexpr u64 key64(u64 seed, std::string_view stream) { return mix64(seed ^ mix64(fnv1a64(stream))); }

using PhiloxBlock = std::array<u32, 4>;

// One block. Counter = {block, row, lead, draw} for draws (see draws.h).
WAYMARK_API PhiloxBlock philox_block(const PhiloxBlock& counter, u64 key);

// Up to kPhiloxBatch blocks of one key and draw at once, words kept apart so that loops over them vectorise.
inline constexpr int kPhiloxBatch = 64;
struct PhiloxCounters {
  alignas(64) u32 block[kPhiloxBatch], row[kPhiloxBatch], lead[kPhiloxBatch];
};
struct PhiloxWords {
  alignas(64) u32 w[4][kPhiloxBatch];
};
// Fills words 0 .. n-1; reads counters and writes words up to the next multiple of 16.
WAYMARK_API void philox_batch(u64 key, u32 draw, const PhiloxCounters& counters, int n, PhiloxWords& words);

}  // namespace waymark
