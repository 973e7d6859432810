// Checkpointing: the same bits with less memory, the same draws, nesting, and what it refuses.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/checkpoint.h"
#include "core/inspect/counters.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dropout.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/pointwise.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

using inspect::counters;

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
  const std::string text = error_text([&] { sum(y).backward(); });
  CHECK(has(text, "checkpoint: backward needs input 0 ([2] f64) as it was at version 0, but add_ wrote to it (version 1)\n  add_ at test_checkpoint.cpp:"));
  CHECK(has(text, "\n  clone() before the change\n  in backward of exp #"));
  // Fewer values, and a function that is not there.
  int runs = 0;
  const Tensor z = checkpoint([&](const Tensor& t) { return ++runs == 1 ? exp(tanh(t)) : exp(t); }, x);
  CHECK(has(error_text([&] { sum(z).backward(); }), "checkpoint: the function is not deterministic: it kept 2 values, now 1"));
  CHECK(error_text([&] { checkpoint(SingleFunction(), x); }) == "checkpoint: the function is empty");
}

TEST_CASE("a parameter that an optimizer changed between forward and backward is seen") {
  const Tensor x = make<double>({2}, {1, 2}).requires_grad_(), w = make<double>({2}, {3, 4}).requires_grad_();
  const auto refused = [&](const Tensor& y) {
    {
      const NoGrad off;
      w.sub_(0.1);
    }
    return has(error_text([&] { sum(y).backward(); }), "as it was at version");
  };
  CHECK(refused(checkpoint([&](const Tensor& t) { return t * w; }, x)));
  const TupleFunction product = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{tanh(v[0]) * v[1]}; };
  CHECK(refused(checkpoint(product, {x, w})[0]));
  CHECK(refused(checkpoint([&](const Tensor& t) { return checkpoint(product, {t * 2, w})[0]; }, x)));
}

TEST_CASE("in-place ops, random ops, views, hooks and several inputs inside a checkpoint") {
  const TupleFunction f = [](const std::vector<Tensor>& v) {
    const Tensor a = v[0] * v[1];
    a.mul_(2);
    a.narrow(0, 0, 2).add_(v[1].narrow(0, 0, 2));
    const Tensor noise = randn({4}, {.dtype = kF64});
    const Tensor b = dropout(exp(a * 0.1), 0.5) + noise * v[0];
    return std::vector<Tensor>{b, tanh(b) * v[1], v[0]};
  };
  const auto run = [&](bool check, bool second) {
    manual_seed(9);
    const Tensor x = make<double>({4}, {1, -2, 3, 0.5}).requires_grad_(), w = make<double>({4}, {2, 0.5, -1, 3}).requires_grad_();
    const auto y = check ? checkpoint(f, {x, w}) : f({x, w});
    y[0].register_hook([](const Tensor& g) { return g * 3; });
    const Tensor loss = sum(y[0] * y[1]) + sum(y[2]);
    std::vector<Tensor> out;
    const GradMap first = grad(loss, {x, w}, {.create_graph = second});
    for (const Tensor& t : {x, w}) out.push_back(first[t].detach());
    if (second) out.push_back(grad(sum(first[x] * first[w]), {x})[x]);
    return out;
  };
  for (bool second : {false, true}) {
    const auto plain = run(false, second), check = run(true, second);
    for (size_t i = 0; i < plain.size(); ++i) CHECK(difference(check[i], plain[i]) == "");
  }
}

TEST_CASE("the second run has the modes of the first: twins, flushed denormals, the scope") {
  const Tensor x = make<double>({2}, {1, 2}).requires_grad_();
  std::vector<std::string> seen;
  const SingleFunction f = [&](const Tensor& t) {
    seen.push_back(fmt::format("{} {} {} {}", explain_mode(), denormals_flushed(), scope_path(thread_state().scope), grad_enabled()));
    return exp(t * t);
  };
  Tensor y;
  {
    const ExplainMode twins;
    const DenormalGuard flush;
    const Scope scope("net.block");
    y = checkpoint(f, x);
  }
  sum(y).backward();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == "true true net.block true");
  CHECK(seen[1] == seen[0]);
  CHECK(!explain_mode());
  CHECK(!denormals_flushed());
}

TEST_CASE("values that nobody will ask for are not kept, and a run that needs none does not recompute") {
  const Tensor x = make_empty({1 << 16}, kF64).fill_(0.5).requires_grad_();
  int runs = 0;
  const SingleFunction f = [&](const Tensor& t) {
    ++runs;
    const Tensor u = t + 0;
    const Tensor a = exp(u), b = sin(u);
    return a + b;
  };
  {
    const Tensor y = checkpoint(f, x);
    CHECK(counters().bytes_saved == 0);
    CHECK(runs == 1);
    sum(y).backward();
    CHECK(runs == 2);
    CHECK(counters().bytes_saved == 0);
    CHECK(has(error_text([&] { sum(y).backward(); }), "freed by the first backward"));
    CHECK(runs == 2);
  }
  // sin runs first (it is the younger) and fills the value of exp, which is dropped when exp has run.
  const i64 live = counters().bytes_live;
  const Tensor y = checkpoint(f, x);
  {
    BackwardRun run(sum(y));
    CHECK(run.until("sin"));
    CHECK(runs == 3);
    run.step();
    CHECK(runs == 4);
    run.finish();
  }
  CHECK(counters().bytes_live <= live + y.nbytes() + 4096);
}

}  // namespace waymark::test
