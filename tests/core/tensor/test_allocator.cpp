// The allocator: limits, the cache, the thread's front of small blocks, failures, ended threads.
#include <doctest/doctest.h>

#include <thread>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

struct WithLimit {
  explicit WithLimit(i64 bytes) : before(set_memory_limit(bytes)) {}
  ~WithLimit() { set_memory_limit(before); }
  WithLimit(const WithLimit&) = delete;
  WithLimit& operator=(const WithLimit&) = delete;
  i64 before;
};

}  // namespace

TEST_CASE("memory that is not there: the message has the bytes, the shape, what is live and the limit") {
  release_cache();
  const Tensor big = make_empty({4 << 20}, kF32);  // 16 MiB
  const i64 live = memory_counters().bytes_live;
  const WithLimit limit(live + (1 << 20));
  CHECK(error_text([] { return zeros({8, 12, 512, 512}, kF32); }) ==
        fmt::format("empty: cannot get 96.0 MiB for [8, 12, 512, 512] f32 (live {:.1f} MiB, limit {:.1f} MiB)",
                    static_cast<double>(live) / 1048576, static_cast<double>(live + (1 << 20)) / 1048576));
  CHECK(memory_counters().bytes_live == live);
  CHECK(error_text([&] { return big + 1; }).starts_with("empty: cannot get 16.0 MiB for [4194304] f32 (live "));
  CHECK(make_empty({1000}, kF32).numel() == 1000);  // what fits is given
  CHECK(has(error_text([] { make_empty({i64{1} << 57}, kF32); }), "empty: cannot get 512.0 PiB for [144115188075855872] f32 ("));
  CHECK(error_text([] { set_memory_limit(-1); }) == "set_memory_limit: -1 bytes are negative");
}

TEST_CASE("the limit counts cached memory: it is given back before an allocation fails") {
  release_cache();
  const i64 live = memory_counters().bytes_live;
  const WithLimit limit(live + (10 << 20));
  { const Tensor a = make_empty({6 << 20}, kB8); }
  CHECK(memory_counters().bytes_cached >= 6 << 20);
  const Tensor b = make_empty({9 << 20}, kB8);  // another size class: 6 MiB of cache and 9 MiB would pass the limit
  CHECK(memory_counters().bytes_cached < 6 << 20);
}

TEST_CASE("small blocks: counters are exact, and freed memory is the next one taken") {
  release_cache();
  const MemoryCounters before = memory_counters();
  const void* place = nullptr;
  {
    const Tensor a = make_empty({10}, kF32);
    CHECK(memory_counters().bytes_live == before.bytes_live + 64);
    place = a.raw();
  }
  CHECK(memory_counters().bytes_live == before.bytes_live);
  CHECK(memory_counters().bytes_cached == before.bytes_cached + 64);
  CHECK(make_empty({16}, kF32).raw() == place);
  const i64 allocations = memory_counters().allocations;
  for (int i = 0; i < 1000; ++i) make_empty({i % 250}, kF32);
  const i64 warm = memory_counters().allocations;
  CHECK(warm - allocations <= 16);
  for (int i = 0; i < 1000; ++i) make_empty({i % 250}, kF32);
  CHECK(memory_counters().allocations == warm);
  release_cache();
  CHECK(memory_counters().bytes_cached <= before.bytes_cached);
}

TEST_CASE("blocks that a thread frees for another, and what an ended thread leaves, are used again") {
  const i64 live = memory_counters().bytes_live, tensors = TensorImpl::live();
  for (int round = 0; round < 3; ++round) {
    std::vector<Tensor> made;
    for (int i = 0; i < 300; ++i) made.push_back(make_empty({i % 250}, kF32));
    std::thread([&] {
      made.clear();
      std::vector<Tensor> mine;
      for (int i = 0; i < 300; ++i) mine.push_back(make_empty({i % 250}, kF32));
      made = mine;
    }).join();
  }
  CHECK(memory_counters().bytes_live == live);
  CHECK(TensorImpl::live() == tensors);
  const i64 allocations = memory_counters().allocations;
  std::vector<Tensor> again;
  for (int i = 0; i < 300; ++i) again.push_back(make_empty({i % 250}, kF32));
  CHECK(memory_counters().allocations == allocations);
}

TEST_CASE("a storage becomes a block when somebody asks for one, once, for any number of threads") {
  const Tensor a = make_empty({1024}, kF32), b = make_empty({1024}, kF32);
  CHECK(a.impl()->storage->alone());
  CHECK(!a.impl()->storage->shares_memory(*b.impl()->storage));
  std::vector<Intrusive<Block>> blocks(4);
  std::vector<std::thread> threads;
  for (Intrusive<Block>& block : blocks) threads.emplace_back([&] { block = a.impl()->storage->block(); });
  for (std::thread& t : threads) t.join();
  for (const Intrusive<Block>& block : blocks) CHECK(block == blocks[0]);
  CHECK(!a.impl()->storage->alone());
  const Tensor part = tensor_in_block(blocks[0], kF32, {8}, {1}, 16);
  CHECK(part.impl()->storage->shares_memory(*a.impl()->storage));
  CHECK(overlap_of(part, a) == Overlap::partial);
  CHECK(part.raw() == a.raw() + 64);
  blocks.clear();
  const void* memory = a.raw();
  part.fill_(3);
  CHECK(static_cast<const float*>(memory)[16] == 3);
}

TEST_CASE("a failing allocator: backward throws, leaves .grad as it was, and works afterwards") {
  const Tensor w = make<double>({3}, {1, 2, 3}).requires_grad_(), x = make<double>({3}, {4, 5, 6});
  w.set_grad(make<double>({3}, {7, 8, 9}));
  const auto loss = [&] { return (exp(w * x * 0.1) * w + w / x).sum(); };
  const Tensor expected = grad(loss(), {w})[w];
  int failures = 0;
  for (i64 n = 0;; ++n) {
    const Tensor root = loss();
    testing::fail_after(n);
    const std::string text = error_text([&] { root.backward(); });
    testing::fail_after(-1);
    if (text == "(no error)") break;
    ++failures;
    CHECK(has(text, "failing allocator of a test"));
    CHECK(w.grad().to_vector<double>() == std::vector<double>{7, 8, 9});
    REQUIRE(n < 1000);
  }
  CHECK(failures > 5);
  for (size_t i = 0; i < 3; ++i)
    CHECK(w.grad().to_vector<double>()[i] == doctest::Approx(7 + static_cast<double>(i) + expected.to_vector<double>()[i]));
}

}  // namespace waymark::test
