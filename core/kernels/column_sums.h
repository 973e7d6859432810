// Sums over rows, column by column, in the tree of engine.md 9.1: 16 rows in sequence, then pairwise.
#pragma once

#include <algorithm>
#include <array>

#include "core/kernels/scratch.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {

inline constexpr i64 kSumRows = 16;  // rows added in sequence

void add_columns(i64 n, const float* x, float* y);  // y += x
void add_columns(i64 n, const double* x, double* y);
void add_columns(i64 n, const u64* x, u64* y);

// Rows of one parallel chunk: about a grain of elements. A power of two of base blocks, so that the tree over all rows
// is the same for any chunk.
inline i64 column_chunk(i64 width) {
  i64 rows = kSumRows;
  while (rows * width < kGrain && rows < 4096) rows *= 2;
  return rows;
}

// out[width] = sum of the terms of rows [first, last), on this thread. add_rows(begin, end, sum) adds those of at most
// 16 rows to sum[width], one row after the other; it may do other work for its rows.
template <class T, class AddRows> void sum_row_chunk(i64 first, i64 last, i64 width, T* out, AddRows& add_rows) {
  if (last - first <= kSumRows) {
    std::fill_n(out, width, T(0));
    if (last > first) add_rows(first, last, out);
    return;
  }
  // A binary counter: level[k] holds the sum of 2^k base blocks. Buffers change places instead of being copied.
  int depth = 1;
  for (i64 r = (last - first + kSumRows - 1) / kSumRows; r > 1; r /= 2) ++depth;
  const Scratch<T> memory((depth + 1) * width);
  std::array<T*, 64> level{};
  for (int k = 0; k < depth; ++k) level[static_cast<size_t>(k)] = memory.data() + k * width;
  T* sum = memory.data() + depth * width;
  u64 blocks = 0;
  for (i64 begin = first; begin < last; begin += kSumRows) {
    std::fill_n(sum, width, T(0));
    add_rows(begin, std::min(last, begin + kSumRows), sum);
    size_t k = 0;
    for (u64 q = ++blocks; (q & 1) == 0; q >>= 1, ++k) {
      add_columns(width, sum, level[k]);
      std::swap(sum, level[k]);
    }
    std::swap(sum, level[k]);
  }
  T* total = nullptr;
  size_t k = 0;
  for (u64 q = blocks; q; q >>= 1, ++k) {
    if (!(q & 1)) continue;
    if (total) add_columns(width, total, level[k]);
    total = level[k];
  }
  std::copy_n(total, width, out);
}

// part[c * width ...], c < chunks: combined pairwise in order of c; the result is in the first.
template <class T> void combine_chunks(i64 chunks, i64 width, T* part) {
  for (i64 step = 1; step < chunks; step *= 2)
    for (i64 c = 0; c + step < chunks; c += 2 * step) add_columns(width, part + (c + step) * width, part + c * width);
}

// The same, parallel over chunks of rows.
template <class T, class AddRows> void sum_columns(i64 rows, i64 width, T* out, AddRows add_rows) {
  const i64 chunk = column_chunk(width), chunks = (rows + chunk - 1) / chunk;
  if (chunks <= 1) return sum_row_chunk(0, rows, width, out, add_rows);
  const Scratch<T> parts(chunks * width);
  parallel_tasks(chunks, [&](i64 c) {
    sum_row_chunk(c * chunk, std::min(rows, (c + 1) * chunk), width, parts.data() + c * width, add_rows);
  });
  combine_chunks(chunks, width, parts.data());
  std::copy_n(parts.data(), width, out);
}

}  // namespace waymark::kernels
