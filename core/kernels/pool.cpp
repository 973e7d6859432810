#include "core/kernels/pool.h"

#include <algorithm>
#include <limits>

#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

i64 grain_of(i64 work_per_row) { return std::max<i64>(1, kGrain / std::max<i64>(1, work_per_row)); }

}  // namespace

template <class T> void apply_taps(const Taps& taps, const T* x, T* y, i64 rows) {
  parallel_for(rows, grain_of(static_cast<i64>(taps.weight.size())), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r)
      for (i64 j = 0; j < taps.outputs; ++j) {
        const T* const from = x + r * taps.inputs + taps.first[static_cast<size_t>(j)];
        const i64 offset = taps.offset[static_cast<size_t>(j)], n = taps.offset[static_cast<size_t>(j + 1)] - offset;
        double sum = 0;
        for (i64 i = 0; i < n; ++i) sum += taps.weight[static_cast<size_t>(offset + i)] * static_cast<double>(from[i]);
        y[r * taps.outputs + j] = static_cast<T>(sum);
      }
  });
}

template <class T> void apply_taps_adjoint(const Taps& taps, const T* y, T* x, i64 rows) {
  parallel_for(rows, grain_of(static_cast<i64>(taps.weight.size())), [&](i64 begin, i64 end) {
    std::vector<double> sum(static_cast<size_t>(taps.inputs));
    for (i64 r = begin; r < end; ++r) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (i64 j = 0; j < taps.outputs; ++j) {
        double* const to = sum.data() + taps.first[static_cast<size_t>(j)];
        const i64 offset = taps.offset[static_cast<size_t>(j)], n = taps.offset[static_cast<size_t>(j + 1)] - offset;
        const double g = static_cast<double>(y[r * taps.outputs + j]);
        for (i64 i = 0; i < n; ++i) to[i] += taps.weight[static_cast<size_t>(offset + i)] * g;
      }
      for (i64 i = 0; i < taps.inputs; ++i) x[r * taps.inputs + i] = static_cast<T>(sum[static_cast<size_t>(i)]);
    }
  });
}

template <class T> void max_windows(const MaxWindows& w, const T* x, T* y, i64* place, i64 rows) {
  parallel_for(rows, grain_of(w.outputs * w.size), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r)
      for (i64 j = 0; j < w.outputs; ++j) {
        T best = -std::numeric_limits<T>::infinity();
        i64 at = -1;
        for (i64 k = 0; k < w.size; ++k) {
          const i64 i = j * w.stride + k * w.dilation - w.padding;
          if (i < 0 || i >= w.inputs) continue;
          const T v = x[r * w.inputs + i];
          if (at >= 0 && !(v > best || (v != v && best == best))) continue;
          best = v;
          at = i;
        }
        y[r * w.outputs + j] = best;
        place[r * w.outputs + j] = at;
      }
  });
}

#define WAYMARK_POOL(T)                                                            \
  template void apply_taps<T>(const Taps&, const T*, T*, i64);                     \
  template void apply_taps_adjoint<T>(const Taps&, const T*, T*, i64);             \
  template void max_windows<T>(const MaxWindows&, const T*, T*, i64*, i64);
WAYMARK_POOL(float)
WAYMARK_POOL(double)

}  // namespace waymark::kernels
