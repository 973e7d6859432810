#include "core/kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

// n is a multiple of 16; the padding is -inf and adds nothing.
template <class T> WAYMARK_CLONES RowLogSum<T> log_sum_row(const T* x, i64 n) {
  const T m = row_max(x, n);
  const T sum =
      sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{vmath::exp_not_positive(x[i] - m)}; })[0];
  return {m, std::log(sum)};
}

// sum_c w_c (x_c - max)
template <class T> WAYMARK_CLONES T weighted_row(const T* x, const T* w, T max, i64 n) {
  if (w)
    return sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{w[i] * (x[i] - max)}; })[0];
  return sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{x[i] - max}; })[0];
}

// dx = a p - b w; the entry of the target is the caller's.
template <class T>
WAYMARK_CLONES void gradient_row(const T* x, RowLogSum<T> s, T a, T b, const T* w, T* dx, i64 padded, i64 n) {
  for (i64 i = 0; i < padded; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) dx[i + j] = a * vmath::exp_not_positive((x[i + j] - s.max) - s.log_sum);
  }
  if (b == T(0)) return;
  if (w) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] -= b * w[i];
  } else {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] -= b;
  }
}

template <class T> T sum_of_weights(const CrossEntropy<T>& c) {
  if (!c.weight) return static_cast<T>(c.classes);
  return sum_terms<1, T>(c.classes, [&](i64 i) { return Terms<T, 1>{c.weight[i]}; })[0];
}

}  // namespace

template <class T>
void cross_entropy(const CrossEntropy<T>& c, const T* x, T* loss, RowLogSum<T>* sums, i64 rows) {
  const i64 n = c.classes;
  const T all = c.smoothing != T(0) ? sum_of_weights(c) : T(0), spread = c.smoothing / static_cast<T>(n);
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(n, 1);
    for (i64 r = begin; r < end; ++r) {
      const i64 t = c.target[r];
      if (t < 0) {
        loss[r] = T(0);
        if (sums) sums[r] = {T(0), T(0)};
        continue;
      }
      const T* const row = x + r * n;
      const RowLogSum<T> s = log_sum_row(pad.in(row, 0, -std::numeric_limits<T>::infinity()), pad.length());
      T value = (T(1) - c.smoothing) * (c.weight ? c.weight[t] : T(1)) * (s.log_sum - (row[t] - s.max));
      if (c.smoothing != T(0)) value += spread * (all * s.log_sum - weighted_row(row, c.weight, s.max, n));
      loss[r] = value;
      if (sums) sums[r] = s;
    }
  });
}

template <class T>
void cross_entropy_backward(const CrossEntropy<T>& c, const T* x, const RowLogSum<T>* sums, const T* g, i64 g_step,
                            T factor, T* dx, i64 rows) {
  const i64 n = c.classes;
  const T all = c.smoothing != T(0) ? sum_of_weights(c) : T(0), spread = c.smoothing / static_cast<T>(n);
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(n, 2);
    for (i64 r = begin; r < end; ++r) {
      const i64 t = c.target[r];
      T* const out = dx + r * n;
      if (t < 0) {
        std::fill_n(out, n, T(0));
        continue;
      }
      const T scale = g[r * g_step] * factor;
      const T hard = (T(1) - c.smoothing) * (c.weight ? c.weight[t] : T(1));
      const T* const row = pad.in(x + r * n, 0, -std::numeric_limits<T>::infinity());
      T* const to = pad.out(out, 1);
      gradient_row(row, sums[r], scale * (hard + spread * all), scale * spread, c.weight, to, pad.length(), n);
      to[t] -= scale * hard;
      pad.finish(out, 1);
    }
  });
}

#define WAYMARK_CROSS_ENTROPY(T)                                                                              \
  template void cross_entropy<T>(const CrossEntropy<T>&, const T*, T*, RowLogSum<T>*, i64);                   \
  template void cross_entropy_backward<T>(const CrossEntropy<T>&, const T*, const RowLogSum<T>*, const T*, i64, T, T*,  \
                                          i64);
WAYMARK_CROSS_ENTROPY(float)
WAYMARK_CROSS_ENTROPY(double)

}  // namespace waymark::kernels
