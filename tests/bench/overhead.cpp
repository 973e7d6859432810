// What one small op costs, recorded and not; what a matrix product costs beside one bare call of OpenBLAS.
//   ninja -C build waymark-bench && build/waymark-bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
// For products unset OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE in that command.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/matmul.h"
#include "core/ops/random_ops.h"
#include "core/parallel/parallel.h"

namespace waymark {
namespace {

void add_one_element(benchmark::State& state) {
  const Tensor a = ones({1}), b = ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_one_element);

void add_one_element_recorded(benchmark::State& state) {
  const Tensor a = ones({1}).requires_grad_(), b = ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(a + b);
}
BENCHMARK(add_one_element_recorded);

void mul_one_element_recorded(benchmark::State& state) {
  const Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_();
  for (auto _ : state) benchmark::DoNotOptimize(a * b);
}
BENCHMARK(mul_one_element_recorded);

// Forward and backward through 100 links; seconds per link in the counter.
void chain_of_adds(benchmark::State& state) {
  const Tensor a = ones({1}).requires_grad_();
  for (auto _ : state) {
    Tensor y = a;
    for (int i = 0; i < 100; ++i) y = y + 1;
    y.backward();
  }
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(chain_of_adds);

void gemm_engine(benchmark::State& state) {
  set_num_threads(1);
  const i64 n = state.range(0);
  const Tensor a = randn({n, n}), b = randn({n, n});
  for (auto _ : state) benchmark::DoNotOptimize(matmul(a, b));
  state.counters["GF/s"] = benchmark::Counter(2.0 * static_cast<double>(n * n * n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gemm_engine)->RangeMultiplier(2)->Range(16, 512);

void gemm_bare(benchmark::State& state) {
  const i64 n = state.range(0);
  const Tensor a = randn({n, n}), b = randn({n, n}), c = empty({n, n});
  const int k = static_cast<int>(n);
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k, k, k, 1, a.data<float>(), k, b.data<float>(), k, 0, c.data<float>(), k);
    benchmark::ClobberMemory();
  }
  state.counters["GF/s"] = benchmark::Counter(2.0 * static_cast<double>(n * n * n) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(gemm_bare)->RangeMultiplier(2)->Range(16, 512);

}  // namespace
}  // namespace waymark

BENCHMARK_MAIN();
