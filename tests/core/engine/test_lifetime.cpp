// How long graphs live: chains of any length, loops that keep losses, hooks that hold their tensor, cycles.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/checkpoint.h"
#include "core/inspect/counters.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/small_stack.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

namespace waymark::test {
namespace {

int chain_length() { return by_level(20000, 200000, 200000); }

// Nodes, storages and tensors are as many after f as before.
void leaves_nothing(const std::function<void()>& f) {
  const i64 nodes = Node::live(), storages = Storage::live(), tensors = TensorImpl::live();
  f();
  CHECK(Node::live() == nodes);
  CHECK(Storage::live() == storages);
  CHECK(TensorImpl::live() == tensors);
}

constexpr OpInfo kHolder{.name = "holder", .doc = "the identity, whose rule holds a tensor in its closure",
                         .schema = "holder(Tensor input) -> Tensor", .formula = "y = x", .rule = "dx = g"};
Tensor holder(Arg x) {
  return record(kHolder, alias(*x), {x}, [&](Saver&) {
    return [kept = *x](Tensor g, const Need&) -> Grads { return {kept.defined() ? g : Tensor()}; };
  });
}

}  // namespace

TEST_CASE("C31 long chains run backward and are freed with a stack of 512 KiB") {
  const int n = chain_length();
  struct Chain {
    const char* name;
    std::function<Tensor(Tensor)> link;
  };
  const Tensor nothing = zeros({0, 1}, kF64).requires_grad_(), two = make<double>({1}, {1});
  const std::vector<Chain> chains{
      {"additions", [](const Tensor& t) { return t + 1; }},
      {"saved values", [&](const Tensor& t) { return t * two; }},
      {"saved outputs", [](const Tensor& t) { return exp(t * 0.0); }},
      {"closures", [](const Tensor& t) { return holder(t); }},
      {"views", [](const Tensor& t) { return t.view({1}); }},
      {"cat", [&](const Tensor& t) { return cat({t.view({1, 1}), nothing}, 0).view({1}); }},
      {"in place", [](const Tensor& t) { t.add_(1); return t; }},
  };
  for (const Chain& c : chains) {
    const std::string name = c.name;
    CAPTURE(name);
    leaves_nothing([&] {
      with_small_stack([&] {
        const Tensor x = leaf({1});
        Tensor y = x * 1.0;
        for (int i = 0; i < n; ++i) y = c.link(y);
        y.backward();
        if (!x.grad().defined()) throw std::runtime_error("no gradient");
        // A graph that never runs is freed as well.
        Tensor idle = x * 1.0;
        for (int i = 0; i < n; ++i) idle = c.link(idle);
      });
      nothing.set_grad({});
    });
  }
  leaves_nothing([&] {
    with_small_stack([&] {
      const Tensor x = leaf({1});
      const Tensor y = checkpoint([&](Tensor t) {
        for (int i = 0; i < n; ++i) t = tanh(t);
        return t;
      }, x);
      y.backward();
      if (!x.grad().defined()) throw std::runtime_error("no gradient");
    });
  });
  leaves_nothing([&] {
    with_small_stack([&] {  // wide: one node with many inputs, and a tree
      const Tensor x = leaf({1});
      std::vector<Tensor> parts(static_cast<size_t>(n / 10), x);
      for (Tensor& p : parts) p = p + 1;
      while (parts.size() > 1) {
        std::vector<Tensor> next;
        for (size_t i = 0; i < parts.size(); i += 100)
          next.push_back(cat(std::vector<Tensor>(parts.begin() + static_cast<std::ptrdiff_t>(i),
                                                 parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), i + 100))), 0));
        parts = std::move(next);
      }
      parts[0].sum().backward();
      if (x.grad().item<double>() != n / 10) throw std::runtime_error("wrong gradient");
    });
  });
}

TEST_CASE("C32 a loop that keeps losses is seen, with the line that made them") {
  leaves_nothing([] {
    const Tensor w = leaf({2});
    inspect::GrowthWatch watch;
    Tensor total = zeros({1}, kF64);
    std::vector<std::string> warnings;
    const i64 before = inspect::counters().live_nodes;
    int line = 0;
    for (int step = 0; step < 1000; ++step) {
      line = __LINE__; total = total + w * w;
      if (const auto text = watch.after_step()) warnings.push_back(*text);
    }
    CHECK(inspect::counters().live_nodes == before + 2000);
    REQUIRE(warnings.size() == 1);
    CHECK(has(warnings[0], "graph nodes that stay alive grew in 20 steps in a row, to "));
    CHECK(has(warnings[0], fmt::format("(test_lifetime.cpp:{}): 42 nodes", line)));  // 21 steps of two
    CHECK(has(warnings[0], "keep loss.item<double>()"));
    const inspect::LiveGraphs alive = inspect::live_graphs();
    REQUIRE(!alive.graphs.empty());
    CHECK(alive.graphs[0].op == "add");
    CHECK(alive.graphs[0].place == fmt::format("test_lifetime.cpp:{}", line));
    CHECK(alive.graphs[0].nodes == 2000);
    CHECK(alive.graphs[0].age == 0);
    CHECK(alive.graphs[0].bytes == 8);  // w, saved a thousand times and counted once
    total = Tensor();
    CHECK(inspect::counters().live_nodes == before);
    // The same with numbers instead of graphs: no warning.
    inspect::GrowthWatch quiet;
    double sum = 0;
    for (int step = 0; step < 50; ++step) {
      sum += (w * w).sum().item<double>();
      CHECK(!quiet.after_step());
    }
    CHECK(sum == 200);
  });
}

TEST_CASE("C32 create_graph in a loop leaves nothing behind") {
  leaves_nothing([] {
    const Tensor w = leaf({1.5});
    for (int step = 0; step < 100; ++step) {
      const Tensor loss = exp(w * w).sum();
      const GradMap map = loss.backward({.create_graph = true});
      CHECK(!w.grad().requires_grad());  // a .grad with history would be a cycle
      CHECK(map[w].requires_grad());
      grad(map[w].sum(), {w});
      w.set_grad({});
    }
  });
  leaves_nothing([] {  // so would the kept gradient of a watched value
    const Tensor w = leaf({1.5});
    const Tensor y = w * w;
    y.retain_grad();
    const GradMap map = exp(y).sum().backward({.create_graph = true});
    CHECK(!y.grad().requires_grad());
    CHECK(y.grad().item<double>() == doctest::Approx(std::exp(2.25)));
  });
}

TEST_CASE("C32 hooks that hold their tensor: freed once backward has run; a leaf's own is listed") {
  leaves_nothing([] {
    const Tensor x = leaf({3});
    const Tensor y = x * x;
    y.register_hook([y](const Tensor& g) { return g * y.detach(); });
    y.sum().backward();
    CHECK(x.grad().item<double>() == 54);
  });
  const i64 storages = Storage::live();
  Tensor x = leaf({3, 4});
  set_name(x, "net.weight");
  HookHandle handle = x.register_hook([x](const Tensor&) { return Tensor(); });
  const auto listed = [] {
    std::string text;
    for (const inspect::SelfHeldLeaf& l : inspect::live_graphs().leaves) text += fmt::format("{} {} {};", l.name, l.shape, l.only);
    return text;
  };
  CHECK(listed() == "net.weight [2] false;");
  x = Tensor();
  CHECK(listed() == "net.weight [2] true;");
  CHECK(has(inspect::live_graphs().to_string(), "leaf net.weight [2] is held by its own hook alone"));
  CHECK(Storage::live() == storages + 1);
  handle.remove();  // the cycle opens
  CHECK(listed().empty());
  CHECK(Storage::live() == storages);
}

TEST_CASE("C65 a saved output is no cycle") {
  leaves_nothing([] {
    const Tensor x = leaf({1, 2});
    const Tensor y = exp(sigmoid(tanh(x)));
    const Tensor twice = y * y;
  });
  leaves_nothing([] {  // nor does an in-place op close one
    const Tensor x = leaf({1, 2});
    const Tensor y = exp(x);
    y.mul_(y);
    y.add_(x);
  });
  leaves_nothing([] {  // nor hooks and watches of a graph that never runs
    const Tensor x = leaf({1, 2});
    const Tensor y = exp(x);
    y.watch("y");
    y.register_hook([](const Tensor&) { return Tensor(); });
  });
}

TEST_CASE("C66 2,000 selects of one tensor: one buffer of zeros, linear work") {
  const i64 rows = by_level(200, 2000, 2000);
  const Tensor x = make_empty({rows, 512}, kF32).fill_(1).requires_grad_();
  Tensor total;
  for (i64 t = 0; t < rows; ++t) total = total.defined() ? total + x[t].sum() : x[t].sum();
  const i64 live = inspect::counters().bytes_live, ops = inspect::counters().ops_recorded;
  inspect::reset_peak();
  total.backward();
  CHECK(inspect::counters().bytes_peak - live <= 3 * x.nbytes());
  CHECK(inspect::counters().ops_recorded - ops <= 8 * rows);
  CHECK(x.grad().sum().item<float>() == static_cast<float>(rows * 512));
}

TEST_CASE("counters and living graphs: each saved storage once, shared parts with the youngest") {
  const inspect::Counters before = inspect::counters();
  const Tensor x = leaf({1, 2, 3});
  const Tensor shared = exp(x);              // keeps its output
  const Tensor a = shared * shared;          // keeps the same storage
  const Tensor b = (shared + 1).view({3, 1});
  const inspect::Counters now = inspect::counters();
  CHECK(now.live_nodes - before.live_nodes == 4);
  CHECK(now.ops_recorded - before.ops_recorded == 4);
  CHECK(now.bytes_saved - before.bytes_saved == 24);
  CHECK(now.live_storages - before.live_storages == 4);
  CHECK(now.live_tensors - before.live_tensors >= 5);
  const auto graphs = inspect::live_graphs().graphs;
  REQUIRE(graphs.size() >= 2);
  CHECK(graphs[0].op == "view");
  CHECK(graphs[0].nodes == 3);               // view, add, exp
  CHECK(graphs[1].op == "mul");
  CHECK(graphs[1].nodes == 1);
  CHECK(graphs[1].age == 2);
  a.sum().backward();
  CHECK(inspect::counters().bytes_saved == before.bytes_saved);
  CHECK(has(inspect::live_graphs().to_string(), "view #"));
}

}  // namespace waymark::test
