// What a recorder costs: whole training steps of small language models without one, with Keep::stats and Keep::values,
// and with anomaly mode, taken in turn; medians of the CPU time of one thread, and their ratios to the plain step.
//   ninja -C build waymark-bench && build/waymark-bench --benchmark_filter=training_step
//
// What one op pays for the recorder that could be there, in instructions of 1,000 additions of one element, without a
// recorder (additions/0) and with one (additions/1); the line "Collected" has them:
//   count() { valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*add_1000_times*' "$@"; }
//   count build/waymark-bench --benchmark_filter=additions/0
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <optional>

#include "core/inspect/anomaly.h"
#include "core/inspect/recorder.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/loss.h"
#include "core/ops/random_ops.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "models/language_model.h"
#include "train/optim/optimizer.h"

namespace waymark {
namespace {

using inspect::Keep;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Arguments: batch, length, width, layers.
void training_step(benchmark::State& state) {
  set_num_threads(1);
  const RandomScope random(7);
  const i64 batch = state.range(0), length = state.range(1), width = state.range(2);
  models::LanguageModel model({.vocab_size = 65,
                               .encoder = {.embed_dim = width, .num_heads = 4, .num_layers = state.range(3), .position = "learned",
                                           .causal = true, .max_len = length}});
  train::AdamW optimizer(model.parameters());
  models::EncoderCall call;
  call.positions = nn::Positions::range(length);
  const Tensor ids = randint(0, 65, {batch, length}), targets = randint(0, 65, {batch * length});
  const auto step = [&] {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(ids, call).reshape({batch * length, 65}), targets);
    loss.backward();
    optimizer.step();
  };
  constexpr size_t kModes = 4;
  std::vector<double> seconds[kModes];
  for (auto _ : state)
    for (size_t mode = 0; mode < kModes; ++mode) {
      const double begin = cpu_seconds();
      {
        std::optional<inspect::Recorder> recorder;
        std::optional<inspect::AnomalyMode> anomaly;
        if (mode == 1) recorder.emplace(inspect::RecorderOptions{.keep = Keep::stats});
        if (mode == 2) recorder.emplace(inspect::RecorderOptions{.keep = Keep::values});
        if (mode == 3) anomaly.emplace();
        step();
      }
      seconds[mode].push_back(cpu_seconds() - begin);
    }
  const double plain = median(seconds[0]);
  state.counters["plain_ms"] = 1e3 * plain;
  state.counters["stats"] = median(seconds[1]) / plain;
  state.counters["values"] = median(seconds[2]) / plain;
  state.counters["anomaly"] = median(seconds[3]) / plain;
}
BENCHMARK(training_step)
    ->Args({4, 32, 32, 2})->Args({4, 32, 64, 2})->Args({16, 64, 64, 2})->Args({16, 64, 128, 4})
    ->Iterations(60)->Unit(benchmark::kMillisecond);

[[gnu::noinline]] void add_1000_times(const Tensor& a, const Tensor& b) {
  for (int i = 0; i < 1000; ++i) benchmark::DoNotOptimize(a + b);
}

// Argument: with a recorder?
void additions(benchmark::State& state) {
  const Tensor a = ones({1}), b = ones({1});
  for (int i = 0; i < 100; ++i) benchmark::DoNotOptimize(a + b);  // the allocator's first blocks
  std::optional<inspect::Recorder> recorder;
  if (state.range(0)) recorder.emplace();
  for (auto _ : state) add_1000_times(a, b);
}
BENCHMARK(additions)->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace waymark
