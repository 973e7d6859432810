// On a CPU with fused multiply-add, functions with WAYMARK_CLONES must not run as their default clone: names that a
// compiler accepts and a CPU does not match fall back to SSE2 without a word.
#include "core/kernels/clones.h"

#include <doctest/doctest.h>

#if WAYMARK_HAS_CLONES

namespace {
// The clones above the default contract a·b + c to one rounding; SSE2 has no such instruction.
WAYMARK_CLONES __attribute__((noinline)) double product_sum(double a, double b, double c) { return a * b + c; }
}  // namespace

TEST_CASE("clones: the fast one is dispatched where the CPU has it") {
  volatile double a = 1 + 0x1p-30, c = -(1 + 0x1p-29);
  const double expected = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 0x1p-60 : 0.0;
  CHECK(product_sum(a, a, c) == expected);
}

#else

TEST_CASE("clones: none with this compiler, and functions stay callable") {
  struct Local {
    WAYMARK_CLONES static int one() { return 1; }
  };
  CHECK(Local::one() == 1);
}

#endif
