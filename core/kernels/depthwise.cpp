#include "core/kernels/depthwise.h"

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

template <class T> WAYMARK_INLINE void correlate_body(const DepthwiseStep& s, const T* x, const T* w, T* y) {
  for (i64 k = 0; k < s.taps; ++k) {
    const T weight = w[k];
    const T* const from = x + k * s.dilation;
    if (s.stride == 1) {
#pragma omp simd
      for (i64 t = 0; t < s.outputs; ++t) y[t] += weight * from[t];
    } else {
      for (i64 t = 0; t < s.outputs; ++t) y[t] += weight * from[t * s.stride];
    }
  }
}
template <class T> WAYMARK_INLINE void spread_body(const DepthwiseStep& s, const T* y, const T* w, T* x) {
  for (i64 k = 0; k < s.taps; ++k) {
    const T weight = w[k];
    T* const to = x + k * s.dilation;
    if (s.stride == 1) {
#pragma omp simd
      for (i64 t = 0; t < s.outputs; ++t) to[t] += weight * y[t];
    } else {
      for (i64 t = 0; t < s.outputs; ++t) to[t * s.stride] += weight * y[t];
    }
  }
}
template <class T> WAYMARK_INLINE T product_body(const T* x, i64 stride, const T* y, i64 n) {
  return sum_terms<1, T>(n, [&](i64 t) WAYMARK_BODY { return Terms<T, 1>{y[t] * x[t * stride]}; })[0];
}

WAYMARK_CLONES void correlate(const DepthwiseStep& s, const float* x, const float* w, float* y) { correlate_body(s, x, w, y); }
WAYMARK_CLONES void correlate(const DepthwiseStep& s, const double* x, const double* w, double* y) { correlate_body(s, x, w, y); }
WAYMARK_CLONES void spread(const DepthwiseStep& s, const float* y, const float* w, float* x) { spread_body(s, y, w, x); }
WAYMARK_CLONES void spread(const DepthwiseStep& s, const double* y, const double* w, double* x) { spread_body(s, y, w, x); }
WAYMARK_CLONES float product(const float* x, i64 stride, const float* y, i64 n) { return product_body(x, stride, y, n); }
WAYMARK_CLONES double product(const double* x, i64 stride, const double* y, i64 n) { return product_body(x, stride, y, n); }

i64 rows_per_task(const DepthwiseStep& s) { return std::max<i64>(1, kGrain / std::max<i64>(1, s.taps * s.outputs)); }

}  // namespace

template <class T>
void depthwise(const DepthwiseStep& s, const T* x, i64 length, const T* w, i64 channels, T* y, i64 rows) {
  parallel_for(rows, rows_per_task(s), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) correlate(s, x + r * length, w + r % channels * s.taps, y + r * s.outputs);
  });
}

template <class T>
void depthwise_adjoint(const DepthwiseStep& s, const T* y, const T* w, i64 channels, T* x, i64 length, i64 rows) {
  parallel_for(rows, rows_per_task(s), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) spread(s, y + r * s.outputs, w + r % channels * s.taps, x + r * length);
  });
}

template <class T>
void depthwise_weight(const DepthwiseStep& s, const T* x, i64 length, const T* y, i64 channels, T* dw, i64 rows) {
  parallel_for(channels, std::max<i64>(1, rows_per_task(s) * channels / std::max<i64>(1, rows)), [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c)
      for (i64 k = 0; k < s.taps; ++k) {
        PairwiseTree<1, T> sum;
        for (i64 r = c; r < rows; r += channels)
          sum.add({product(x + r * length + k * s.dilation, s.stride, y + r * s.outputs, s.outputs)});
        dw[c * s.taps + k] = sum.result()[0];
      }
  });
}

#define WAYMARK_DEPTHWISE(T)                                                                                          \
  template void depthwise<T>(const DepthwiseStep&, const T*, i64, const T*, i64, T*, i64);                            \
  template void depthwise_adjoint<T>(const DepthwiseStep&, const T*, const T*, i64, T*, i64, i64);                    \
  template void depthwise_weight<T>(const DepthwiseStep&, const T*, i64, const T*, i64, T*, i64);
WAYMARK_DEPTHWISE(float)
WAYMARK_DEPTHWISE(double)

}  // namespace waymark::kernels
