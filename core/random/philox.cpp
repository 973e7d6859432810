#include "core/random/philox.h"

#include <Random123/philox.h>

#include "core/kernels/clones.h"

namespace waymark {

PhiloxBlock philox_block(const PhiloxBlock& counter, u64 key) {
  const philox4x32_ctr_t c = {{counter[0], counter[1], counter[2], counter[3]}};
  const philox4x32_key_t k = {{static_cast<u32>(key), static_cast<u32>(key >> 32)}};
  const philox4x32_ctr_t out = philox4x32_R(10, c, k);
  return {out.v[0], out.v[1], out.v[2], out.v[3]};
}

// The same bijection over 16 lanes. Compilers do not vectorise Random123's function over blocks (7.1 ns a block, this
// one 2.5 ns with AVX-512 and 3.7 ns with SSE2); a test compares the two.
WAYMARK_CLONES
void philox_batch(u64 key, u32 draw, const PhiloxCounters& counters, int n, PhiloxWords& words) {
  constexpr int kLanes = 16;
  for (int s = 0; s < n; s += kLanes) {
    alignas(64) u32 c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      c0[i] = counters.block[s + i];
      c1[i] = counters.row[s + i];
      c2[i] = counters.lead[s + i];
      c3[i] = draw;
    }
    u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) {
        const u64 p0 = u64{c0[i]} * PHILOX_M4x32_0, p1 = u64{c2[i]} * PHILOX_M4x32_1;
        c0[i] = static_cast<u32>(p1 >> 32) ^ c1[i] ^ k0;
        c2[i] = static_cast<u32>(p0 >> 32) ^ c3[i] ^ k1;
        c1[i] = static_cast<u32>(p1);
        c3[i] = static_cast<u32>(p0);
      }
      k0 += PHILOX_W32_0;
      k1 += PHILOX_W32_1;
    }
    for (int i = 0; i < kLanes; ++i) {
      words.w[0][s + i] = c0[i];
      words.w[1][s + i] = c1[i];
      words.w[2][s + i] = c2[i];
      words.w[3][s + i] = c3[i];
    }
  }
}

}  // namespace waymark
