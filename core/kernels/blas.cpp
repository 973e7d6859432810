#include "core/kernels/blas.h"

#include <cblas.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "core/tensor/error.h"

namespace waymark::kernels {
namespace {

constexpr CBLAS_TRANSPOSE transposition(bool t) { return t ? CblasTrans : CblasNoTrans; }
constexpr blasint to_int(i64 v) { return static_cast<blasint>(v); }

struct Case {
  i64 m, n, k;
};
// Odd sizes, edges of the usual register tiles (4, 6, 8, 16, 24, 32) and of the small-matrix kernels.
constexpr Case kCases[] = {{1, 1, 1},    {1, 17, 5},   {23, 1, 8},   {2, 3, 4},     {7, 8, 9},
                           {16, 16, 16}, {15, 33, 2},  {24, 5, 31},  {33, 48, 17},  {64, 31, 65},
                           {49, 64, 64}, {130, 20, 97}, {65, 129, 24}, {127, 34, 101}};

// Numbers in [-1, 1] with full mantissas, different at every place.
template <class T> void fill(std::vector<T>& v, u64 seed) {
  for (T& x : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<double>(seed >> 11) * 0x1p-52 - 1.0);
  }
}

template <class T> void check_case(const Case& c, bool ta, bool tb, bool accumulate, GemmFunction<T> gemm) {
  const i64 pad = 3;
  const i64 a_rows = ta ? c.k : c.m, lda = (ta ? c.m : c.k) + pad;
  const i64 b_rows = tb ? c.n : c.k, ldb = (tb ? c.k : c.n) + pad, ldc = c.n + pad;
  const auto size = [](i64 rows, i64 ld) { return static_cast<size_t>(rows * ld); };
  std::vector<T> a(size(a_rows, lda)), b(size(b_rows, ldb)), out(size(c.m, ldc));
  fill(a, 1);
  fill(b, 2);
  if (accumulate) fill(out, 3);
  else std::fill(out.begin(), out.end(), std::numeric_limits<T>::quiet_NaN());
  const std::vector<T> before = out;
  const T alpha = accumulate ? T(1) : T(-1.5), beta = accumulate ? T(1) : T(0);
  gemm(ta, tb, c.m, c.n, c.k, alpha, a.data(), lda, b.data(), ldb, beta, out.data(), ldc);

  const double tolerance = std::is_same_v<T, float> ? 1e-6 : 1e-14;
  std::vector<double> sum(static_cast<size_t>(c.n)), scale(static_cast<size_t>(c.n));
  for (i64 i = 0; i < c.m; ++i) {
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(scale.begin(), scale.end(), 0.0);
    for (i64 k = 0; k < c.k; ++k) {
      const double x = static_cast<double>(a[static_cast<size_t>(ta ? k * lda + i : i * lda + k)]);
      const T* row = b.data() + (tb ? k : k * ldb);
      const i64 step = tb ? ldb : 1;
      for (i64 j = 0; j < c.n; ++j) {
        const double p = x * static_cast<double>(row[j * step]);
        sum[static_cast<size_t>(j)] += p;
        scale[static_cast<size_t>(j)] += std::fabs(p);
      }
    }
    for (i64 j = 0; j < ldc; ++j) {
      const auto at = static_cast<size_t>(i * ldc + j);
      const T got = out[at];
      if (j >= c.n) {  // the padding must be untouched
        const bool same = accumulate ? got == before[at] : got != got;
        if (!same)
          fail("blas", "the GEMM kernel of OpenBLAS core {} ({}) writes beyond its result", blas_core_name(),
               blas_config());
        continue;
      }
      const auto jj = static_cast<size_t>(j);
      const double want = static_cast<double>(alpha) * sum[jj] + (accumulate ? static_cast<double>(before[at]) : 0.0);
      const double error = std::fabs(static_cast<double>(got) - want);
      if (!(error <= tolerance * (1.5 * scale[jj] + (accumulate ? 1.0 : 0.0))))
        fail("blas",
             "the self-check failed: {} product [{}, {}] x [{}, {}] (transposed: {}, {}; beta = {}) gives {} "
             "instead of {} at [{}, {}], with OpenBLAS core {} ({}); try another core: set OPENBLAS_CORETYPE, for "
             "example to Haswell",
             std::is_same_v<T, float> ? "f32" : "f64", c.m, c.k, c.k, c.n, ta, tb, static_cast<double>(beta),
             static_cast<double>(got), want, i, j, blas_core_name(), blas_config());
    }
  }
}

template <class T> void check_all(GemmFunction<T> gemm) {
  int variant = 0;
  for (const Case& c : kCases)
    for (int t = 0; t < 4; ++t) check_case<T>(c, t & 1, t & 2, variant++ % 3 == 2, gemm);
}

}  // namespace

void blas_gemm(bool transpose_a, bool transpose_b, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
               const float* b, i64 ldb, float beta, float* c, i64 ldc) {
  cblas_sgemm(CblasRowMajor, transposition(transpose_a), transposition(transpose_b), to_int(m), to_int(n), to_int(k),
              alpha, a, to_int(lda), b, to_int(ldb), beta, c, to_int(ldc));
}
void blas_gemm(bool transpose_a, bool transpose_b, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda,
               const double* b, i64 ldb, double beta, double* c, i64 ldc) {
  cblas_dgemm(CblasRowMajor, transposition(transpose_a), transposition(transpose_b), to_int(m), to_int(n), to_int(k),
              alpha, a, to_int(lda), b, to_int(ldb), beta, c, to_int(ldc));
}

void check_gemm(GemmFunction<float> single, GemmFunction<double> twice) {
  check_all<float>(single);
  check_all<double>(twice);
}

void check_blas() {
  static std::atomic<bool> passed{false};
  if (passed.load(std::memory_order_acquire)) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (passed.load(std::memory_order_relaxed)) return;
  if (openblas_get_parallel() != 1)
    fail("blas",
         "this OpenBLAS is the {} build ({}); Waymark needs the pthread build: install the Debian package "
         "libopenblas-pthread-dev and build again",
         openblas_get_parallel() == 2 ? "OpenMP" : "serial", blas_config());
  openblas_set_num_threads(1);
  if (openblas_get_num_threads() != 1)
    fail("blas", "OpenBLAS ({}) stays at {} threads although it was set to 1", blas_config(),
         openblas_get_num_threads());
  check_gemm(blas_gemm, blas_gemm);
  passed.store(true, std::memory_order_release);
}

std::string blas_core_name() { return openblas_get_corename(); }
std::string blas_config() { return openblas_get_config(); }

}  // namespace waymark::kernels
