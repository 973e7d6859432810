// max_axis and min_axis of reduce.h.
#include <limits>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"
#include "core/kernels/reduce.h"

namespace waymark::kernels {
namespace {

template <bool kMax, class T> WAYMARK_INLINE bool beats(T a, T b) { return kMax ? a > b : a < b; }

template <class T> struct Best {
  T value;
  i64 index;
};

// The best of a row piece: first the value (NaN left aside, but noticed), then its first place.
template <bool kMax, class T> WAYMARK_CLONES Best<T> best_of(const T* x, i64 n) {
  using Flag = std::conditional_t<sizeof(T) == 4, u32, u64>;
  alignas(64) T lane[kLanes];
  alignas(64) Flag nan[kLanes] = {};
  for (int j = 0; j < kLanes; ++j) lane[j] = x[0];
  i64 i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) {
      const T v = x[i + j];
      lane[j] = beats<kMax>(v, lane[j]) || lane[j] != lane[j] ? v : lane[j];
      nan[j] |= v != v ? Flag(1) : Flag(0);
    }
  }
  for (; i < n; ++i) {
    lane[0] = beats<kMax>(x[i], lane[0]) || lane[0] != lane[0] ? x[i] : lane[0];
    nan[0] |= x[i] != x[i] ? Flag(1) : Flag(0);
  }
  Flag any_nan = 0;
  T best = lane[0];
  for (int j = 0; j < kLanes; ++j) {
    any_nan |= nan[j];
    best = beats<kMax>(lane[j], best) || best != best ? lane[j] : best;
  }
  constexpr i64 kBlock = 256;
  for (i64 begin = 0; begin < n; begin += kBlock) {
    const i64 end = std::min(n, begin + kBlock);
    Flag found = 0;
    for (i64 k = begin; k < end; ++k) found |= (any_nan ? x[k] != x[k] : x[k] == best) ? Flag(1) : Flag(0);
    if (!found) continue;
    for (i64 k = begin; k < end; ++k)
      if (any_nan ? x[k] != x[k] : x[k] == best) return {x[k], k};
  }
  return {best, 0};
}

// The better of two pieces; the earlier one unless the later one is really better.
template <bool kMax, class T> Best<T> better(Best<T> a, Best<T> b) {
  return a.value == a.value && (beats<kMax>(b.value, a.value) || b.value != b.value) ? b : a;
}

template <bool kMax, class T>
WAYMARK_CLONES void columns_step(i64 n, const T* x, i64 row, T* value, i64* index) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) {
    const T v = x[j], old = value[j];
    const bool take = (beats<kMax>(v, old) | (v != v)) & (old == old);
    value[j] = take ? v : old;
    index[j] = take ? row : index[j];
  }
}

template <bool kMax, class T> void best_axis(const T* x, i64 outer, i64 n, i64 inner, T* values, i64* indices) {
  if (outer == 0 || inner == 0) return;
  const auto put = [&](i64 at, T value, i64 index) {
    if (values) values[at] = value;
    if (indices) indices[at] = index;
  };
  if (inner == 1) {
    const i64 pieces = (n + kGrain - 1) / kGrain;
    if (pieces == 1) {
      return parallel_for(outer, rows_per_chunk(n), [&](i64 begin, i64 end) {
        for (i64 r = begin; r < end; ++r) {
          const Best<T> b = best_of<kMax>(x + r * n, n);
          put(r, b.value, b.index);
        }
      });
    }
    const Scratch<Best<T>> parts(outer * pieces);
    parallel_tasks(outer * pieces, [&](i64 task) {
      const i64 r = task / pieces, begin = task % pieces * kGrain;
      Best<T> b = best_of<kMax>(x + r * n + begin, std::min(kGrain, n - begin));
      b.index += begin;
      parts.data()[task] = b;
    });
    for (i64 r = 0; r < outer; ++r) {
      Best<T> b = parts.data()[r * pieces];
      for (i64 p = 1; p < pieces; ++p) b = better<kMax>(b, parts.data()[r * pieces + p]);
      put(r, b.value, b.index);
    }
    return;
  }
  constexpr i64 kTile = 512;
  const i64 tiles = (inner + kTile - 1) / kTile;
  parallel_for(outer * tiles, std::max<i64>(1, kGrain / (n * std::min(inner, kTile))), [&](i64 begin, i64 end) {
    for (i64 task = begin; task < end; ++task) {
      const i64 o = task / tiles, j = task % tiles * kTile, columns = std::min(kTile, inner - j);
      const T* const from = x + o * n * inner + j;
      T value[kTile];
      i64 index[kTile];
      std::copy_n(from, columns, value);
      std::fill_n(index, columns, 0);
      for (i64 r = 1; r < n; ++r) columns_step<kMax>(columns, from + r * inner, r, value, index);
      for (i64 k = 0; k < columns; ++k) put(o * inner + j + k, value[k], index[k]);
    }
  });
}

}  // namespace

template <class T> void max_axis(const T* x, i64 outer, i64 n, i64 inner, T* values, i64* indices) {
  best_axis<true>(x, outer, n, inner, values, indices);
}
template <class T> void min_axis(const T* x, i64 outer, i64 n, i64 inner, T* values, i64* indices) {
  best_axis<false>(x, outer, n, inner, values, indices);
}

#define WAYMARK_EXTREMES(T)                                            \
  template void max_axis<T>(const T*, i64, i64, i64, T*, i64*);        \
  template void min_axis<T>(const T*, i64, i64, i64, T*, i64*);
WAYMARK_EXTREMES(float)
WAYMARK_EXTREMES(double)
WAYMARK_EXTREMES(i64)

}  // namespace waymark::kernels
