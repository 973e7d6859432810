// The same bits for any number of threads and on every backend; draws that growth leaves alone.
#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <thread>

#include "core/engine/backward.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding.h"
#include "core/ops/inplace.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "tests/backends.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

// Three updates of a small language model whose every part is above the grain, all draws included.
std::vector<Tensor> train() {
  constexpr i64 kBatch = 8, kLength = 128, kWidth = 64, kHeads = 4, kWords = 1000;
  const RandomScope random(5);
  const auto parameter = [](const Shape& shape) { return (randn(shape) * 0.1).detach().requires_grad_(); };
  const Tensor table = parameter({kWords, kWidth}), qkv = parameter({3 * kWidth, kWidth}), out = parameter({kWidth, kWidth}),
               up = parameter({4 * kWidth, kWidth}), up_bias = parameter({4 * kWidth}), down = parameter({kWidth, 4 * kWidth}),
               gain = (parameter({kWidth}).detach() + 1).requires_grad_(), shift = parameter({kWidth});
  const std::vector<Tensor> all{table, qkv, out, up, up_bias, down, gain, shift};
  std::vector<Tensor> results;
  for (int step = 0; step < 3; ++step) {
    const Tensor ids = randint(0, kWords, {kBatch, kLength}), target = randint(0, kWords, {kBatch, kLength});
    Tensor h = dropout(embedding(ids, table), 0.1);
    const Tensor parts = linear(layer_norm(h, {kWidth}, gain, shift), qkv).view({kBatch, kLength, 3, kHeads, kWidth / kHeads});
    const auto head = [&](i64 i) { return parts.select(2, i).transpose(1, 2); };
    const Tensor mixed = scaled_dot_product_attention(head(0), head(1), head(2), {}, 0.1, true);
    h = h + linear(mixed.transpose(1, 2).reshape({kBatch, kLength, kWidth}), out);
    h = h + dropout(linear(gelu(linear(layer_norm(h, {kWidth}, gain, shift), up, up_bias)), down), 0.1);
    const Tensor logits = matmul(h, table.t()).view({kBatch * kLength, kWords});
    const Tensor loss = cross_entropy(logits, target.view({kBatch * kLength}));
    loss.backward();
    results.push_back(loss.detach());
    const NoGrad off;
    for (const Tensor& p : all) {
      p.sub_(p.grad() * 0.5);
      p.set_grad({});
    }
  }
  for (const Tensor& p : all) results.push_back(p.detach());
  return results;
}

}  // namespace

TEST_CASE("C35 training steps have the same bits at 1, 2, 3 and 4 threads and on every backend") {
  const WithThreads one(1);
  const std::vector<Tensor> expected = train();
  const auto compare = [&] {
    const std::vector<Tensor> got = train();
    for (size_t i = 0; i < got.size(); ++i) CHECK(difference(got[i], expected[i]) == "");
  };
  compare();
  for (const std::string& name : backends()) {
    const WithBackend on(name.c_str());
    CAPTURE(name);
    for (int threads : {2, 3, 4}) {
      CAPTURE(threads);
      const WithThreads many(threads);
      const i64 before = parallel_regions();
      compare();
      CHECK(parallel_regions() > before);
    }
  }
}

TEST_CASE("C36 a dropout mask does not change with threads, and grows with batch and length") {
  const auto kept = [](const Shape& shape) {
    const RandomScope random(42);
    return dropout(ones(shape, kF32), 0.5);
  };
  const WithThreads one(1);
  const Tensor small = kept({2, 100, 700}), large = kept({5, 130, 700});
  CHECK(difference(large.narrow(0, 0, 2).narrow(1, 0, 100), small) == "");
  const WithThreads four(4);
  const i64 before = parallel_regions();
  CHECK(difference(kept({2, 100, 700}), small) == "");
  CHECK(difference(kept({5, 130, 700}), large) == "");
  CHECK(parallel_regions() > before);
  // The mask that backward draws again is the one of forward.
  const RandomScope random(42);
  const Tensor x = ones({5, 130, 700}, kF32).requires_grad_();
  const Tensor y = dropout(x, 0.5);
  CHECK(difference(y.detach(), large) == "");
  y.sum().backward();
  CHECK(difference(x.grad(), large) == "");
}

TEST_CASE("C61 each backend really runs in parallel, and only when it should") {
  for (const std::string& name : backends()) {
    const WithBackend on(name.c_str());
    CAPTURE(name);
    CHECK(parallel_backend() == name);
    const WithThreads two(2);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    const size_t expected = name == "serial" ? 1 : 2;
    for (int tries = 0; tries < 200 && ids.size() < 2; ++tries) {
      parallel_tasks(16, [&](i64) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        const std::lock_guard lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
      if (expected == 1 && tries == 5) break;
    }
    CHECK(ids.size() == expected);
    const i64 before = parallel_regions();
    parallel_for(kGrain, kGrain, [](i64, i64) {});  // at the grain: inline
    CHECK(parallel_regions() == before);
    parallel_for(kGrain + 1, kGrain, [](i64, i64) {});
    CHECK(parallel_regions() == before + 1);
  }
}

TEST_CASE("C33 callers on several threads share the threads of the arena") {
  for (const std::string& name : backends()) {
    const WithBackend on(name.c_str());
    CAPTURE(name);
    const WithThreads two(2);
    std::atomic<int> at_work{0}, most{0};
    std::atomic<i64> done{0};
    std::vector<std::thread> users;
    for (int u = 0; u < 4; ++u)
      users.emplace_back([&] {
        for (int round = 0; round < 20; ++round)
          parallel_tasks(8, [&](i64) {
            const int now = ++at_work;
            int seen = most;
            while (now > seen && !most.compare_exchange_weak(seen, now)) {}
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            ++done;
            --at_work;
          });
      });
    for (std::thread& t : users) t.join();
    CHECK(done == 4 * 20 * 8);
    if (name != "serial") CHECK(most <= 2);  // serial: each caller is its own thread
  }
}

TEST_CASE("every backend: exceptions, nesting, tiles") {
  for (const std::string& name : backends()) {
    const WithBackend on(name.c_str());
    CAPTURE(name);
    const WithThreads three(3);
    for (int round = 0; round < 20; ++round)
      CHECK_THROWS_WITH_AS(parallel_tasks(100, [](i64 t) { if (t == 37) throw std::runtime_error("task 37"); }), "task 37",
                           std::runtime_error);
    std::atomic<i64> sum{0};
    const i64 before = parallel_regions();
    parallel_tasks(4, [&](i64) { parallel_for(1000, 10, [&](i64 b, i64 e) { sum += e - b; }); });
    CHECK(sum == 4000);
    CHECK(parallel_regions() == before + 1);
    std::vector<std::atomic<int>> seen(7 * 11);
    parallel_for_2d(7, 11, 3, 4, [&](i64 r0, i64 r1, i64 c0, i64 c1) {
      for (i64 r = r0; r < r1; ++r)
        for (i64 c = c0; c < c1; ++c) ++seen[static_cast<size_t>(r * 11 + c)];
    });
    CHECK(std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& n) { return n == 1; }));
  }
}

}  // namespace waymark::test
