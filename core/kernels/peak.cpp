#include "core/kernels/peak.h"

#include <algorithm>
#include <chrono>

#include "core/kernels/clones.h"
#include "core/kernels/lanes.h"

namespace waymark::kernels {

namespace {

constexpr i64 kRounds = 20000;

// kChains sums of 16 lanes that do not wait for each other; as many as fit into the registers.
template <int kChains> WAYMARK_INLINE float chains(float factor, float step) {
  using Vector = typename ShortVector<float, kLanes>::Type;
  Vector sum[kChains], a = {}, b = {};
  a += factor;
  b += step;
  // Different starts: equal chains would be computed once.
  unroll<kChains>([&](auto c) WAYMARK_BODY { sum[c] = b * static_cast<float>(c); });
  for (i64 r = 0; r < kRounds; ++r)
    unroll<kChains>([&](auto c) WAYMARK_BODY { sum[c] = sum[c] * a + b; });
  Vector all = {};
  unroll<kChains>([&](auto c) WAYMARK_BODY { all += sum[c]; });
  float lane[kLanes];
  std::memcpy(lane, &all, sizeof(lane));
  return lane[0];
}

// AVX2 has 16 registers, which is 7 chains and the two operands; AVX-512 has 32 of twice the width.
WAYMARK_CLONES float few_chains(float factor, float step) { return chains<7>(factor, step); }
WAYMARK_CLONES float many_chains(float factor, float step) { return chains<14>(factor, step); }

double measure() {
  using Clock = std::chrono::steady_clock;
  // The compiler must not know them.
  volatile float factor = 0.999f, step = 0.001f, sink = 0;
  double best = 0;
  for (int round = 0; round < 12; ++round) {
    for (const int count : {7, 14}) {
      const auto begin = Clock::now();
      sink = count == 7 ? few_chains(factor, step) : many_chains(factor, step);
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (seconds > 0) best = std::max(best, 2.0 * kLanes * count * static_cast<double>(kRounds) / seconds);
    }
  }
  (void)sink;
  return best;
}

}  // namespace

double fma_peak() {
  static const double peak = measure();
  return peak;
}

}  // namespace waymark::kernels
