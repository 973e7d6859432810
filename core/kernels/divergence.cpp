#include "core/kernels/divergence.h"

#include <cmath>
#include <limits>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"
#include "core/kernels/padded_row.h"

namespace waymark::kernels {
namespace {

template <class T> constexpr T kNothing = -std::numeric_limits<T>::infinity();

// n is a multiple of 16; the padding is -inf and adds nothing.
template <class T> WAYMARK_CLONES RowLogSum<T> log_sum_of(const T* x, i64 n) {
  const T m = row_max(x, n);
  const T sum =
      sum_terms<1, T>(n, [&](i64 i) WAYMARK_BODY { return Terms<T, 1>{vmath::exp_not_positive(x[i] - m)}; })[0];
  return {m, std::log(sum)};
}

template <class T>
WAYMARK_CLONES void shares(const T* x, const T* y, RowLogSum<T> a, RowLogSum<T> b, T* p, T* q, T* d, i64 n) {
  for (i64 i = 0; i < n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) {
      const T log_p = (x[i + j] - a.max) - a.log_sum, log_q = (y[i + j] - b.max) - b.log_sum;
      const T pj = vmath::exp_not_positive(log_p), qj = vmath::exp_not_positive(log_q);
      p[i + j] = pj;
      q[i + j] = qj;
      d[i + j] = pj == qj ? T(0) : log_p - log_q;  // so -inf against -inf is 0
    }
  }
}

// sum p d, -sum q d, sum (p - q) d; a share of 0 adds nothing, whatever d is.
template <class T> WAYMARK_CLONES Terms<T, 3> sums_of(const T* p, const T* q, const T* d, i64 n) {
  return sum_terms<3, T>(n, [&](i64 i, auto which) WAYMARK_BODY {
    const T of_p = p[i] == T(0) ? T(0) : p[i] * d[i], of_q = q[i] == T(0) ? T(0) : q[i] * d[i];
    return which() == 0 ? of_p : which() == 1 ? -of_q : p[i] == q[i] ? T(0) : (p[i] - q[i]) * d[i];
  });
}

template <class T>
WAYMARK_CLONES void gradient_of_share(const T* p, const T* q, const T* d, T own, T other, T mean, T* dx, i64 n) {
  // own·p (d - mean) + other·(p - q)
#pragma omp simd
  for (i64 i = 0; i < n; ++i)
    dx[i] = (own == T(0) || p[i] == T(0) ? T(0) : own * (p[i] * (d[i] - mean))) + other * (p[i] - q[i]);
}

// Both rows are nothing but -inf: shares of 0.
template <class T> bool empty(const RowLogSum<T>& a, const RowLogSum<T>& b) {
  return a.max == kNothing<T> && b.max == kNothing<T>;
}

}  // namespace

template <class T>
void divergence(Divergence kind, const T* x, const T* y, T* value, DivergenceRow<T>* stats, i64 rows, i64 classes) {
  parallel_for(rows, rows_per_chunk(classes), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(classes, 2);
    const i64 n = pad.length();
    const Scratch<T> room(3 * n);
    T *const p = room.data(), *const q = p + n, *const d = q + n;
    for (i64 r = begin; r < end; ++r) {
      const T* const u = pad.in(x + r * classes, 0, kNothing<T>);
      const T* const v = pad.in(y + r * classes, 1, kNothing<T>);
      DivergenceRow<T> s{{T(0), T(0)}, {T(0), T(0)}, T(0), T(0)};
      T result = 0;
      if (n > 0) {
        const RowLogSum<T> a = log_sum_of(u, n), b = log_sum_of(v, n);
        if (!empty(a, b)) {
          s.first = a;
          s.second = b;
          shares(u, v, a, b, p, q, d, n);
          const Terms<T, 3> sums = sums_of(p, q, d, n);
          s.forward = sums[0];
          s.reverse = sums[1];
          result = kind == Divergence::forward ? sums[0] : T(0.5) * sums[2];
        }
      }
      value[r] = result;
      if (stats) stats[r] = s;
    }
  });
}

template <class T>
void divergence_backward(Divergence kind, const T* x, const T* y, const DivergenceRow<T>* stats, const T* g, T* dx,
                         T* dy, i64 rows, i64 classes) {
  if (classes == 0) return;
  parallel_for(rows, rows_per_chunk(classes), [&](i64 begin, i64 end) {
    const PaddedRow<T> pad(classes, 3);
    const i64 n = pad.length();
    const Scratch<T> room(3 * n);
    T *const p = room.data(), *const q = p + n, *const d = q + n;
    for (i64 r = begin; r < end; ++r) {
      const DivergenceRow<T>& s = stats[r];
      shares(pad.in(x + r * classes, 0, kNothing<T>), pad.in(y + r * classes, 1, kNothing<T>), s.first, s.second, p, q,
             d, n);
      const bool forward = kind == Divergence::forward;
      const T half = T(0.5) * g[r];
      if (dx) {
        T* const to = pad.out(dx + r * classes, 2);
        gradient_of_share(p, q, d, forward ? g[r] : half, forward ? T(0) : half, s.forward, to, n);
        pad.finish(dx + r * classes, 2);
      }
      if (dy) {
        T* const to = pad.out(dy + r * classes, 2);
        for (i64 i = 0; i < n; ++i) d[i] = -d[i];
        gradient_of_share(q, p, d, forward ? T(0) : half, forward ? g[r] : half, s.reverse, to, n);
        pad.finish(dy + r * classes, 2);
      }
    }
  });
}

#define WAYMARK_DIVERGENCE(T)                                                                                          \
  template void divergence<T>(Divergence, const T*, const T*, T*, DivergenceRow<T>*, i64, i64);                        \
  template void divergence_backward<T>(Divergence, const T*, const T*, const DivergenceRow<T>*, const T*, T*, T*, i64, \
                                       i64);
WAYMARK_DIVERGENCE(float)
WAYMARK_DIVERGENCE(double)

}  // namespace waymark::kernels
