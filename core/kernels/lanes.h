// The one way in which this library adds numbers up (engine.md 9.1), as inline pieces for kernels.
//
// 16 lanes, fixed here and not by the width of the vectors; base blocks of 256 elements, in which a lane adds 16 in
// sequence; a pairwise tree over the blocks of a chunk of 4,096, then over its lanes; chunks pairwise in index order.
// The tree depends on n alone. |error| <= 2 (16 + log2 n) u sum |x|.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "core/kernels/vmath.h"

// Behind the parameters of a lambda that is a loop body: it must take the instruction set of the clone it is used in.
#define WAYMARK_BODY __attribute__((always_inline))

namespace waymark::kernels {

inline constexpr int kLanes = 16;
inline constexpr i64 kSumBlock = 256;
inline constexpr i64 kSumChunk = 4096;

// A short vector as the compilers know it; used inside functions only, never passed by value.
template <class T, int kWidth> struct ShortVector {
  using Type [[gnu::vector_size(kWidth * sizeof(T))]] = T;
};
template <int kWidth, class T, class Combine> WAYMARK_INLINE void fold_half(T* lane, Combine combine) {
  typename ShortVector<T, kWidth>::Type a, b;
  std::memcpy(&a, lane, sizeof(a));
  std::memcpy(&b, lane + kWidth, sizeof(b));
  combine(a, b);
  std::memcpy(lane, &a, sizeof(a));
}
// The 16 lanes to one value, as a tree: lane j with j + 8, then j + 4, j + 2, j + 1. combine(a, b) changes a.
template <class T, class Combine> WAYMARK_INLINE T fold_lanes(T* lane, Combine combine) {
  fold_half<8>(lane, combine);
  fold_half<4>(lane, combine);
  fold_half<2>(lane, combine);
  combine(lane[0], lane[1]);
  return lane[0];
}
template <class T> WAYMARK_INLINE T fold_sum(T* lane) {
  return fold_lanes(lane, [](auto& a, const auto& b) WAYMARK_BODY { a += b; });
}
template <class T> WAYMARK_INLINE T fold_max(T* lane) {
  return fold_lanes(lane, [](auto& a, const auto& b) WAYMARK_BODY { a = a > b ? a : b; });
}

// f(0), ..., f(n - 1) with constant indices: arrays indexed by them are registers to the compiler, not memory.
template <int kCount, class F> WAYMARK_INLINE void unroll(F f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) WAYMARK_BODY {
    (f(std::integral_constant<int, kIndex>{}), ...);
  }(std::make_integer_sequence<int, kCount>{});
}

// What is summed: f(i) -> std::array<T, 1>, or f(i, q) -> T for N sums over the same elements at once, q a constant
// index. (Several terms in one array would keep g++ 12 from vectorising.)
template <class T, size_t N> using Terms = std::array<T, N>;
template <class T, int kTerm, class F> WAYMARK_INLINE T term_of(F& f, i64 i) {
  if constexpr (std::is_invocable_v<F&, i64, std::integral_constant<int, kTerm>>)
    return f(i, std::integral_constant<int, kTerm>{});
  else
    return f(i)[0];
}

// Lane sums of at most 256 elements.
template <size_t N, class T, class F> WAYMARK_INLINE void sum_block(i64 begin, i64 end, F f, T (&lane)[N][kLanes]) {
  static_assert(N == 1 || std::is_invocable_v<F&, i64, std::integral_constant<int, 0>>);
  for (size_t q = 0; q < N; ++q)
    for (int j = 0; j < kLanes; ++j) lane[q][j] = T(0);
  i64 i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    unroll<static_cast<int>(N)>([&](auto q) WAYMARK_BODY {
#pragma omp simd
      for (int j = 0; j < kLanes; ++j) lane[q()][j] += term_of<T, q()>(f, i + j);
    });
  }
  const int rest = static_cast<int>(end - i);
  unroll<static_cast<int>(N)>([&](auto q) WAYMARK_BODY {
    for (int j = 0; j < rest; ++j) lane[q()][j] += term_of<T, q()>(f, i + j);
  });
}

// At most 4,096 elements.
template <size_t N, class T, class F> WAYMARK_INLINE Terms<T, N> sum_chunk(i64 begin, i64 end, F f) {
  Terms<T, N> out;
  alignas(64) T lane[N][kLanes];
  if (end - begin <= kSumBlock) {
    sum_block<N>(begin, end, f, lane);
    for (size_t q = 0; q < N; ++q) out[q] = fold_sum(lane[q]);
    return out;
  }
  constexpr int kBlocks = kSumChunk / kSumBlock;
  alignas(64) T part[kBlocks][N * kLanes];
  int blocks = 0;
  for (i64 b = begin; b < end; b += kSumBlock, ++blocks) {
    sum_block<N>(b, std::min(end, b + kSumBlock), f, lane);
    for (size_t q = 0; q < N; ++q)
      for (int j = 0; j < kLanes; ++j) part[blocks][q * kLanes + static_cast<size_t>(j)] = lane[q][j];
  }
  for (int step = 1; step < blocks; step *= 2)
    for (int b = 0; b + step < blocks; b += 2 * step)
      for (size_t j = 0; j < N * kLanes; ++j) part[b][j] += part[b + step][j];
  for (size_t q = 0; q < N; ++q) out[q] = fold_sum(part[0] + q * kLanes);
  return out;
}

// Pairwise tree over partial results that arrive in index order, in logarithmic memory: after 2^k results of one level
// they are one of the next; the rest is added from the smallest group upwards. Same tree as deterministic_reduce.
template <size_t N, class T> class PairwiseTree {
 public:
  WAYMARK_INLINE void add(Terms<T, N> v) {
    u64 n = ++count_;
    int level = 0;
    for (; (n & 1) == 0; n >>= 1, ++level)
      for (size_t q = 0; q < N; ++q) v[q] = level_[level][q] + v[q];
    level_[level] = v;
  }
  WAYMARK_INLINE Terms<T, N> result() const {
    Terms<T, N> sum{};
    bool any = false;
    u64 n = count_;
    for (int level = 0; n; n >>= 1, ++level) {
      if (!(n & 1)) continue;
      for (size_t q = 0; q < N; ++q) sum[q] = any ? level_[level][q] + sum[q] : level_[level][q];
      any = true;
    }
    return sum;
  }

 private:
  u64 count_ = 0;
  Terms<T, N> level_[52];
};

// All n elements, on this thread.
template <size_t N, class T, class F> WAYMARK_INLINE Terms<T, N> sum_terms(i64 n, F f) {
  if (n <= kSumChunk) return sum_chunk<N, T>(0, n, f);
  PairwiseTree<N, T> tree;
  for (i64 begin = 0; begin < n; begin += kSumChunk)
    tree.add(sum_chunk<N, T>(begin, std::min(n, begin + kSumChunk), f));
  return tree.result();
}

}  // namespace waymark::kernels
