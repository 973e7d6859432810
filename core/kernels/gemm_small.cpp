#include "core/kernels/gemm_small.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/clones.h"
#include "core/kernels/vmath.h"

namespace waymark::kernels {
namespace {

// Vectors as the compilers know them: one register of the instruction set in the fast functions below, several in the
// portable one. Only used inside functions, never passed.
template <class T, int kLanes> struct VectorOf {
  using Type [[gnu::vector_size(kLanes * sizeof(T))]] = T;
};


template <class T> struct Problem {
  i64 k;
  T alpha;
  MatrixView<T> a;
  T beta;
  T* c;
  i64 ldc;
};

// kRows x columns of C from row i and column j; b[p * ldb + lane] is row p of B at these columns, all lanes readable.
template <class T, int kLanes, int kRows>
WAYMARK_INLINE void tile(const Problem<T>& p, i64 i, i64 j, i64 columns, const T* b, i64 ldb) {
  using Vector = typename VectorOf<T, kLanes>::Type;
  Vector sum[kRows] = {};
  const T* a = p.a.data + i * p.a.row_stride;
  const i64 row = p.a.row_stride, step = p.a.col_stride;
  for (i64 k = 0; k < p.k; ++k, a += step, b += ldb) {
    Vector v;
    std::memcpy(&v, b, sizeof(v));
    for (int r = 0; r < kRows; ++r) sum[r] += v * a[r * row];
  }
  T* c = p.c + i * p.ldc + j;
  for (int r = 0; r < kRows; ++r, c += p.ldc) {
    Vector out = sum[r] * p.alpha;
    if (columns == kLanes) {
      if (p.beta != T(0)) {
        Vector old;
        std::memcpy(&old, c, sizeof(old));
        out += old * p.beta;
      }
      std::memcpy(c, &out, sizeof(out));
    } else {
      for (int q = 0; q < kLanes - 1; ++q)
        if (q < columns) c[q] = p.beta != T(0) ? out[q] + c[q] * p.beta : out[q];
    }
  }
}

// All rows of one panel of columns.
template <class T, int kLanes>
WAYMARK_INLINE void panel(const Problem<T>& p, i64 m, i64 j, i64 columns, MatrixView<T> b, T* buffer) {
  const T* rows = b.data + j * b.col_stride;
  i64 ldb = b.row_stride;
  if (b.col_stride != 1 || columns != kLanes) {
    for (i64 k = 0; k < p.k; ++k) {
      const T* from = rows + k * b.row_stride;
      for (i64 q = 0; q < columns; ++q) buffer[k * kLanes + q] = from[q * b.col_stride];
      for (i64 q = columns; q < kLanes; ++q) buffer[k * kLanes + q] = T(0);
    }
    rows = buffer;
    ldb = kLanes;
  }
  i64 i = 0;
  for (; i + 8 <= m; i += 8) tile<T, kLanes, 8>(p, i, j, columns, rows, ldb);
  if (i + 4 <= m) {
    tile<T, kLanes, 4>(p, i, j, columns, rows, ldb);
    i += 4;
  }
  for (; i < m; ++i) tile<T, kLanes, 1>(p, i, j, columns, rows, ldb);
}

constexpr i64 kMaxInner = 64;

// kLanes: one register. Narrow rests use narrower panels where the registers have them.
template <class T, int kLanes>
WAYMARK_INLINE void multiply(i64 m, i64 n, const Problem<T>& p, MatrixView<T> b) {
  alignas(64) T buffer[kMaxInner * kLanes];
  i64 j = 0;
  for (; j + kLanes <= n; j += kLanes) panel<T, kLanes>(p, m, j, kLanes, b, buffer);
  if (j == n) return;
  if constexpr (kLanes >= 16) {
    if (n - j <= 4) return panel<T, 4>(p, m, j, n - j, b, buffer);
  }
  if constexpr (kLanes >= 8) {
    if (n - j <= kLanes / 2) return panel<T, kLanes / 2>(p, m, j, n - j, b, buffer);
  }
  panel<T, kLanes>(p, m, j, n - j, b, buffer);
}

// target_clones cannot choose the width of the vectors, so the three versions are written out.
#define WAYMARK_SMALL(NAME, T, BYTES)                                                                      \
  void NAME(i64 m, i64 n, const Problem<T>& p, MatrixView<T> b) {                                          \
    multiply<T, BYTES / static_cast<int>(sizeof(T))>(m, n, p, b);                                          \
  }
#define WAYMARK_SMALL_BOTH(NAME, BYTES, ...)      \
  __VA_ARGS__ WAYMARK_SMALL(NAME, float, BYTES)   \
  __VA_ARGS__ WAYMARK_SMALL(NAME, double, BYTES)

#if WAYMARK_HAS_CLONES
WAYMARK_SMALL_BOTH(small_v4, 64, [[gnu::target("arch=x86-64-v4")]])
WAYMARK_SMALL_BOTH(small_v3, 32, [[gnu::target("arch=x86-64-v3")]])
WAYMARK_SMALL_BOTH(small_base, 16, )
template <class T> using Small = void (*)(i64, i64, const Problem<T>&, MatrixView<T>);
template <class T> Small<T> choose() {
  return __builtin_cpu_supports("x86-64-v4") ? Small<T>(small_v4)
       : __builtin_cpu_supports("x86-64-v3") ? Small<T>(small_v3) : Small<T>(small_base);
}
template <class T> void dispatch(i64 m, i64 n, const Problem<T>& p, MatrixView<T> b) {
  static const Small<T> chosen = choose<T>();
  chosen(m, n, p, b);
}
#else
#if defined(__AVX512F__)
WAYMARK_SMALL_BOTH(dispatch, 64, )
#elif defined(__AVX__)
WAYMARK_SMALL_BOTH(dispatch, 32, )
#else
WAYMARK_SMALL_BOTH(dispatch, 16, )
#endif
#endif

}  // namespace

bool small_gemm_wins(i64 m, i64 n, i64 k, bool, bool) { return m <= 16 && n <= 16 && k <= 16; }

void small_gemm(i64 m, i64 n, i64 k, float alpha, MatrixView<float> a, MatrixView<float> b, float beta, float* c,
                i64 ldc) {
  dispatch(m, n, Problem<float>{k, alpha, a, beta, c, ldc}, b);
}
void small_gemm(i64 m, i64 n, i64 k, double alpha, MatrixView<double> a, MatrixView<double> b, double beta, double* c,
                i64 ldc) {
  dispatch(m, n, Problem<double>{k, alpha, a, beta, c, ldc}, b);
}

}  // namespace waymark::kernels
