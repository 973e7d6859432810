// Hooks, watched values, and what they may change.
#include <doctest/doctest.h>

#include <thread>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

namespace waymark::test {
TEST_CASE("C42 hooks run in order, see what the one before returned, and change the flow") {
  const Tensor x = leaf({2});
  const Tensor y = x * x;
  Numbers log;
  const auto note = [&](const Tensor& g) { log.push_back(g.item<double>()); return Tensor(); };
  y.register_hook(note);
  y.register_hook([](const Tensor& g) { return g * 10; });
  y.retain_grad();
  y.register_hook(note);
  x.register_hook(note);
  x.register_hook([](const Tensor& g) { return g * 2; });
  y.sum().backward();
  CHECK(log == Numbers{1, 10, 40});
  CHECK(values(y.grad()) == Numbers{10});
  CHECK(values(x.grad()) == Numbers{80});
  // .grad of a non-leaf that nobody watches.
  const Tensor z = x * x;
  CHECK(error_text([&] { z.grad(); }) ==
        "grad(): this is the output of mul #" + std::to_string(Node::made()) + ", not a leaf; call watch(t) before backward");
  z.watch("z");
  CHECK(!z.grad().defined());
  z.sum().backward();
  CHECK(values(z.grad()) == Numbers{1});
  // A leaf before backward: undefined, not zero.
  CHECK(!leaf({1}).grad().defined());
}

TEST_CASE("a hook returns the same shape and dtype, or nothing; its error has a place, and nothing is committed") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const auto refused = [&](const std::function<Tensor(const Tensor&)>& f) {
    const Tensor y = x * w;
    y.register_hook(f);
    const Tensor loss = y.sum();
    return error_text([&] { loss.backward(); });
  };
  const auto first_line = [](const std::string& text) { return text.substr(text.find(" returned")); };
  CHECK(has(first_line(refused([](const Tensor& g) { return g.sum(); })), " returned [] f64 for a gradient of [2] f64\n  in a hook of mul #"));
  CHECK(has(refused([](const Tensor& g) { return g.to(kF32); }), " returned [2] f32 for a gradient of [2] f64"));
  CHECK(has(refused([](const Tensor&) -> Tensor { fail("mine", "no"); }), "mine: no\n  in a hook of mul #"));
  CHECK(has(refused([](const Tensor&) -> Tensor { fail("mine", "no"); }), " at test_hooks.cpp:"));
  HookHandle handle = w.register_hook([](const Tensor&) -> Tensor { fail("mine", "leaf"); });
  set_name(w, "net.w");
  CHECK(error_text([&] { (x * w).sum().backward(); }) == "mine: leaf\n  in a hook of \"net.w\"");
  CHECK(!x.grad().defined());
  CHECK(!w.grad().defined());
  handle.remove();
  // An exception that is none of ours passes through.
  const Tensor y = x * w;
  y.register_hook([](const Tensor&) -> Tensor { throw std::out_of_range("mine"); });
  BackwardRun run(y.sum());
  CHECK_THROWS_WITH_AS(run.finish(), "mine", std::out_of_range);
  CHECK(!w.grad().defined());
  CHECK(has(error_text([&] { run.finish(); }), "this run failed earlier"));
  CHECK(has(error_text([&] { run.step(); }), "this run failed earlier"));
  CHECK(!w.grad().defined());
}

TEST_CASE("handles: removal during a run takes effect from the next tensor, and a handle keeps nothing alive") {
  const Tensor x = leaf({1});
  int second = 0, added = 0;
  HookHandle self, other;
  Tensor y = x * 3;
  self = y.register_hook([&](const Tensor&) {
    self.remove();
    other.remove();
    y.register_hook([&](const Tensor&) { ++added; return Tensor(); });
    return Tensor();
  });
  other = y.register_hook([&](const Tensor&) { ++second; return Tensor(); });
  const Tensor loss = y.sum();
  loss.backward(RunOptions{.retain_graph = true});
  CHECK(second == 1);  // this tensor's hooks had begun
  CHECK(added == 0);
  loss.backward(RunOptions{.retain_graph = true});
  CHECK(second == 1);
  CHECK(added == 1);
  other.remove();  // again: nothing
  const i64 nodes = Node::live();
  {
    Tensor z = x * 3;
    other = z.register_hook([](const Tensor&) { return Tensor(); });
  }
  CHECK(Node::live() == nodes);
  other.remove();
  // Hooks that come and go leave no trace.
  for (int i = 0; i < 100; ++i) x.register_hook([](const Tensor&) { return Tensor(); }).remove();
  CHECK(meta_of(x)->hooks->empty());
}

TEST_CASE("post-accumulate hooks: after all leaves are committed, in the order of the leaves, and they may go") {
  const Tensor a = leaf({1}), b = leaf({2});
  std::string seen;
  HookHandle once;
  once = a.register_post_accumulate_grad_hook([&](const Tensor& t) {
    seen += fmt::format("a {} {};", t.grad().item<double>(), b.grad().defined());
    once.remove();
  });
  b.register_post_accumulate_grad_hook([&](const Tensor& t) {
    seen += fmt::format("b {} {};", t.grad().item<double>(), a.grad().defined());
    if (seen.size() > 20) fail("mine", "late");
  });
  (a * 3 + b * 5).sum().backward();
  CHECK(seen == "a 3 true;b 5 true;");
  seen = "a long text so that the hook throws";
  CHECK(has(error_text([&] { (a * 3 + b * 5).sum().backward(); }), "mine: late"));
  CHECK(values(a.grad()) == Numbers{6});   // the commit stands
  CHECK(values(b.grad()) == Numbers{10});
  CHECK(error_text([&] { (a * 1).register_post_accumulate_grad_hook([](const Tensor&) {}); }).ends_with("not a leaf"));
}

TEST_CASE("kept gradients are private, and follow a tensor that is changed in place") {
  const Tensor x = leaf({1, 2}), seed = make<double>({2}, {1, 10});
  const Tensor y = x + 0, z = y + 0;
  y.retain_grad();
  z.retain_grad();
  z.backward(seed);
  CHECK(overlap_of(y.grad(), seed) == Overlap::none);
  CHECK(overlap_of(y.grad(), z.grad()) == Overlap::none);
  CHECK(overlap_of(y.grad(), x.grad()) == Overlap::none);
  y.grad().zero_();
  CHECK(values(z.grad()) == Numbers{1, 10});
  CHECK(values(x.grad()) == Numbers{1, 10});
  // Retained, then changed in place: the gradient of the value that the tensor has now.
  const Tensor u = leaf({1, 1});
  const Tensor v = u * 2;
  v.watch("v");
  v.mul_(5);
  (v * make<double>({2}, {1, 3})).sum().backward();
  CHECK(values(v.grad()) == Numbers{1, 3});
  CHECK(values(u.grad()) == Numbers{10, 30});
}

TEST_CASE("C25 a hook that edits in place changes one edge only, also when the backward is recorded") {
  for (bool create_graph : {false, true}) {
    CAPTURE(create_graph);
    const Tensor x = leaf({1, 1}), y = leaf({1, 1}), seed = make<double>({2}, {1, 1});
    HookHandle handle = x.register_hook([](const Tensor& g) { g.mul_(7); return Tensor(); });
    const Tensor a = x * 1, b = y * 1;
    a.register_hook([](const Tensor& g) { g.mul_(2); return Tensor(); });
    (a + b).backward(RunOptions{.seeds = {seed}, .create_graph = create_graph});
    CHECK(values(x.grad()) == Numbers{14, 14});
    CHECK(values(y.grad()) == Numbers{1, 1});
    CHECK(values(seed) == Numbers{1, 1});
  }
}

TEST_CASE("C46 rules and hooks run on the caller's thread, in the grad mode of the run") {
  static constexpr OpInfo kWhere{.name = "where_am_i", .doc = "the identity; notes the thread of its rule",
                                 .schema = "where_am_i(Tensor input) -> Tensor", .formula = "y = x", .rule = "dx = g"};
  const Tensor x = leaf({2});
  std::thread::id rule, hook;
  bool recorded = true;
  const Tensor y = record(kWhere, alias(x), {x}, [&](Saver&) {
    return [&](Tensor g, const Need&) -> Grads {
      rule = std::this_thread::get_id();
      return {g};
    };
  });
  y.register_hook([&](const Tensor& g) {
    hook = std::this_thread::get_id();
    recorded = (g * x).requires_grad();
    return Tensor();
  });
  y.backward(RunOptions{.retain_graph = true});
  CHECK(rule == std::this_thread::get_id());
  CHECK(hook == rule);
  CHECK(!recorded);
  y.backward({.create_graph = true});
  CHECK(recorded);
}

TEST_CASE("a hook may run a backward of its own") {
  const Tensor x = leaf({3}), w = leaf({5});
  const Tensor y = x * x;
  y.register_hook([&](const Tensor& g) {
    const EnableGrad on;
    (w * w).sum().backward();
    return g * w.grad();
  });
  y.sum().backward();
  CHECK(values(w.grad()) == Numbers{10});
  CHECK(values(x.grad()) == Numbers{60});
}

}  // namespace waymark::test
