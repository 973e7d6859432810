// Checkpointing: the same bits with less memory, the same draws, nesting, and what it refuses.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/checkpoint.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dropout.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/random/generator.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

struct Net {
  std::vector<Tensor> w;
  explicit Net(int blocks, i64 width = 16) {
    manual_seed(3);
    for (int i = 0; i < blocks; ++i) w.push_back((randn({width, width}) * 0.2).detach().requires_grad_());
  }
  Tensor block(size_t i, const Tensor& x) const { return dropout(tanh(matmul(x, w[i])), 0.3) + sigmoid(x * x); }
  Tensor blocks(size_t from, size_t to, Tensor x) const {
    for (size_t i = from; i < to; ++i) x = block(i, x);
    return x;
  }
};

// Loss and gradients with a checkpoint every `every` blocks (0: none).
std::vector<Tensor> run(int blocks, int every, i64 rows = 8) {
  const Net net(blocks);
  manual_seed(11);
  Tensor x = randn({rows, 16});
  for (int i = 0; i < blocks; i += every ? every : blocks) {
    const auto from = static_cast<size_t>(i), to = static_cast<size_t>(every ? std::min(blocks, i + every) : blocks);
    const SingleFunction f = [&net, from, to](const Tensor& t) { return net.blocks(from, to, t); };
    x = every ? checkpoint(f, x) : f(x);
  }
  const Tensor loss = sum(x);
  loss.backward();
  std::vector<Tensor> out{loss.detach()};
  for (const Tensor& w : net.w) out.push_back(w.grad());
  return out;
}

}  // namespace

TEST_CASE("with and without checkpoints the bits are equal, dropout included") {
  const auto plain = run(6, 0);
  for (int every : {1, 2, 3, 6}) {
    const auto got = run(6, every);
    for (size_t i = 0; i < plain.size(); ++i) CHECK(difference(got[i], plain[i]) == "");
  }
}

TEST_CASE("nested checkpoints, second order and the streams afterwards") {
  const Net net(4);
  const auto value = [&](bool outer, bool inner, bool second) {
    manual_seed(5);
    const Tensor x = randn({4, 16}).requires_grad_();
    const SingleFunction two = [&](const Tensor& t) {
      const SingleFunction one = [&](const Tensor& u) { return net.block(1, u); };
      const Tensor a = net.block(0, t);
      return net.block(2, inner ? checkpoint(one, a) : one(a));
    };
    const Tensor y = outer ? checkpoint(two, x) : two(x);
    if (!second) return grad(sum(y * y), {x})[x];
    const Tensor g = grad(sum(y * y), {x}, {.create_graph = true})[x];
    return grad(sum(g * g), {x})[x];
  };
  for (bool second : {false, true}) {
    const Tensor plain = value(false, false, second);
    CHECK(difference(value(true, false, second), plain) == "");
    CHECK(difference(value(true, true, second), plain) == "");
  }
  value(true, true, false);
  const i64 after = static_cast<i64>(current_generator().count("dropout"));
  value(false, false, false);
  CHECK(static_cast<i64>(current_generator().count("dropout")) == after);
}

TEST_CASE("memory: sqrt(n) checkpoints keep a fraction of the values") {
  const auto peak = [](int every) {
    release_cache();
    reset_peak();
    const i64 before = memory_counters().bytes_live;
    run(16, every, 2048);
    return memory_counters().bytes_peak - before;
  };
  const i64 plain = peak(0), check = peak(4);
  CHECK(check < plain * 3 * 4 / 16 + plain / 16);
}

TEST_CASE("what a checkpoint refuses") {
  int calls = 0;
  const Tensor x = make<double>({3}, {1, 2, 3}).requires_grad_();
  const SingleFunction moody = [&](const Tensor& t) { 
    const Tensor part = t.narrow(0, 0, ++calls == 1 ? 3 : 2);
    return sum(part * part);
  };
  CHECK(has(error_text([&] { checkpoint(moody, x).backward(); }),
            "checkpoint: the function is not deterministic: saved value 0 was [3] f64, now [2] f64"));
  const Tensor changed = make<double>({2}, {1, 2}).requires_grad_();
  const Tensor y = checkpoint([](const Tensor& t) { return exp(t * t); }, changed);
  {
    const NoGrad off;
    changed.add_(1);
  }
  CHECK(has(error_text([&] { sum(y).backward(); }), "input 0 ([2] f64) was changed in place since the forward pass (version 0, now 1)"));
}

TEST_CASE("C31 200,000 chained ops inside checkpoints are freed without recursion") {
  const i64 nodes = Node::live();
  {
    const Tensor x = make<double>({1}, {1}).requires_grad_();
    const Tensor y = checkpoint([](Tensor t) {
      for (int i = 0; i < 20000; ++i) t = t * 1.0;
      return t;
    }, x);
    y.backward();
    CHECK(x.grad().item<double>() == 1);
  }
  CHECK(Node::live() == nodes);
}

}  // namespace waymark::test
