// Sums over rows, column by column, in the tree of engine.md 9.1: 16 rows in sequence, then pairwise.
#pragma once

#include <algorithm>
#include <vector>

#include "core/kernels/scratch.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {

inline constexpr i64 kSumRows = 16;  // rows added in sequence

template <class T> void add_columns(i64 n, const T* x, T* y);  // y += x

// Rows of one chunk: a power of two of base blocks, about a grain of elements; a function of n alone.
inline i64 column_chunk(i64 n) {
  i64 rows = kSumRows;
  while (rows * n < kGrain && rows < 4096) rows *= 2;
  return rows;
}

// out[width] = sum over rows; add_rows(begin, end, sum) adds the terms of at most 16 rows to sum[width], in order of
// rows. Parallel over chunks of rows. add_rows may do other work for its rows (write the rows' dx).
template <class T, class AddRows> void sum_columns(i64 rows, i64 n, i64 width, T* out, AddRows add_rows) {
  const i64 chunk = column_chunk(n), chunks = (rows + chunk - 1) / chunk;
  if (chunks == 0) {
    std::fill_n(out, width, T(0));
    return;
  }
  Scratch<T> parts;
  T* const part = chunks > 1 ? parts.allocate(chunks * width) : out;
  parallel_tasks(chunks, [&](i64 c) {
    const i64 first = c * chunk, last = std::min(rows, first + chunk);
    // levels[k] holds the sum of 2^k base blocks: a binary counter.
    Scratch<T> memory;
    std::vector<T*> levels;
    T* levels_memory = nullptr;
    int depth = 1;
    for (i64 r = chunk / kSumRows; r > 1; r /= 2) ++depth;
    levels_memory = memory.allocate((depth + 1) * width);
    for (int k = 0; k <= depth; ++k) levels.push_back(levels_memory + k * width);
    u64 count = 0;
    for (i64 begin = first; begin < last; begin += kSumRows) {
      T* const sum = levels[static_cast<size_t>(depth)];
      std::fill_n(sum, width, T(0));
      add_rows(begin, std::min(last, begin + kSumRows), sum);
      size_t level = 0;
      for (u64 q = ++count; (q & 1) == 0; q >>= 1, ++level) {
        add_columns(width, sum, levels[level]);
        std::copy_n(levels[level], width, sum);
      }
      std::copy_n(sum, width, levels[level]);
    }
    T* const to = part + c * width;
    bool any = false;
    size_t level = 0;
    for (u64 q = count; q; q >>= 1, ++level) {
      if (!(q & 1)) continue;
      if (any) {
        add_columns(width, to, levels[level]);
        std::copy_n(levels[level], width, to);
      } else std::copy_n(levels[level], width, to);
      any = true;
    }
  });
  for (i64 step = 1; step < chunks; step *= 2)
    for (i64 c = 0; c + step < chunks; c += 2 * step) add_columns(width, part + (c + step) * width, part + c * width);
  if (chunks > 1) std::copy_n(part, width, out);
}

}  // namespace waymark::kernels
