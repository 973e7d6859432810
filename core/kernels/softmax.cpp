#include "core/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"
#include "core/kernels/scratch.h"
#include "core/parallel/parallel.h"
#include "core/tensor/small_vector.h"

namespace waymark::kernels {
namespace {

template <class T> constexpr T kMinusInf = -std::numeric_limits<T>::infinity();

template <class T> WAYMARK_CLONES void softmax_row(const T* x, T* y, i64 n) {
  const T m = row_max(x, n);
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY {
    const T e = vmath::exp_not_positive(x[i] - m);
    y[i] = e;
    return Terms<T, 1>{e};
  })[0];
  const T inverse = T(1) / sum;
  for (i64 i = 0; i < n; ++i) y[i] *= inverse;
}

template <class T> WAYMARK_CLONES void softmax_backward_row(const T* y, const T* g, T* dx, i64 n) {
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{y[i] * g[i]}; })[0];
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = y[i] * (g[i] - sum);
}

template <class T> WAYMARK_CLONES void log_softmax_row(const T* x, T* y, i64 n) {
  const T m = row_max(x, n);
  const T sum =
      sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{vmath::exp_not_positive(x[i] - m)}; })[0];
  const T log_sum = std::log(sum);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = (x[i] - m) - log_sum;
}

template <class T> WAYMARK_CLONES void log_softmax_backward_row(const T* y, const T* g, T* dx, i64 n) {
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{g[i]}; })[0];
  for (i64 i = 0; i < n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) dx[i + j] = g[i + j] - vmath::exp(y[i + j]) * sum;
  }
}

// An integer as wide as the number, 0 or 1: g++ 12 does not vectorise loads of bool, and loops that mix bytes with
// numbers only in vectors of 16 bytes.
template <class T> using Wide = std::conditional_t<sizeof(T) == 4, u32, u64>;
template <class W> WAYMARK_CLONES void widen_mask(const u8* keep, i64 step, W* wide, i64 n) {
  i64 i = 0;
  for (; step == 1 && i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) wide[i + j] = keep[i + j];
  }
  for (; i < n; ++i) wide[i] = keep[i * step];
}

template <class T> WAYMARK_CLONES void masked_softmax_row(const T* x, const Wide<T>* keep, T scale, T* y, i64 n) {
  alignas(64) T lane[kLanes];
  alignas(64) Wide<T> any[kLanes] = {};
  for (int j = 0; j < kLanes; ++j) lane[j] = kMinusInf<T>;
  for (i64 i = 0; i < n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) {
      const T scaled = scale * x[i + j], v = keep[i + j] ? scaled : kMinusInf<T>;
      y[i + j] = v;
      lane[j] = v > lane[j] ? v : lane[j];
      any[j] |= keep[i + j];
    }
  }
  if (fold_lanes(any, [](auto& a, const auto& b) WAYMARK_BODY { a |= b; }) == 0) return std::fill(y, y + n, T(0));
  const T m = fold_max(lane);
  const T sum = sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY {
    const T e = vmath::exp_not_positive(y[i] - m);
    y[i] = e;
    return Terms<T, 1>{e};
  })[0];
  const T inverse = T(1) / sum;
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    const T p = y[i] * inverse;
    y[i] = keep[i] ? p : T(0);
  }
}

template <class T> WAYMARK_CLONES void masked_softmax_backward_row(const T* y, const T* g, T scale, T* dx, i64 n) {
  const T sum =
      sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{y[i] != T(0) ? y[i] * g[i] : T(0)}; })[0];
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = y[i] != T(0) ? scale * (y[i] * (g[i] - sum)) : T(0);
}

// Walks the masks of consecutive rows; a division per row would cost as much as a short row does.
class MaskCursor {
 public:
  MaskCursor(const MaskRows& mask, i64 row) : axes_(mask.axes), index_(mask.axes.size()), at_(mask.keep) {
    for (size_t a = axes_.size(); a-- > 0; row /= axes_[a].extent) {
      index_[a] = row % axes_[a].extent;
      at_ += index_[a] * axes_[a].step;
    }
  }
  const bool* get() const { return at_; }
  void next() {
    for (size_t a = axes_.size(); a-- > 0;) {
      at_ += axes_[a].step;
      if (++index_[a] < axes_[a].extent) return;
      at_ -= axes_[a].extent * axes_[a].step;
      index_[a] = 0;
    }
  }

 private:
  std::span<const MaskAxis> axes_;
  SmallVector<i64, 6> index_;
  const bool* at_;
};

// row(x, y, n) for every row.
template <class T, class Row> void map_rows(const T* x, T* y, i64 rows, i64 n, T fill, Row row) {
  if (n == 0) return;
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(n, 2);
    for (i64 r = begin; r < end; ++r) {
      row(pad.in(x + r * n, 0, fill), pad.out(y + r * n, 1), pad.length());
      pad.finish(y + r * n, 1);
    }
  });
}
template <class T, class Row> void map_rows(const T* y, const T* g, T* dx, i64 rows, i64 n, Row row) {
  if (n == 0) return;
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(n, 3);
    for (i64 r = begin; r < end; ++r) {
      row(pad.in(y + r * n, 0, T(0)), pad.in(g + r * n, 1, T(0)), pad.out(dx + r * n, 2), pad.length());
      pad.finish(dx + r * n, 2);
    }
  });
}

}  // namespace

template <class T> void softmax(const T* x, T* y, i64 rows, i64 n) {
  map_rows(x, y, rows, n, kMinusInf<T>, softmax_row<T>);
}
template <class T> void softmax_backward(const T* y, const T* g, T* dx, i64 rows, i64 n) {
  map_rows(y, g, dx, rows, n, softmax_backward_row<T>);
}
template <class T> void log_softmax(const T* x, T* y, i64 rows, i64 n) {
  map_rows(x, y, rows, n, kMinusInf<T>, log_softmax_row<T>);
}
template <class T> void log_softmax_backward(const T* y, const T* g, T* dx, i64 rows, i64 n) {
  map_rows(y, g, dx, rows, n, log_softmax_backward_row<T>);
}

template <class T> void masked_softmax(const T* x, const MaskRows& mask, T scale, T* y, i64 rows, i64 n) {
  if (n == 0) return;
  parallel_for(rows, rows_per_chunk(n), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(n, 2);
    const Scratch<Wide<T>> wide(pad.length());
    std::fill(wide.data() + n, wide.data() + pad.length(), Wide<T>(0));
    const bool* widened = nullptr;
    MaskCursor cursor(mask, begin);
    for (i64 r = begin; r < end; ++r, cursor.next()) {
      if (cursor.get() != widened) {  // rows of one sequence often share their mask
        widened = cursor.get();
        widen_mask(reinterpret_cast<const u8*>(widened), mask.column, wide.data(), n);
      }
      masked_softmax_row(pad.in(x + r * n, 0, T(0)), wide.data(), scale, pad.out(y + r * n, 1), pad.length());
      pad.finish(y + r * n, 1);
    }
  });
}
template <class T> void masked_softmax_backward(const T* y, const T* g, T scale, T* dx, i64 rows, i64 n) {
  map_rows(y, g, dx, rows, n, [scale](const T* yr, const T* gr, T* dxr, i64 length) {
    masked_softmax_backward_row(yr, gr, scale, dxr, length);
  });
}

#define WAYMARK_SOFTMAX(T)                                                                       \
  template void softmax<T>(const T*, T*, i64, i64);                                              \
  template void softmax_backward<T>(const T*, const T*, T*, i64, i64);                           \
  template void log_softmax<T>(const T*, T*, i64, i64);                                          \
  template void log_softmax_backward<T>(const T*, const T*, T*, i64, i64);                       \
  template void masked_softmax<T>(const T*, const MaskRows&, T, T*, i64, i64);                   \
  template void masked_softmax_backward<T>(const T*, const T*, T, T*, i64, i64);
WAYMARK_SOFTMAX(float)
WAYMARK_SOFTMAX(double)

}  // namespace waymark::kernels
