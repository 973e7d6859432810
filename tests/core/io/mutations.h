// Random damage to good files.
#pragma once

#include <doctest/doctest.h>

#include <random>

#include "tests/core/io/hostile_files.h"

namespace waymark::test {

// `count` damaged files, each a good sample with 1 to 3 bits flipped, go through `exercise` (true: accepted). Some must
// be refused and some accepted, or the test looked at nothing.
inline void check_bit_flips(const std::vector<SampleFile>& samples, int count, bool (*exercise)(std::string)) {
  std::vector<const SampleFile*> good;
  for (const SampleFile& file : samples)
    if (file.message.empty() && !file.bytes.empty() && file.bytes.size() < 5000) good.push_back(&file);
  REQUIRE_FALSE(good.empty());
  std::mt19937_64 random(20240607);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    std::string bytes = good[below(good.size())]->bytes;
    for (size_t flips = 1 + below(3); flips > 0; --flips) {
      char& c = bytes[below(bytes.size())];
      c = static_cast<char>(c ^ (1 << below(8)));
    }
    accepted += exercise(std::move(bytes));
  }
  CHECK(accepted > 0);
  CHECK(accepted < count);
}

}  // namespace waymark::test
