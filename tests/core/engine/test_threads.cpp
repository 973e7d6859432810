// Graphs and backward runs on several threads of the user.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <thread>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/dropout.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

namespace waymark::test {
namespace {


void on_threads(int n, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST_CASE("backward on four threads over shared leaves: every contribution arrives") {
  const Tensor w = leaf({1, 2}), fresh = leaf({1, 2});
  const int rounds = by_level(10, 100, 500);
  const i64 nodes = Node::live();
  on_threads(4, [&](int t) {
    for (int r = 0; r < rounds; ++r) (w * (t + 1) + w * w).sum().backward();
    if (t < 2) (fresh * 3).sum().backward();  // two that find no .grad yet
  });
  const double each = (1 + 2 + 3 + 4) * rounds;
  CHECK(w.grad().to_vector<double>() == std::vector<double>{each + 4 * rounds * 2, each + 4 * rounds * 4});
  CHECK(fresh.grad().to_vector<double>() == std::vector<double>{6, 6});
  CHECK(Node::live() == nodes);
}

TEST_CASE("a graph built by several threads, freed by another") {
  const i64 nodes = Node::live(), tensors = TensorImpl::live();
  {
    const Tensor x = leaf({3});
    std::vector<Tensor> parts(4);
    on_threads(4, [&](int t) {
      Tensor y = x;
      for (int i = 0; i < 50; ++i) y = y * 1.0 + x * 0.0;
      parts[static_cast<size_t>(t)] = y * (t + 1);
    });
    Tensor total = parts[0] + parts[1] + parts[2] + parts[3];
    total.backward();
    CHECK(x.grad().item<double>() == 10);
    parts.clear();
    std::thread([mine = std::move(total)]() mutable { mine = Tensor(); }).join();
  }
  CHECK(Node::live() == nodes);
  CHECK(TensorImpl::live() == tensors);
}

TEST_CASE("guards belong to their thread; a new thread starts with the defaults") {
  const NoGrad off;
  const ExplainMode twins;
  const Scope scope("net");
  const RandomScope random(3);
  bool grad = false, explain = true;
  std::string path = "?";
  u64 seed = 3;
  std::thread([&] {
    grad = grad_enabled();
    explain = explain_mode();
    path = scope_path(thread_state().scope);
    seed = current_generator().seed();
  }).join();
  CHECK(grad);
  CHECK(!explain);
  CHECK(path.empty());
  CHECK(seed == default_generator().seed());
  CHECK(!grad_enabled());
}

TEST_CASE("draws on several threads of one generator: none twice, none left out") {
  manual_seed(1);
  std::mutex mutex;
  std::vector<double> sums;
  const Tensor x = make_empty({64}, kF64).fill_(1);
  on_threads(4, [&](int) {
    for (int i = 0; i < 25; ++i) {
      const Tensor y = dropout(x, 0.5);
      const std::lock_guard lock(mutex);
      double code = 0;
      for (double v : y.to_vector<double>()) code = code * 2 + (v > 0);
      sums.push_back(code);
    }
  });
  std::sort(sums.begin(), sums.end());
  CHECK(std::adjacent_find(sums.begin(), sums.end()) == sums.end());
  CHECK(current_generator().count("dropout") == 100);
  manual_seed(1);
  std::vector<double> again;
  for (int i = 0; i < 100; ++i) {
    double code = 0;
    for (double v : dropout(x, 0.5).to_vector<double>()) code = code * 2 + (v > 0);
    again.push_back(code);
  }
  std::sort(again.begin(), again.end());
  CHECK(again == sums);
}

}  // namespace waymark::test
