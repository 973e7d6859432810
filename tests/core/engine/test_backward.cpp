// BackwardRun: values, order, commit, hooks, errors.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <thread>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

using namespace waymark;

namespace {

Tensor vec(std::initializer_list<double> v, bool grad = true) {
  Tensor t = make_empty({static_cast<i64>(v.size())}, kF64);
  std::copy(v.begin(), v.end(), t.data<double>());
  if (grad) t.requires_grad_();
  return t;
}
std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }
using V = std::vector<double>;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("gradients of a small expression") {
  Tensor x = vec({1, 2, 3}), y = vec({4, 5, 6});
  Tensor loss = (x * y + x / y).sum();
  loss.backward();
  CHECK(values(x.grad())[0] == doctest::Approx(4 + 0.25));
  CHECK(values(y.grad())[1] == doctest::Approx(2 - 2.0 / 25));
}

TEST_CASE("broadcasting is undone at the edge") {
  Tensor a = vec({1, 2, 3}), b = vec({10});
  (a.view({3, 1}) * b).sum().backward();
  CHECK(a.grad().shape() == Shape{3});
  CHECK(values(b.grad()) == V{6});
}

TEST_CASE("each node runs once, whatever the number of paths") {
  Tensor x = vec({1});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = y + y;
  BackwardRun run(y);
  CHECK(run.total() == 60);
  run.finish();
  CHECK(values(x.grad())[0] == std::pow(2.0, 60));
}

TEST_CASE("a leaf's gradient accumulates, and earlier handles see it") {
  Tensor x = vec({1, 1});
  (x * 2).sum().backward();
  const Tensor handle = x.grad();
  (x * 3).sum().backward();
  CHECK(values(handle) == V{5, 5});
}

TEST_CASE("only finish() commits") {
  Tensor x = vec({2});
  BackwardRun run((x * x).sum());
  while (run.step()) {}
  CHECK(!x.grad().defined());
  CHECK(values(run.grads()[x]) == V{4});
  run.finish();
  CHECK(values(x.grad()) == V{4});
}

TEST_CASE("a seed never shares memory with .grad, and is not changed") {
  Tensor x = vec({1, 2}), seed = vec({3, 4}, false);
  (x + 0).backward(seed);
  CHECK(overlap_of(x.grad(), seed) == Overlap::none);
  x.grad().zero_();
  CHECK(values(seed) == V{3, 4});
}

TEST_CASE("hooks: order, replacement, private buffers") {
  Tensor x = vec({2});
  Tensor y = x * x;
  std::vector<double> seen;
  y.register_hook([&](const Tensor& g) { seen.push_back(g.item<double>()); return Tensor(); });
  y.register_hook([&](const Tensor& g) { return g * 10; });
  y.retain_grad();
  HookHandle gone = y.register_hook([&](const Tensor&) -> Tensor { throw std::runtime_error("removed hooks do not run"); });
  gone.remove();
  x.register_hook([&](const Tensor& g) { seen.push_back(g.item<double>()); return g * 2; });
  y.sum().backward();
  CHECK(seen == V{1, 40});
  CHECK(values(y.grad()) == V{10});
  CHECK(values(x.grad()) == V{80});

  // z = x + y: editing one gradient in place leaves the other edge alone.
  Tensor a = vec({1, 1}), b = vec({1, 1});
  a.register_hook([](const Tensor& g) { g.mul_(7); return Tensor(); });
  (a + b).sum().backward();
  CHECK(values(a.grad()) == V{7, 7});
  CHECK(values(b.grad()) == V{1, 1});
}

TEST_CASE("a saved value that was changed in place is an error that names both ops") {
  Tensor x = vec({1, 2, 3});
  Tensor y = x.exp();
  Tensor z = y * y;
  {
    const NoGrad off;
    y.add_(1);
  }
  const std::string text = error_of([&] { z.sum().backward(); });
  CHECK(text.find("as it was at version 0, but add_ wrote to it (version 1)") != std::string::npos);
  CHECK(text.find("output of exp #") != std::string::npos);
  CHECK(text.find("clone() before the change") != std::string::npos);
  CHECK(text.find("test_backward.cpp:") != std::string::npos);
  CHECK(!x.grad().defined());
}

TEST_CASE("a second backward needs retain_graph, unless nothing was saved") {
  Tensor x = vec({3});
  Tensor linear = (x + 1).sum();
  linear.backward();
  linear.backward();
  CHECK(values(x.grad()) == V{2});
  Tensor square = (x * x).sum();
  square.backward();
  const std::string text = error_of([&] { square.backward(); });
  CHECK(text.find("its saved values were freed by the first backward; pass retain_graph = true there") != std::string::npos);
  CHECK(text.rfind("mul #", 0) == 0);
}

TEST_CASE("errors of backward and grad") {
  Tensor m = vec({1, 2});
  CHECK(error_of([&] { (m * 2).backward(); }) ==
        "backward: the root has shape [2]; pass a seed of that shape or reduce it, for example mean()");
  CHECK(error_of([&] { (m.detach() * 2).sum().backward(); }).rfind("backward: the root does not require grad: its history ends at detach (test_backward.cpp:", 0) == 0);
  CHECK(error_of([&] { vec({1}, false).backward(); }) == "backward: the root does not require grad: no input of its ops does");
  Tensor other = vec({1});
  set_name(other, "position.table");
  CHECK(error_of([&] { grad((m * 2).sum(), {m, other}); }) ==
        "grad: input 1 (\"position.table\", [1]) was not used to compute the root; pass allow_unused = true if that is intended");
  CHECK(grad((m * 2).sum(), {m, other}, {.allow_unused = true}).size() == 1);
  Tensor inner = m * 2;
  CHECK(error_of([&] { inner.grad(); }).rfind("grad(): this is the output of mul #", 0) == 0);
}

TEST_CASE("grad of an inner tensor, and of the gradient") {
  Tensor x = vec({3});
  Tensor y = x * x;
  Tensor z = (y * y).sum();
  CHECK(values(grad(z, {y}, {.retain_graph = true})[y]) == V{18});
  const Tensor g = grad(z, {x}, {.create_graph = true})[x];
  CHECK(values(g) == V{108});
  CHECK(values(grad(g.sum(), {x})[x]) == V{108});  // 12 x²
  CHECK(!x.grad().defined());
}

TEST_CASE("gradcheck accepts right rules and finds a wrong one") {
  Tensor x = vec({0.5, -1.25, 2}), y = vec({1.5, 2, -0.75});
  const TensorFunction right = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{v[0] * v[1] / (v[1] * v[1] + 1)}; };
  CHECK(gradcheck(right, {x, y}).message == "");
  CHECK(gradgradcheck(right, {x, y}).message == "");
  static constexpr OpInfo kWrong{.name = "wrong", .doc = "a rule that is off by 1 %", .schema = "wrong(Tensor input) -> Tensor",
                                 .formula = "y = x²", .rule = "dx = 2.02·g·x"};
  const TensorFunction wrong = [](const std::vector<Tensor>& v) {
    Tensor value;
    { const NoGrad off; value = v[0] * v[0]; }
    return std::vector<Tensor>{record(kWrong, value, {Arg(v[0])}, [](Saver& s) {
      return [a = s.input(0)](Tensor g, const Need&) -> Grads { return {g * *a * 2.02}; };
    })};
  };
  CHECK(!gradcheck(wrong, {x}));
}

TEST_CASE("T selects of one tensor share one buffer") {
  Tensor x = make_empty({200, 512}, kF32);
  x.zero_();
  x.requires_grad_();
  Tensor total;
  for (i64 t = 0; t < 200; ++t) total = total.defined() ? total + x[t].sum() : x[t].sum();
  const i64 live = memory_counters().bytes_live;
  reset_peak();
  total.backward();
  CHECK(memory_counters().bytes_peak - live < 3 * x.nbytes());
  CHECK(x.grad().sum().item<float>() == 200 * 512);
}

TEST_CASE("200,000 chained ops: backward and freeing with a small stack") {
  std::exception_ptr error;
  const auto work = [&] {
    try {
      const i64 nodes = Node::live();
      {
        Tensor x = vec({1});
        Tensor y = x;
        for (int i = 0; i < 200000; ++i) y = y + 1;
        y.backward();
        if (x.grad().item<double>() != 1) throw std::runtime_error("wrong gradient");
      }
      if (Node::live() != nodes) throw std::runtime_error("nodes leak");
    } catch (...) {
      error = std::current_exception();
    }
  };
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 512 * 1024);
  pthread_t thread;
  auto body = [](void* f) -> void* { (*static_cast<decltype(work)*>(f))(); return nullptr; };
  REQUIRE(pthread_create(&thread, &attr, body, const_cast<void*>(static_cast<const void*>(&work))) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attr);
  CHECK(error == nullptr);
}

TEST_CASE("stepping, cards and rewinding") {
  Tensor x = vec({0.5, -1});
  set_name(x, "x");
  Tensor loss = (x.tanh() * x).sum();
  BackwardRun run(loss, {.rewindable = true});
  CHECK(run.until("tanh"));
  CHECK(run.index() == 2);
  CHECK(std::string(run.next()->op->name) == "tanh");
  run.step();
  const NodeCard card = run.current();
  CHECK(card.op == "tanh");
  CHECK(card.outgoing.at(0).to == "x");
  CHECK(card.outgoing.at(0).arrived == 2);
  CHECK(card.to_string().find("dx = g·(1 − y²)") != std::string::npos);
  const V before = values(run.grads()[x]);
  run.rewind(1);
  CHECK(run.index() == 1);
  while (run.step()) {}
  CHECK(values(run.grads()[x]) == before);
  run.finish();
  CHECK(values(x.grad()) == before);
}
