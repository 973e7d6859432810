// The parallel seam: chunks by size alone, inline below the grain, exceptions, nesting, denormals on every thread.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/ops/arithmetic.h"
#include "core/parallel/parallel.h"
#include "tests/backends.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

using Threads = WithThreads;

}  // namespace

TEST_CASE("chunks depend on n and grain only") {
  std::set<std::pair<i64, i64>> first;
  for (int n : {1, 2, 3, 4}) {
    const Threads threads(n);
    std::mutex mutex;
    std::set<std::pair<i64, i64>> seen;
    parallel_for(1000, 64, [&](i64 begin, i64 end) {
      const std::lock_guard lock(mutex);
      seen.emplace(begin, end);
    });
    if (n == 1) first = seen;
    if (std::string(parallel_backend()) != "serial" || n > 1) CHECK(seen.size() == 16);
    CHECK(seen == first);
  }
}

TEST_CASE("C37 an add of 1,000 elements starts no region; 10^6 elements do") {
  const Threads threads(2);
  const Tensor a = make_empty({1000}, kF32), big = make_empty({1000000}, kF32);
  const i64 before = parallel_regions();
  const Tensor small = a + a;
  CHECK(parallel_regions() == before);
  const Tensor large = big + big;
  CHECK(parallel_regions() == before + 1);
}

TEST_CASE("the reduction tree gives the same bits for any number of threads") {
  std::vector<float> x(300000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0F / static_cast<float>(i + 1);
  float first = 0;
  for (int n : {1, 2, 3, 4}) {
    const Threads threads(n);
    const float s = deterministic_reduce<float>(static_cast<i64>(x.size()), 4096, [&](i64 b, i64 e) {
      float part = 0;
      for (i64 i = b; i < e; ++i) part += x[static_cast<size_t>(i)];
      return part;
    }, [](float a, float b) { return a + b; });
    if (n == 1) first = s;
    CHECK(s == first);
  }
}

TEST_CASE("C14 the denormal guard reaches every thread") {
#if defined(__x86_64__)
  const Threads threads(2);
  const i64 n = 1 << 20;
  const Tensor x = make_empty({n}, kF32);
  std::fill_n(x.data<float>(), n, 1e-30F);
  const auto zeros = [&] {
    const auto v = (x * 1e-10).to_vector<float>();
    return std::count(v.begin(), v.end(), 0.0F);
  };
  CHECK(zeros() == 0);
  {
    const DenormalGuard guard;
    CHECK(zeros() == n);
  }
  CHECK(zeros() == 0);
#endif
}

TEST_CASE("a bad number of threads is refused") {
  CHECK(error_text([] { set_num_threads(0); }) == "set_num_threads: 0 threads: 1 to 1024 are allowed");
  CHECK(error_text([] { testing::set_parallel_backend("openmp"); }).starts_with("parallel: there is no backend \"openmp\" in this build; expected "));
}

}  // namespace waymark::test
