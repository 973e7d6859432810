// What the kernel tests share: reproducible numbers, and a guard that restores the number of threads.
#pragma once

#include <bit>
#include <limits>
#include <vector>

#include "core/parallel/parallel.h"

namespace waymark::test {

inline constexpr float kInf32 = std::numeric_limits<float>::infinity();
inline constexpr float kNan32 = std::numeric_limits<float>::quiet_NaN();

// Numbers in [-1, 1), different at every place.
template <class T> std::vector<T> numbers(i64 n, u64 seed) {
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<double>(seed >> 40) * 0x1p-23 - 1.0);
  }
  return v;
}

// 1, 2, 3 and 4 threads: f's result must have the same bits.
template <class F> bool same_for_any_threads(F&& f) {
  const int before = num_threads();
  set_num_threads(1);
  const auto first = f();
  bool same = true;
  for (int threads : {2, 3, 4}) {
    set_num_threads(threads);
    same = same && f() == first;
  }
  set_num_threads(before);
  return same;
}

}  // namespace waymark::test
