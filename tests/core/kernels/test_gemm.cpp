#include "core/kernels/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "core/kernels/blas.h"
#include "core/kernels/gemm_kernel.h"
#include "core/tensor/error.h"
#include "tests/core/kernels/kernel_test.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::kernels;
using test::numbers;

namespace {

// A matrix inside a larger buffer, in a given layout.
enum class Stride { row, column, row_padded, column_padded, strided, reversed, broadcast_row, broadcast_column };
template <class T> struct Stored {
  std::vector<T> memory;
  MatrixView<T> view;
  Stored(i64 rows, i64 cols, Stride layout, u64 seed) {
    const i64 size = 4 * (rows + 3) * (cols + 3) + 8;
    memory = numbers<T>(size, seed);
    const T* p = memory.data();
    switch (layout) {
      case Stride::row: view = {p, cols, 1}; break;
      case Stride::column: view = {p, 1, rows}; break;
      case Stride::row_padded: view = {p + 1, cols + 3, 1}; break;
      case Stride::column_padded: view = {p + 2, 1, rows + 2}; break;
      case Stride::strided: view = {p, 2 * cols + 1, 2}; break;
      case Stride::reversed: view = {p + rows * cols - 1, -cols, -1}; break;
      case Stride::broadcast_row: view = {p, 0, 1}; break;
      case Stride::broadcast_column: view = {p, 1, 0}; break;
    }
  }
};
constexpr Stride kStrides[] = {Stride::row,     Stride::column,   Stride::row_padded,    Stride::column_padded,
                               Stride::strided, Stride::reversed, Stride::broadcast_row, Stride::broadcast_column};

// Largest |error| / (|alpha| sum |a||b| + |beta c|).
template <class T>
double worst_error(i64 m, i64 n, i64 k, double alpha, MatrixView<T> a, MatrixView<T> b, double beta, const T* before,
                   const T* c, i64 ldc) {
  double worst = 0;
  for (i64 i = 0; i < m; ++i) {
    for (i64 j = 0; j < n; ++j) {
      double sum = 0, scale = 0;
      for (i64 p = 0; p < k; ++p) {
        const double v = static_cast<double>(a.data[i * a.row_stride + p * a.col_stride]) *
                         static_cast<double>(b.data[p * b.row_stride + j * b.col_stride]);
        sum += v;
        scale += std::fabs(v);
      }
      const double old = beta == 0 ? 0 : beta * static_cast<double>(before[i * ldc + j]);
      const double want = alpha * sum + old;
      const double error = std::fabs(static_cast<double>(c[i * ldc + j]) - want);
      const double bound = std::fabs(alpha) * scale + std::fabs(old) + 1e-30;
      if (!(error / bound <= worst)) worst = error / bound;
    }
  }
  return worst;
}

template <class T> void check_product(i64 m, i64 n, i64 k, Stride la, Stride lb, double alpha, double beta) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(static_cast<int>(la));
  CAPTURE(static_cast<int>(lb));
  const Stored<T> a(m, k, la, 1), b(k, n, lb, 2);
  const i64 ldc = n + 2;
  std::vector<T> c = numbers<T>(m * ldc, 3);
  if (beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<T>::quiet_NaN());
  const std::vector<T> before = c;
  gemm<T>(m, n, k, static_cast<T>(alpha), a.view, b.view, static_cast<T>(beta), c.data(), ldc);
  const double limit = std::is_same_v<T, float> ? 1e-6 : 1e-14;
  CHECK(worst_error<T>(m, n, k, alpha, a.view, b.view, beta, before.data(), c.data(), ldc) <= limit);
  int touched = 0;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = n; j < ldc; ++j) {
      const T x = c[static_cast<size_t>(i * ldc + j)], y = before[static_cast<size_t>(i * ldc + j)];
      touched += !(x == y || (x != x && y != y));
    }
  CHECK(touched == 0);
}

}  // namespace

TEST_CASE("C22_C23_gemm_all_layouts_and_odd_sizes") {
  // every pair of layouts, one size in the register kernels, one in BLAS
  for (Stride la : kStrides)
    for (Stride lb : kStrides) {
      check_product<float>(7, 9, 5, la, lb, 1, 0);
      check_product<float>(33, 21, 40, la, lb, -1.5, 0.5);
      check_product<double>(6, 3, 11, la, lb, 2, 1);
      check_product<double>(19, 65, 18, la, lb, 1, 0);
    }
  // every small size around the widths of the register tiles, and extents of 1 where a stride has no meaning
  for (i64 m : {1, 2, 3, 4, 5, 8, 13, 16, 17})
    for (i64 n : {1, 2, 4, 5, 7, 8, 9, 15, 16, 17, 33})
      for (i64 k : {1, 2, 16, 17}) {
        check_product<float>(m, n, k, Stride::row, Stride::row, 1, 0);
        check_product<float>(m, n, k, Stride::column_padded, Stride::column, 1, 1);
        check_product<double>(m, n, k, Stride::row_padded, Stride::column, 1, 0);
      }
  // larger than one task, uneven pieces, inner blocks
  check_product<float>(515, 260, 70, Stride::row, Stride::column, 1, 0);
  check_product<float>(130, 129, 1300, Stride::column, Stride::row, 1, 1);
  check_product<double>(130, 129, 1300, Stride::row, Stride::row, 0.5, 0);
  check_product<float>(1030, 40, 300, Stride::column, Stride::row, 1, 0.5);  // far columns of A: BLAS
}

TEST_CASE("kernel_gemm: every version for an instruction set that this CPU has, all layouts") {
  for (int level : {1, 3, 4, 0}) {
    if (!set_kernel_gemm_level(level)) continue;
    CAPTURE(level);
    const auto check = [&]<class T>(T, i64 m, i64 n, i64 k, Stride la, Stride lb, double alpha, double beta) {
      const Stored<T> a(m, k, la, 1), b(k, n, lb, 2);
      const i64 ldc = n + 3;
      std::vector<T> c = numbers<T>(m * ldc, 3);
      if (beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<T>::quiet_NaN());
      const std::vector<T> before = c;
      kernel_gemm(m, n, k, static_cast<T>(alpha), a.view, b.view, static_cast<T>(beta), c.data(), ldc);
      const double limit = std::is_same_v<T, float> ? 1e-6 : 1e-14;
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      CHECK(worst_error<T>(m, n, k, alpha, a.view, b.view, beta, before.data(), c.data(), ldc) <= limit);
      int touched = 0;
      for (i64 i = 0; i < m; ++i)
        for (i64 j = n; j < ldc; ++j) {
          const T x = c[static_cast<size_t>(i * ldc + j)], y = before[static_cast<size_t>(i * ldc + j)];
          touched += !(x == y || (x != x && y != y));
        }
      CHECK(touched == 0);
    };
    for (i64 m : {1, 3, 4, 7, 15, 16, 31})
      for (i64 n : {1, 2, 3, 4, 5, 6, 8, 11, 12, 15, 16, 23, 32, 33, 47, 65})
        for (Stride lb : {Stride::row, Stride::column, Stride::strided}) {
          check(float{}, m, n, 9, Stride::row, lb, 1, 0);
          check(double{}, m, n, 5, Stride::column, lb, -2, 0.5);
        }
    for (Stride la : kStrides)
      for (Stride lb : kStrides) check(float{}, 19, 37, 6, la, lb, 1, 1);
    check(float{}, 150, 70, 530, Stride::row, Stride::row, 1, 0);       // packed, three inner blocks
    check(float{}, 530, 17, 300, Stride::column, Stride::column, 1, 1);  // two blocks of rows
    check(double{}, 40, 70, 600, Stride::row, Stride::row_padded, 1, 0);
    check(float{}, 40, 600, 20, Stride::row, Stride::row, 1, 0);         // far rows of B
  }
  CHECK(set_kernel_gemm_level(0));
}

TEST_CASE("kernel_gemm reads nothing outside its operands") {
  // Allocations of exactly the size: the address sanitizer sees any step beyond.
  for (i64 n : {1, 5, 13, 16, 29, 40}) {
    const std::vector<float> a = numbers<float>(21 * 7, 1), b = numbers<float>(7 * n, 2);
    std::vector<float> c(static_cast<size_t>(21 * n));
    kernel_gemm(21, n, 7, 1.0f, {a.data(), 7, 1}, {b.data(), n, 1}, 0.0f, c.data(), n);
    CHECK(worst_error<float>(21, n, 7, 1, {a.data(), 7, 1}, {b.data(), n, 1}, 0, nullptr, c.data(), n) < 1e-6);
    kernel_gemm(21, n, 7, 1.0f, {a.data(), 1, 21}, {b.data(), 1, 7}, 0.0f, c.data(), n);
    CHECK(worst_error<float>(21, n, 7, 1, {a.data(), 1, 21}, {b.data(), 1, 7}, 0, nullptr, c.data(), n) < 1e-6);
  }
}

TEST_CASE("C23_gemm_meaningless_strides") {
  // strides of axes of extent 1 are never read as leading dimensions: 0, negative and huge ones
  const std::vector<float> x = numbers<float>(64, 5), y = numbers<float>(64 * 64, 6);
  for (i64 bad : {i64{0}, i64{-7}, i64{1} << 40}) {
    std::vector<float> c(64), d(64);
    gemm<float>(1, 50, 30, 1, {x.data(), bad, 1}, {y.data(), 50, 1}, 0, c.data(), 0);
    CHECK(worst_error<float>(1, 50, 30, 1, {x.data(), 0, 1}, {y.data(), 50, 1}, 0, nullptr, c.data(), 50) < 1e-6);
    gemm<float>(50, 1, 30, 1, {y.data(), 30, 1}, {x.data(), 1, bad}, 0, d.data(), 1);
    CHECK(worst_error<float>(50, 1, 30, 1, {y.data(), 30, 1}, {x.data(), 1, 0}, 0, nullptr, d.data(), 1) < 1e-6);
    std::vector<float> e(40 * 40);
    gemm<float>(40, 40, 1, 1, {x.data(), 1, bad}, {x.data() + 3, bad, 1}, 0, e.data(), 40);
    CHECK(worst_error<float>(40, 40, 1, 1, {x.data(), 1, 0}, {x.data() + 3, 0, 1}, 0, nullptr, e.data(), 40) < 1e-7);
  }
  // overlapping windows: both strides are 1
  std::vector<float> c(20 * 20);
  gemm<float>(20, 20, 30, 1, {x.data(), 1, 1}, {y.data(), 20, 1}, 0, c.data(), 20);
  CHECK(worst_error<float>(20, 20, 30, 1, {x.data(), 1, 1}, {y.data(), 20, 1}, 0, nullptr, c.data(), 20) < 1e-6);
}

TEST_CASE("C21_gemm_empty") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> c(6, nan);
  gemm<float>(2, 3, 0, 1, {nullptr, 0, 1}, {nullptr, 3, 1}, 0, c.data(), 3);
  for (float v : c) CHECK(v == 0);
  c.assign(6, 2.0f);
  gemm<float>(2, 3, 0, 1, {nullptr, 0, 1}, {nullptr, 3, 1}, 1, c.data(), 3);
  for (float v : c) CHECK(v == 2);
  const std::vector<float> bad(6, nan);  // alpha = 0 ignores A and B
  gemm<float>(2, 3, 2, 0, {bad.data(), 2, 1}, {bad.data(), 3, 1}, 0.5f, c.data(), 3);
  for (float v : c) CHECK(v == 1);
  gemm<float>(0, 3, 2, 1, {bad.data(), 2, 1}, {bad.data(), 3, 1}, 0, nullptr, 3);
  gemm<float>(2, 0, 2, 1, {bad.data(), 2, 1}, {bad.data(), 0, 1}, 0, nullptr, 0);
  const BatchAxis axis[] = {{2, 0, 0, 3}};
  c.assign(6, nan);
  bmm<float>(axis, 1, 3, 0, 1, {nullptr, 0, 1}, {nullptr, 3, 1}, 0, c.data(), 3);
  for (float v : c) CHECK(v == 0);
  const BatchAxis none[] = {{0, 0, 0, 0}};
  bmm<float>(none, 1, 3, 2, 1, {bad.data(), 2, 1}, {bad.data(), 3, 1}, 0, nullptr, 3);
}

TEST_CASE("bmm: batch axes with steps of 0 and negative ones, as the product alone bit for bit") {
  for (const auto& [m, n, k] : {std::array<i64, 3>{5, 6, 7}, std::array<i64, 3>{40, 24, 33}, std::array<i64, 3>{70, 130, 600}}) {
    const i64 outer = 3, inner = 2;
    for (Stride lb : {Stride::row, Stride::column, Stride::strided}) {
      const i64 size_a = m * k, size_b = 4 * (k + 3) * (n + 3), size_c = m * n;
      const std::vector<float> a = numbers<float>(outer * inner * size_a, 1);
      const std::vector<float> b = numbers<float>(outer * size_b, 2);
      std::vector<float> c(static_cast<size_t>(outer * inner * size_c), std::numeric_limits<float>::quiet_NaN());
      const MatrixView<float> va{a.data(), k, 1};
      const MatrixView<float> first = Stored<float>(k, n, lb, 0).view;
      const MatrixView<float> vb{b.data() + (outer - 1) * size_b, first.row_stride, first.col_stride};
      const BatchAxis axes[] = {{outer, size_a, -size_b, size_c}, {inner, outer * size_a, 0, outer * size_c}};
      bmm<float>(axes, m, n, k, 1, va, vb, 0, c.data(), n);
      int different = 0;
      std::vector<float> alone(static_cast<size_t>(size_c));
      for (i64 x = 0; x < outer; ++x)
        for (i64 y = 0; y < inner; ++y) {
          const MatrixView<float> xa{a.data() + (x + y * outer) * size_a, k, 1};
          const MatrixView<float> xb{vb.data - x * size_b, vb.row_stride, vb.col_stride};
          gemm<float>(m, n, k, 1, xa, xb, 0, alone.data(), n);
          const float* got = c.data() + (x + y * outer) * size_c;
          for (i64 i = 0; i < size_c; ++i) different += got[i] != alone[static_cast<size_t>(i)];
          if (x == 1)
            CHECK(worst_error<float>(m, n, k, 1, xa, xb, 0, nullptr, got, n) < 1e-6);
        }
      CHECK(different == 0);
    }
  }
}

TEST_CASE("C35_gemm_same_bits_for_any_number_of_threads") {
  struct Size {
    i64 m, n, k;
  };
  for (const Size s : {Size{515, 260, 70}, Size{130, 129, 1300}, Size{300, 700, 300}, Size{1024, 64, 64}}) {
    const Stored<float> a(s.m, s.k, Stride::row, 1), b(s.k, s.n, Stride::column, 2);
    CHECK(test::same_for_any_threads([&] {
      std::vector<float> c(static_cast<size_t>(s.m * s.n));
      gemm<float>(s.m, s.n, s.k, 1, a.view, b.view, 0, c.data(), s.n);
      return c;
    }));
  }
}

TEST_CASE("gemm_cut: tasks of at least 4 Mflop, by rows, columns and long inner axes, from the extents alone") {
  const GemmCut one = gemm_cut(128, 128, 100);
  CHECK(one.rows == 128);
  CHECK(one.columns == 128);
  CHECK(one.inner == 100);
  const GemmCut big = gemm_cut(2048, 2048, 512);
  CHECK((2048 / big.rows) * (2048 / big.columns) == 8);
  const GemmCut deep = gemm_cut(128, 128, 4096);
  CHECK(deep.inner < 4096);
  CHECK(deep.inner >= 256);
  for (i64 m : {1, 50, 200, 1000, 5000})
    for (i64 n : {1, 60, 300, 3000})
      for (i64 k : {1, 100, 700, 5000}) {
        const GemmCut cut = gemm_cut(m, n, k);
        const i64 tasks = ((m + cut.rows - 1) / cut.rows) * ((n + cut.columns - 1) / cut.columns) * ((k + cut.inner - 1) / cut.inner);
        CHECK(tasks <= 8);
        if (tasks > 1) CHECK(2.0 * static_cast<double>(m * n * k) / static_cast<double>(tasks) >= 4e6);
      }
}

TEST_CASE("gemm_many: independent products in one list of tasks") {
  const Stored<float> x(300, 70, Stride::row, 1), g(300, 200, Stride::row, 2), w(200, 70, Stride::row, 3);
  std::vector<float> dx(300 * 70), dw(200 * 70), small(4), dx2(300 * 70), dw2(200 * 70);
  const Stored<float> s(2, 2, Stride::row, 4);
  const Product<float> list[] = {
      {300, 70, 200, 1, g.view, w.view, 0, dx.data(), 70},
      {2, 2, 2, 1, s.view, s.view, 0, small.data(), 2},
      {0, 2, 2, 1, s.view, s.view, 0, nullptr, 2},
      {200, 70, 300, 1, {g.view.data, 1, 200}, x.view, 0, dw.data(), 70},
  };
  const i64 before = gemm_calls(), flops = gemm_flops();
  gemm_many<float>(list);
  CHECK(gemm_calls() == before + 4);
  CHECK(gemm_flops() == flops + 2 * (300 * 70 * 200 + 2 * 2 * 2 + 200 * 70 * 300));
  gemm<float>(300, 70, 200, 1, g.view, w.view, 0, dx2.data(), 70);
  gemm<float>(200, 70, 300, 1, {g.view.data, 1, 200}, x.view, 0, dw2.data(), 70);
  CHECK(gemm_calls() == before + 6);
  CHECK(dx == dx2);
  CHECK(dw == dw2);
  CHECK(worst_error<float>(2, 2, 2, 1, s.view, s.view, 0, nullptr, small.data(), 2) < 1e-6);
}

TEST_CASE("C33_gemm_from_four_user_threads") {
  const Stored<float> a(200, 300, Stride::row, 1), b(300, 260, Stride::column, 2);
  std::vector<float> want(200 * 260);
  gemm<float>(200, 260, 300, 1, a.view, b.view, 0, want.data(), 260);
  std::vector<int> wrong(4);
  std::vector<std::thread> users;
  for (size_t u = 0; u < 4; ++u)
    users.emplace_back([&, u] {
      for (int repeat = 0; repeat < 5; ++repeat) {
        std::vector<float> c(200 * 260);
        gemm<float>(200, 260, 300, 1, a.view, b.view, 0, c.data(), 260);
        wrong[u] += c != want;
      }
    });
  for (std::thread& t : users) t.join();
  for (int w : wrong) CHECK(w == 0);
}

TEST_CASE("C34_many_parallel_23x23_products") {
  const i64 batch = test::by_level<i64>(2000, 20000, 100000), n = 23;
  const std::vector<float> a = numbers<float>(n * n + batch, 1), b = numbers<float>(n * n, 2);
  std::vector<float> c(static_cast<size_t>(batch * n * n));
  const BatchAxis axis[] = {{batch, 1, 0, n * n}};
  bmm<float>(axis, n, n, n, 1, {a.data(), n, 1}, {b.data(), n, 1}, 0, c.data(), n);
  for (i64 i : {i64{0}, batch / 3, batch - 1})
    CHECK(worst_error<float>(n, n, n, 1, {a.data() + i, n, 1}, {b.data(), n, 1}, 0, nullptr, c.data() + i * n * n, n) < 1e-6);
}

TEST_CASE("blas: the self-check passes, and finds wrong kernels") {
  check_blas();
  CHECK_FALSE(blas_core_name().empty());
  CHECK(blas_config().find("OpenBLAS") != std::string::npos);
  const GemmFunction<float> right = blas_gemm;
  const GemmFunction<double> right64 = blas_gemm;
  check_gemm(right, right64);
  // one entry wrong at one size and one transposition
  const GemmFunction<float> wrong = [](bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
                                       const float* b, i64 ldb, float beta, float* c, i64 ldc) {
    blas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (m == 65 && ta && !tb) c[64 * ldc + n - 1] += 1e-3f;
  };
  // beta = 0 that multiplies what was there
  const GemmFunction<double> reads = [](bool ta, bool tb, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda,
                                        const double* b, i64 ldb, double beta, double* c, i64 ldc) {
    const double before = c[0];
    blas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (beta == 0) c[0] += 0 * before;
  };
  const GemmFunction<float> overruns = [](bool ta, bool tb, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
                                          const float* b, i64 ldb, float beta, float* c, i64 ldc) {
    blas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (n == 33) c[n] = 0;
  };
  const auto message = [](GemmFunction<float> f, GemmFunction<double> d) {
    try {
      check_gemm(f, d);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string text = message(wrong, right64);
  CHECK(text.find("blas: the self-check failed: f32 product [65,") == 0);
  CHECK(text.find("OPENBLAS_CORETYPE") != std::string::npos);
  CHECK(text.find(blas_core_name()) != std::string::npos);
  CHECK(message(right, reads).find("f64 product") != std::string::npos);
  CHECK(message(overruns, right64).find("writes beyond its result") != std::string::npos);
}
