#include "core/kernels/gemm_kernel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"

namespace waymark::kernels {
namespace {

constexpr i64 kInnerBlock = 256;  // a packed panel of B is 32 KiB with AVX-512
constexpr i64 kRowBlock = 512;    // rows of A that stay in the second cache

// Vectors as the compilers know them: one register of the instruction set in the fast functions below, several in the
// portable one. Only used inside functions, never passed.
template <class T, int kWidth> struct VectorOf {
  using Type [[gnu::vector_size(kWidth * sizeof(T))]] = T;
};
// As wide as the numbers, so that a condition on it becomes a vector mask.
template <class T> using Flag = std::conditional_t<sizeof(T) == 4, i32, i64>;

template <class T> struct Problem {
  i64 m, n, k;
  T alpha;
  MatrixView<T> a, b;
  T beta;
  T* c;
  i64 ldc;
};

// A panel of B: rows of `ldb`, from column j of C on; the last vector of a rest has `columns` lanes.
template <class T> struct Panel {
  const T* b;
  i64 ldb, j;
  int columns;
  const Flag<T>* active;  // of a rest: lane < columns
};

template <bool kWhole, int kWidth, class T, class Vector>
WAYMARK_INLINE void load(const Panel<T>& panel, const T* from, Vector& v) {
  if constexpr (kWhole) {
    std::memcpy(&v, from, sizeof(v));
  } else {
    alignas(64) T lanes[kWidth];
    const Flag<T>* const active = panel.active;
#pragma omp simd
    for (int q = 0; q < kWidth; ++q) lanes[q] = active[q] ? from[q] : T(0);
    std::memcpy(&v, lanes, sizeof(v));
  }
}
template <int kPiece, class T> WAYMARK_INLINE void store_piece(int columns, T*& to, const T*& lanes) {
  if (!(columns & kPiece)) return;
  std::memcpy(to, lanes, kPiece * sizeof(T));
  to += kPiece;
  lanes += kPiece;
}
template <bool kWhole, int kWidth, class T, class Vector>
WAYMARK_INLINE void store(const Panel<T>& panel, T* to, const Vector& v) {
  if constexpr (kWhole) {
    std::memcpy(to, &v, sizeof(v));
  } else {  // in pieces: stores under a mask are slow on AMD
    alignas(64) T lanes[kWidth];
    std::memcpy(lanes, &v, sizeof(v));
    const T* from = lanes;
    if constexpr (kWidth > 8) store_piece<8>(panel.columns, to, from);
    if constexpr (kWidth > 4) store_piece<4>(panel.columns, to, from);
    if constexpr (kWidth > 2) store_piece<2>(panel.columns, to, from);
    store_piece<1>(panel.columns, to, from);
  }
}

// kRows rows of C from row i on, kVectors x kWidth columns. k >= 1.
template <int kRows, int kVectors, bool kWhole, int kWidth, class T>
WAYMARK_INLINE void tile_body(const Problem<T>& p, const Panel<T>& panel, i64 i) {
  using Vector = typename VectorOf<T, kWidth>::Type;
  Vector sum[kRows * kVectors];
  unroll<kRows * kVectors>([&](auto s) WAYMARK_BODY { sum[s()] = Vector{}; });
  // A pointer for every four rows: all of them stay in registers.
  const i64 row = p.a.row_stride, step = p.a.col_stride, ldb = panel.ldb;
  constexpr int kPointers = (kRows + 3) / 4;
  const T *a[kPointers], *from = panel.b;
  unroll<kPointers>([&](auto s) WAYMARK_BODY { a[s()] = p.a.data + (i + 4 * s()) * row; });
  i64 k = p.k;
  do {
    Vector v[kVectors];
    unroll<kVectors>([&](auto u) WAYMARK_BODY { load<kWhole, kWidth>(panel, from + u() * kWidth, v[u()]); });
    unroll<kRows>([&](auto r) WAYMARK_BODY {
      const T x = a[r() / 4][r() % 4 * row];
      unroll<kVectors>([&](auto u) WAYMARK_BODY { sum[r() * kVectors + u()] += v[u()] * x; });
    });
    unroll<kPointers>([&](auto s) WAYMARK_BODY { a[s()] += step; });
    from += ldb;
  } while (--k > 0);
  const T alpha = p.alpha, beta = p.beta;
  const i64 ldc = p.ldc;
  T* const c = p.c + i * ldc + panel.j;
  unroll<kRows * kVectors>([&](auto s) WAYMARK_BODY {
    T* const to = c + s() / kVectors * ldc + s() % kVectors * kWidth;
    Vector out = sum[s()] * alpha;
    if (beta != T(0)) {
      Vector old;
      load<kWhole, kWidth>(panel, to, old);
      out += old * beta;
    }
    store<kWhole, kWidth>(panel, to, out);
  });
}

// to[k * kWidth + q] = from[q * ld + k] for k, q < 4
template <int kWidth, class T> WAYMARK_INLINE void transpose4(const T* from, i64 ld, T* to) {
  using Vector = typename VectorOf<T, 4>::Type;
  Vector a, b, c, d;
  std::memcpy(&a, from, sizeof(a));
  std::memcpy(&b, from + ld, sizeof(b));
  std::memcpy(&c, from + 2 * ld, sizeof(c));
  std::memcpy(&d, from + 3 * ld, sizeof(d));
  const Vector ac0 = __builtin_shufflevector(a, c, 0, 4, 1, 5), ac1 = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  const Vector bd0 = __builtin_shufflevector(b, d, 0, 4, 1, 5), bd1 = __builtin_shufflevector(b, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(ac0, bd0, 0, 4, 1, 5);
  b = __builtin_shufflevector(ac0, bd0, 2, 6, 3, 7);
  c = __builtin_shufflevector(ac1, bd1, 0, 4, 1, 5);
  d = __builtin_shufflevector(ac1, bd1, 2, 6, 3, 7);
  std::memcpy(to, &a, sizeof(a));
  std::memcpy(to + kWidth, &b, sizeof(b));
  std::memcpy(to + 2 * kWidth, &c, sizeof(c));
  std::memcpy(to + 3 * kWidth, &d, sizeof(d));
}
// B's columns side by side: buffer[k * kWidth + q] = B(k, q), zero from column `columns` on.
template <int kWidth, class T> WAYMARK_INLINE void pack(i64 inner, MatrixView<T> b, i64 columns, T* buffer) {
  if (b.col_stride == 1 && columns == kWidth) {
    for (i64 k = 0; k < inner; ++k) std::memcpy(buffer + k * kWidth, b.data + k * b.row_stride, kWidth * sizeof(T));
    return;
  }
  i64 q = 0;
  for (; b.row_stride == 1 && q + 4 <= columns; q += 4) {
    const T* const from = b.data + q * b.col_stride;
    i64 k = 0;
    for (; k + 4 <= inner; k += 4) transpose4<kWidth>(from + k, b.col_stride, buffer + k * kWidth + q);
    for (; k < inner; ++k)
      for (i64 s = 0; s < 4; ++s) buffer[k * kWidth + q + s] = from[s * b.col_stride + k];
  }
  for (; q < kWidth; ++q) {
    const T* const from = b.data + q * b.col_stride;
    const bool there = q < columns;
    for (i64 k = 0; k < inner; ++k) buffer[k * kWidth + q] = there ? from[k * b.row_stride] : T(0);
  }
}

// Versions::tile<rows, vectors, width, whole>: the tile for one instruction set, a function of its own, so that its
// addresses stay in registers.
template <class Versions, int kVectors, int kWidth, bool kWhole, class T>
WAYMARK_INLINE void all_rows(const Problem<T>& p, const Panel<T>& panel) {
  i64 i = 0;
  if constexpr (kVectors == 1 && Versions::kBytes == 64 && kWidth * sizeof(T) == 64)  // 32 registers
    for (; i + 16 <= p.m; i += 16) Versions::template tile<16, kVectors, kWidth, kWhole>(p, panel, i);
  for (; i + 8 <= p.m; i += 8) Versions::template tile<8, kVectors, kWidth, kWhole>(p, panel, i);
  if (p.m & 4) Versions::template tile<4, kVectors, kWidth, kWhole>(p, panel, i), i += 4;
  if (p.m & 2) Versions::template tile<2, kVectors, kWidth, kWhole>(p, panel, i), i += 2;
  if (p.m & 1) Versions::template tile<1, kVectors, kWidth, kWhole>(p, panel, i);
}
// B by columns must be packed; B by rows is better packed, too, when many rows of A use it, or its rows lie far apart.
template <class T> bool packs(const Problem<T>& p) {
  if (p.b.col_stride != 1 && p.n > 1) return true;
  return p.m >= 128 || (p.m >= 32 && p.k > 1 && p.b.row_stride >= 512);
}
// Blocks of rows and of the inner axis; the later ones of the inner axis add to C.
template <class T, class F> WAYMARK_INLINE void for_blocks(const Problem<T>& p, F f) {
  for (i64 i = 0; i < p.m; i += kRowBlock)
    for (i64 k = 0; k < p.k; k += kInnerBlock) {
      Problem<T> block = p;
      block.m = std::min(kRowBlock, p.m - i);
      block.k = std::min(kInnerBlock, p.k - k);
      block.a.data += i * p.a.row_stride + k * p.a.col_stride;
      block.b.data += k * p.b.row_stride;
      block.c += i * p.ldc;
      if (k > 0) block.beta = T(1);
      f(block);
    }
}
// kPack: columns of B are copied side by side first.
template <class Versions, bool kPack, class T> WAYMARK_INLINE void multiply(const Problem<T>& p, T* buffer) {
  constexpr int kWidth = Versions::kBytes / static_cast<int>(sizeof(T));
  const auto panel = [&](i64 j, auto width, i64 columns) WAYMARK_BODY {
    const T* const b = p.b.data + j * p.b.col_stride;
    if constexpr (kPack) pack<width()>(p.k, {b, p.b.row_stride, p.b.col_stride}, columns, buffer);
    return Panel<T>{kPack ? buffer : b, kPack ? width() : p.b.row_stride, j, static_cast<int>(columns), nullptr};
  };
  using One = std::integral_constant<int, kWidth>;
  using Two = std::integral_constant<int, 2 * kWidth>;
  i64 j = 0;
  for (; j + 2 * kWidth <= p.n; j += 2 * kWidth)
    all_rows<Versions, 2, kWidth, true>(p, panel(j, Two{}, 2 * kWidth));
  if (p.n & kWidth) {
    all_rows<Versions, 1, kWidth, true>(p, panel(j, One{}, kWidth));
    j += kWidth;
  }
  const i64 rest = p.n - j;
  if (rest == 0) return;
  if constexpr (!kPack && kWidth >= 8) {  // frequent head widths
    if (rest == kWidth / 2) return all_rows<Versions, 1, kWidth / 2, true>(p, panel(j, One{}, rest));
  }
  if constexpr (!kPack && kWidth >= 16) {
    if (rest == kWidth / 4) return all_rows<Versions, 1, kWidth / 4, true>(p, panel(j, One{}, rest));
  }
  static constexpr auto kActive = [] {
    std::array<Flag<T>, 2 * kWidth> flags{};
    for (size_t q = 0; q < kWidth; ++q) flags[q] = 1;
    return flags;
  }();
  Panel<T> last = panel(j, One{}, rest);
  last.active = kActive.data() + kWidth - rest;
  all_rows<Versions, 1, kWidth, false>(p, last);
}

// target_clones cannot choose the width of the vectors, so the three versions are written out.
#define WAYMARK_KERNEL(NAME, BYTES, ...)                                                              \
  struct NAME##_versions {                                                                           \
    static constexpr int kBytes = BYTES;                                                             \
    template <int kRows, int kVectors, int kWidth, bool kWhole, class T>                             \
    __VA_ARGS__ [[gnu::noinline]] static void tile(const Problem<T>& p, const Panel<T>& b, i64 i) {  \
      tile_body<kRows, kVectors, kWhole, kWidth>(p, b, i);                                           \
    }                                                                                                \
    template <class T> __VA_ARGS__ [[gnu::noinline]] static void packed(const Problem<T>& p) {       \
      alignas(64) T buffer[kInnerBlock * 2 * BYTES / sizeof(T)];                                     \
      for_blocks(p, [&](const Problem<T>& block) WAYMARK_BODY {                                      \
        multiply<NAME##_versions, true>(block, buffer);                                              \
      });                                                                                            \
    }                                                                                                \
  };                                                                                                 \
  template <class T> __VA_ARGS__ void NAME(const Problem<T>& p) {                                    \
    if (packs(p)) NAME##_versions::packed(p);                                                        \
    else multiply<NAME##_versions, false, T>(p, nullptr);                                            \
  }

#if WAYMARK_HAS_CLONES
WAYMARK_KERNEL(kernel_v4, 64, [[gnu::target("arch=x86-64-v4")]])
WAYMARK_KERNEL(kernel_v3, 32, [[gnu::target("arch=x86-64-v3")]])
WAYMARK_KERNEL(kernel_base, 16, )

// The first call finds the version and puts it in its own place.
template <class T> struct Dispatch {
  using Function = void (*)(const Problem<T>&);
  static Function best() {
    if (__builtin_cpu_supports("x86-64-v4")) return kernel_v4<T>;
    return __builtin_cpu_supports("x86-64-v3") ? kernel_v3<T> : kernel_base<T>;
  }
  static void choose(const Problem<T>& p) {
    chosen.store(best(), std::memory_order_relaxed);
    best()(p);
  }
  static inline std::atomic<Function> chosen{choose};
};
template <class T> void run(const Problem<T>& p) { Dispatch<T>::chosen.load(std::memory_order_relaxed)(p); }
#elif defined(__AVX512F__)
WAYMARK_KERNEL(run, 64, )
#elif defined(__AVX__)
WAYMARK_KERNEL(run, 32, )
#else
WAYMARK_KERNEL(run, 16, )
#endif

}  // namespace

bool kernel_gemm_wins(i64 m, i64 n, i64 k, bool a_rows, bool b_rows, i64 a_step) {
  if (m <= 16 && n <= 16 && k <= 16) return true;
#if WAYMARK_HAS_CLONES
  static const bool wide = __builtin_cpu_supports("x86-64-v4");
#elif defined(__AVX512F__)
  constexpr bool wide = true;
#else
  constexpr bool wide = false;
#endif
  // Measured against OpenBLAS 0.3.21 with AVX-512: 1.0 to 1.5 times as fast under these conditions. With fewer vector
  // registers the tiles do not fit, and few rows do not pay for packing B.
  if (!wide || m < 16 || n < 16) return false;
  if (!a_rows && a_step >= 1024) return false;  // every element of a column of tiles in a page of its own
  return b_rows || m >= 32 || k <= 64;
}

bool set_kernel_gemm_level([[maybe_unused]] int level) {
#if WAYMARK_HAS_CLONES
  const auto set = [&]<class T>(T) {
    auto f = Dispatch<T>::best();
    if (level == 4) f = kernel_v4<T>;
    if (level == 3) f = kernel_v3<T>;
    if (level == 1) f = kernel_base<T>;
    Dispatch<T>::chosen.store(f, std::memory_order_relaxed);
  };
  if ((level == 4 && !__builtin_cpu_supports("x86-64-v4")) || (level == 3 && !__builtin_cpu_supports("x86-64-v3")))
    return false;
  set(float{});
  set(double{});
  return true;
#else
  return level == 0;
#endif
}

void kernel_gemm(i64 m, i64 n, i64 k, float alpha, MatrixView<float> a, MatrixView<float> b, float beta, float* c,
                i64 ldc) {
  run(Problem<float>{m, n, k, alpha, a, b, beta, c, ldc});
}
void kernel_gemm(i64 m, i64 n, i64 k, double alpha, MatrixView<double> a, MatrixView<double> b, double beta, double* c,
                i64 ldc) {
  run(Problem<double>{m, n, k, alpha, a, b, beta, c, ldc});
}

}  // namespace waymark::kernels
