// Random damage to texts: what the fuzz targets do at length, for the tests that run without clang.
#pragma once

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::test {

// 0 to 3 edits: letters deleted, inserted, overwritten; a piece of this or another sample copied in.
inline std::string mutated(std::string text, const std::vector<std::string>& samples, std::string_view letters,
                           std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t edits = below(4); edits > 0; --edits) {
    const size_t at = below(text.size() + 1);
    const std::string& other = samples[below(samples.size())];
    switch (below(4)) {
      case 0: text.erase(at, below(6)); break;
      case 1: text.insert(at, 1, letters[below(letters.size())]); break;
      case 2: text.insert(at, other.substr(below(other.size() + 1), below(12))); break;
      default:
        if (at < text.size()) text[at] = letters[below(letters.size())];
    }
  }
  return text;
}

// Every sample, then `count` mutated ones, go through `exercise` (true: accepted). Some must be refused and some
// accepted, or the test looked at nothing.
template <class Exercise>
void check_mutations(const std::vector<std::string>& samples, std::string_view letters, int count, Exercise exercise) {
  std::mt19937_64 random(20240607);
  int accepted = 0, refused = 0;
  for (const std::string& sample : samples) (exercise(sample) ? accepted : refused) += 1;
  for (int i = 0; i < count; ++i)
    (exercise(mutated(samples[random() % samples.size()], samples, letters, random)) ? accepted : refused) += 1;
  CHECK(accepted > count / 20);
  CHECK(refused > count / 20);
}

}  // namespace waymark::test
