// Reuse of buffers: an op may write into an rvalue input that nobody else can see, and never into anything else.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/tensors.h"

namespace waymark::test {

TEST_CASE("an rvalue's buffer is taken over; a named variable's, a shared or a viewed one never") {
  const Tensor a = make<float>({3}, {1, 2, 3}), b = make<float>({3}, {4, 5, 6});
  {
    Tensor t = a + b;
    const void* memory = t.raw();
    const Tensor taken = std::move(t) * 2;
    CHECK(taken.raw() == memory);
    CHECK(taken.to_vector<float>() == std::vector<float>{10, 14, 18});
  }
  {
    const Tensor named = a + b;
    const Tensor r = named * 2;
    CHECK(r.raw() != named.raw());
    CHECK(named.to_vector<float>() == std::vector<float>{5, 7, 9});
  }
  {
    Tensor t = a + b;
    const Tensor other = t;              // a second handle
    CHECK((std::move(t) * 2).raw() != other.raw());
    CHECK(other.to_vector<float>() == std::vector<float>{5, 7, 9});
  }
  {
    Tensor t = a + b;
    const Tensor view = t.view({3, 1});  // a second storage user
    CHECK((std::move(t) * 2).raw() != view.raw());
    CHECK(view.to_vector<float>() == std::vector<float>{5, 7, 9});
  }
  {
    Tensor t = make<float>({3}, {1, 2, 3}).requires_grad_();
    Tensor y = t * t;                    // history: the rule of exp reads its output, mul its inputs
    const void* memory = y.raw();
    CHECK((std::move(y) * t).raw() != memory);
  }
}

TEST_CASE("a user's memory is never taken over") {
  float mine[3] = {1, 2, 3};
  Tensor t = from_blob(mine, {3});
  const Tensor r = std::move(t) * 2;
  CHECK(r.raw() != reinterpret_cast<std::byte*>(mine));
  CHECK(mine[2] == 3);
  const Tensor kept = from_blob(mine, {3}).detach();
  CHECK(exp(Tensor(kept)).raw() != kept.raw());
  CHECK(mine[0] == 1);
}

TEST_CASE("with reuse and without it the bits are equal") {
  const auto run = [](bool reuse) {
    const bool before = std::exchange(thread_state().reuse_buffers, reuse);
    const Tensor x = make<double>({4}, {0.3, -1.2, 2.5, 0.7}).requires_grad_();
    const Tensor y = (tanh(x * 2 + 1) * sigmoid(x) - exp(-x) / (x * x + 3)).sum();
    const Tensor g = grad(y, {x}, {.create_graph = true})[x];
    (g * g).sum().backward();
    thread_state().reuse_buffers = before;
    return std::pair{g.detach(), x.grad()};
  };
  const auto with = run(true), without = run(false);
  CHECK(difference(with.first, without.first) == "");
  CHECK(difference(with.second, without.second) == "");
}

TEST_CASE("in steady state a step asks the system for no memory") {
  const Tensor w = make_empty({64, 3}, kF32).fill_(0.5).requires_grad_();
  const auto step = [&] {
    w.set_grad({});
    ((w * w + 1) / 2).sum().backward();
  };
  for (int i = 0; i < 3; ++i) step();
  const i64 before = memory_counters().allocations;
  for (int i = 0; i < 20; ++i) step();
  CHECK(memory_counters().allocations == before);
}

}  // namespace waymark::test
