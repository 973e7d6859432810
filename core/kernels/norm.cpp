#include "core/kernels/norm.h"

#include <cmath>

#include "core/kernels/clones.h"
#include "core/kernels/column_sums.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"

namespace waymark::kernels {

namespace {

template <class T> WAYMARK_CLONES RowMoments<T> layer_norm_row(const T* x, const T* w, const T* b, T eps, T* y, i64 n) {
  const T count = static_cast<T>(n);
  const T mean = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{x[i]}; })[0] / count;
  // Deviations from the computed mean; their own mean is what its rounding lost.
  const Terms<T, 2> sums = sum_terms<2, T>(n, [&](i64 i, auto q) WAYMARK_BODY {
    const T d = x[i] - mean;
    return q() == 0 ? d : d * d;
  });
  const T shift = sums[0] / count;
  const T variance = sums[1] / count - shift * shift;
  const T inverse = T(1) / std::sqrt((variance > T(0) ? variance : variance * T(0)) + eps);  // NaN stays
  if (w && b) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = ((x[i] - mean) - shift) * inverse * w[i] + b[i];
  } else if (w) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = ((x[i] - mean) - shift) * inverse * w[i];
  } else {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = ((x[i] - mean) - shift) * inverse;
    for (i64 i = 0; b && i < n; ++i) y[i] += b[i];
  }
  return {mean, shift, inverse};
}

// dx of a row. kWeight: whether there is a w.
template <bool kWeight, class T>
WAYMARK_INLINE void layer_norm_dx_body(const T* x, const T* w, RowMoments<T> m, const T* g, T* dx, i64 n) {
  const T count = static_cast<T>(n);
  const Terms<T, 2> sums = sum_terms<2, T>(n, [&](i64 i, auto q) WAYMARK_BODY {
    const T gw = kWeight ? g[i] * w[i] : g[i];
    return q() == 0 ? gw : gw * (((x[i] - m.mean) - m.shift) * m.inverse);
  });
  const T mean_g = sums[0] / count, mean_gx = sums[1] / count;
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T gw = kWeight ? g[i] * w[i] : g[i];
    const T xhat = ((x[i] - m.mean) - m.shift) * m.inverse;
    dx[i] = m.inverse * ((gw - mean_g) - xhat * mean_gx);
  }
}
template <class T>
WAYMARK_CLONES void layer_norm_dx(const T* x, const T* w, RowMoments<T> m, const T* g, T* dx, i64 n) {
  if (w) layer_norm_dx_body<true>(x, w, m, g, dx, n);
  else layer_norm_dx_body<false>(x, w, m, g, dx, n);
}
template <class T>
WAYMARK_CLONES void layer_norm_dw(const T* x, RowMoments<T> m, const T* g, T* dw, T* db, i64 n) {
  if (dw) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dw[i] += g[i] * (((x[i] - m.mean) - m.shift) * m.inverse);
  }
  if (db) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) db[i] += g[i];
  }
}

template <class T> WAYMARK_CLONES T rms_norm_row(const T* x, const T* w, T eps, T* y, i64 n) {
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{x[i] * x[i]}; })[0];
  const T inverse = T(1) / std::sqrt(sum / static_cast<T>(n) + eps);
  if (w) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] * inverse * w[i];
  } else {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = x[i] * inverse;
  }
  return inverse;
}
template <bool kWeight, class T>
WAYMARK_INLINE void rms_norm_dx_body(const T* x, const T* w, T inverse, const T* g, T* dx, i64 n) {
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY {
    const T gw = kWeight ? g[i] * w[i] : g[i];
    return Terms<T, 1>{gw * (x[i] * inverse)};
  })[0];
  const T mean = sum / static_cast<T>(n);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T gw = kWeight ? g[i] * w[i] : g[i];
    dx[i] = inverse * (gw - (x[i] * inverse) * mean);
  }
}
template <class T> WAYMARK_CLONES void rms_norm_dx(const T* x, const T* w, T inverse, const T* g, T* dx, i64 n) {
  if (w) rms_norm_dx_body<true>(x, w, inverse, g, dx, n);
  else rms_norm_dx_body<false>(x, w, inverse, g, dx, n);
}
template <class T> WAYMARK_CLONES void rms_norm_dw(const T* x, T inverse, const T* g, T* dw, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dw[i] += g[i] * (x[i] * inverse);
}

}  // namespace

template <class T>
void layer_norm(const T* x, const T* w, const T* b, T eps, T* y, RowMoments<T>* moments, i64 rows, i64 n) {
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const RowMoments<T> m = layer_norm_row(x + r * n, w, b, eps, y + r * n, n);
      if (moments) moments[r] = m;
    }
  });
}

template <class T>
void layer_norm_backward(const T* x, const T* w, const RowMoments<T>* moments, const T* g, T* dx, T* dw, T* db,
                         i64 rows, i64 n) {
  const auto row_dx = [&](i64 r) { layer_norm_dx(x + r * n, w, moments[r], g + r * n, dx + r * n, n); };
  if (!dw && !db) {
    if (!dx) return;
    return parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) row_dx(r);
    });
  }
  // dw and db side by side: one tree, and dx of the same rows while they are in cache.
  const i64 width = (dw ? n : 0) + (db ? n : 0);
  Scratch<T> sums(std::max<i64>(1, width));
  sum_columns<T>(rows, width, sums.data(), [&](i64 begin, i64 end, T* sum) {
    for (i64 r = begin; r < end; ++r) {
      layer_norm_dw(x + r * n, moments[r], g + r * n, dw ? sum : nullptr, db ? sum + (width - n) : nullptr, n);
      if (dx) row_dx(r);
    }
  });
  if (dw) std::copy_n(sums.data(), n, dw);
  if (db) std::copy_n(sums.data() + (width - n), n, db);
}

template <class T> void rms_norm(const T* x, const T* w, T eps, T* y, T* inverses, i64 rows, i64 n) {
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const T inverse = rms_norm_row(x + r * n, w, eps, y + r * n, n);
      if (inverses) inverses[r] = inverse;
    }
  });
}

template <class T>
void rms_norm_backward(const T* x, const T* w, const T* inverses, const T* g, T* dx, T* dw, i64 rows, i64 n) {
  const auto row_dx = [&](i64 r) { rms_norm_dx(x + r * n, w, inverses[r], g + r * n, dx + r * n, n); };
  if (!dw) {
    if (!dx) return;
    return parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) row_dx(r);
    });
  }
  sum_columns<T>(rows, n, dw, [&](i64 begin, i64 end, T* sum) {
    for (i64 r = begin; r < end; ++r) {
      rms_norm_dw(x + r * n, inverses[r], g + r * n, sum, n);
      if (dx) row_dx(r);
    }
  });
}

#define WAYMARK_NORM(T)                                                                                             \
  template void layer_norm<T>(const T*, const T*, const T*, T, T*, RowMoments<T>*, i64, i64);                       \
  template void layer_norm_backward<T>(const T*, const T*, const RowMoments<T>*, const T*, T*, T*, T*, i64, i64);   \
  template void rms_norm<T>(const T*, const T*, T, T*, T*, i64, i64);                                               \
  template void rms_norm_backward<T>(const T*, const T*, const T*, const T*, T*, T*, i64, i64);
WAYMARK_NORM(float)
WAYMARK_NORM(double)

}  // namespace waymark::kernels
