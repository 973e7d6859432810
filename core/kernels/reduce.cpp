#include "core/kernels/reduce.h"

#include "core/kernels/clones.h"
#include "core/kernels/column_sums.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"
#include "core/kernels/truth.h"

namespace waymark::kernels {

WAYMARK_CLONES void add_columns(i64 n, const float* x, float* y) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) y[j] += x[j];
}
WAYMARK_CLONES void add_columns(i64 n, const double* x, double* y) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) y[j] += x[j];
}
WAYMARK_CLONES void add_columns(i64 n, const u64* x, u64* y) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) y[j] += x[j];
}

namespace {

// What is summed of an element, in the type of the sum.
struct Value {
  template <class Sum, class T> WAYMARK_INLINE static Sum of(T x) { return static_cast<Sum>(x); }
};
struct NonZero {
  template <class Sum, class T> WAYMARK_INLINE static Sum of(T x) { return static_cast<Sum>(is_true(x)); }
};
struct Square {
  template <class Sum, class T> WAYMARK_INLINE static Sum of(T x) { return static_cast<Sum>(x) * static_cast<Sum>(x); }
};

template <class Sum, class Map, class T> WAYMARK_CLONES Sum map_chunk(const T* x, i64 n) {
  return sum_chunk<1, Sum>(0, n, [&](i64 i) WAYMARK_BODY { return Terms<Sum, 1>{Map::template of<Sum>(x[i])}; })[0];
}
template <class Sum, class Map, class T> WAYMARK_CLONES void map_add(i64 n, const T* x, Sum* y) {
  for (i64 j = 0; j < n; ++j) y[j] += Map::template of<Sum>(x[j]);
}

// out(row, terms) for every row; chunk(row, begin, end) -> Terms of at most 4,096 elements. Parallel over rows, or over
// chunks of rows that are longer.
template <size_t N, class T, class Chunk, class Out> void reduce_rows(i64 rows, i64 n, Chunk chunk, Out out) {
  const i64 chunks = (n + kSumChunk - 1) / kSumChunk;
  if (chunks <= 1) {
    return parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) out(r, chunk(r, i64{0}, n));
    });
  }
  const Scratch<Terms<T, N>> parts(rows * chunks);
  parallel_for(rows * chunks, kGrain / kSumChunk, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) {
      const i64 r = c / chunks, at = c % chunks * kSumChunk;
      parts.data()[c] = chunk(r, at, std::min(n, at + kSumChunk));
    }
  });
  for (i64 r = 0; r < rows; ++r) {
    PairwiseTree<N, T> tree;
    for (i64 c = 0; c < chunks; ++c) tree.add(parts.data()[r * chunks + c]);
    out(r, tree.result());
  }
}

// y[outer, inner]: sums over n rows. add_row(at, columns, sum) adds the elements from x[at] on to sum[columns].
// Parallel over outer, tiles of columns and chunks of rows.
constexpr i64 kColumnTile = 2048;
template <class Sum, class AddRow> void reduce_columns(i64 outer, i64 n, i64 inner, Sum* y, AddRow add_row) {
  const i64 tile = std::min(inner, kColumnTile), tiles = (inner + tile - 1) / tile;
  const i64 chunk = column_chunk(tile), chunks = std::max<i64>(1, (n + chunk - 1) / chunk);
  const Scratch<Sum> parts(chunks > 1 ? outer * tiles * chunks * tile : 1);
  const auto columns = [&](i64 t) { return std::min(tile, inner - t * tile); };
  const i64 per_task = std::max<i64>(1, kGrain / (std::max<i64>(1, std::min(n, chunk)) * tile));
  parallel_for(outer * tiles * chunks, per_task, [&](i64 begin, i64 end) {
    for (i64 task = begin; task < end; ++task) {
      const i64 o = task / (tiles * chunks), t = task / chunks % tiles, c = task % chunks;
      auto add_rows = [&](i64 first, i64 last, Sum* sum) {
        for (i64 r = first; r < last; ++r) add_row((o * n + r) * inner + t * tile, columns(t), sum);
      };
      Sum* const to = chunks > 1 ? parts.data() + task * tile : y + o * inner + t * tile;
      sum_row_chunk(c * chunk, std::min(n, (c + 1) * chunk), columns(t), to, add_rows);
    }
  });
  if (chunks == 1) return;
  for (i64 o = 0; o < outer; ++o)
    for (i64 t = 0; t < tiles; ++t) {
      Sum* const part = parts.data() + (o * tiles + t) * chunks * tile;
      combine_chunks(chunks, tile, part);
      std::copy_n(part, columns(t), y + o * inner + t * tile);
    }
}

template <class Sum, class Map, class T> void map_sum_axis(const T* x, i64 outer, i64 n, i64 inner, Sum* y) {
  if (outer == 0 || inner == 0) return;
  if (inner == 1)
    return reduce_rows<1, Sum>(
        outer, n,
        [&](i64 r, i64 begin, i64 end) { return Terms<Sum, 1>{map_chunk<Sum, Map>(x + r * n + begin, end - begin)}; },
        [&](i64 r, const Terms<Sum, 1>& v) { y[r] = v[0]; });
  reduce_columns(outer, n, inner, y,
                 [&](i64 at, i64 columns, Sum* sum) { map_add<Sum, Map>(columns, x + at, sum); });
}

// g++ 12 does not vectorise loads of bool.
template <class T> auto as_bytes(const T* x) {
  if constexpr (std::is_same_v<T, bool>) return reinterpret_cast<const u8*>(x);
  else return x;
}

template <class T> WAYMARK_CLONES T dot_chunk(const T* a, const T* b, i64 n) {
  return sum_chunk<1, T>(0, n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{a[i] * b[i]}; })[0];
}
template <class T> WAYMARK_CLONES Terms<T, 2> deviation_chunk(const T* x, T mean, i64 n) {
  return sum_chunk<2, T>(0, n, [&](i64 i, auto q) WAYMARK_BODY {
    const T d = x[i] - mean;
    return q() == 0 ? d : d * d;
  });
}
// sum[0, columns) += d, sum[columns, 2 columns) += d^2
template <class T> WAYMARK_CLONES void deviation_add(i64 n, const T* x, const T* mean, T* d_sum, T* square_sum) {
#pragma omp simd
  for (i64 j = 0; j < n; ++j) {
    const T d = x[j] - mean[j];
    d_sum[j] += d;
    square_sum[j] += d * d;
  }
}

}  // namespace

template <class T> void sum_axis(const T* x, i64 outer, i64 n, i64 inner, SumOf<T>* y) {
  if constexpr (std::is_floating_point_v<T>) map_sum_axis<T, Value>(x, outer, n, inner, y);
  else map_sum_axis<u64, Value>(as_bytes(x), outer, n, inner, reinterpret_cast<u64*>(y));
}
template <class T> SumOf<T> sum_all(const T* x, i64 n) {
  SumOf<T> y{};
  sum_axis(x, 1, n, 1, &y);
  return y;
}
template <class T> void count_nonzero_axis(const T* x, i64 outer, i64 n, i64 inner, i64* y) {
  map_sum_axis<u64, NonZero>(as_bytes(x), outer, n, inner, reinterpret_cast<u64*>(y));
}
template <class T> void sum_squares_axis(const T* x, i64 outer, i64 n, i64 inner, double* y) {
  map_sum_axis<double, Square>(x, outer, n, inner, y);
}

template <class T> void dot_rows(const T* a, const T* b, i64 rows, i64 n, T* y) {
  reduce_rows<1, T>(
      rows, n,
      [&](i64 r, i64 begin, i64 end) {
        return Terms<T, 1>{dot_chunk(a + r * n + begin, b + r * n + begin, end - begin)};
      },
      [&](i64 r, const Terms<T, 1>& v) { y[r] = v[0]; });
}

template <class T> void moments_axis(const T* x, i64 outer, i64 n, i64 inner, T* mean, T* squares) {
  const i64 count = outer * inner;
  if (count == 0) return;
  const Scratch<T> memory(count);
  T* const first = memory.data();
  const T size = static_cast<T>(n);
  sum_axis(x, outer, n, inner, first);
  for (i64 i = 0; i < count; ++i) first[i] /= size;
  const auto finish = [&](i64 at, T d, T d_squares) {
    const T c = d / size;
    if (mean) mean[at] = first[at] + c;
    if (squares) {
      const T ss = d_squares - d * c;  // n c^2 = d c
      squares[at] = n == 0 ? T(0) : ss < T(0) ? T(0) : ss;
    }
  };
  if (inner == 1)
    return reduce_rows<2, T>(
        outer, n, [&](i64 r, i64 begin, i64 end) { return deviation_chunk(x + r * n + begin, first[r], end - begin); },
        [&](i64 r, const Terms<T, 2>& v) { finish(r, v[0], v[1]); });
  for (i64 o = 0; o < outer; ++o) {
    const Scratch<T> sums(2 * inner);
    sum_columns<T>(n, 2 * inner, sums.data(), [&](i64 begin, i64 end, T* sum) {
      for (i64 r = begin; r < end; ++r)
        deviation_add(inner, x + (o * n + r) * inner, first + o * inner, sum, sum + inner);
    });
    for (i64 j = 0; j < inner; ++j) finish(o * inner + j, sums.data()[j], sums.data()[inner + j]);
  }
}

#define WAYMARK_REDUCE_ANY(T)                                                      \
  template void sum_axis<T>(const T*, i64, i64, i64, SumOf<T>*);                   \
  template SumOf<T> sum_all<T>(const T*, i64);                                     \
  template void count_nonzero_axis<T>(const T*, i64, i64, i64, i64*);
#define WAYMARK_REDUCE_FLOAT(T)                                                    \
  template void sum_squares_axis<T>(const T*, i64, i64, i64, double*);             \
  template void dot_rows<T>(const T*, const T*, i64, i64, T*);                     \
  template void moments_axis<T>(const T*, i64, i64, i64, T*, T*);
WAYMARK_REDUCE_ANY(float)
WAYMARK_REDUCE_ANY(double)
WAYMARK_REDUCE_ANY(i64)
WAYMARK_REDUCE_ANY(bool)
WAYMARK_REDUCE_FLOAT(float)
WAYMARK_REDUCE_FLOAT(double)

}  // namespace waymark::kernels
