// BackwardRun: values, order, commit, hooks, errors.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

namespace waymark::test {

TEST_CASE("gradients of a small expression") {
  Tensor x = leaf({1, 2, 3}), y = leaf({4, 5, 6});
  Tensor loss = (x * y + x / y).sum();
  loss.backward();
  CHECK(values(x.grad())[0] == doctest::Approx(4 + 0.25));
  CHECK(values(y.grad())[1] == doctest::Approx(2 - 2.0 / 25));
}

TEST_CASE("broadcasting is undone at the edge") {
  Tensor a = leaf({1, 2, 3}), b = leaf({10});
  (a.view({3, 1}) * b).sum().backward();
  CHECK(a.grad().shape() == Shape{3});
  CHECK(values(b.grad()) == Numbers{6});
}

TEST_CASE("C55 each node runs once, whatever the number of paths") {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = y + y;
  BackwardRun run(y);
  CHECK(run.total() == 60);
  run.finish();
  CHECK(values(x.grad())[0] == std::pow(2.0, 60));
}

TEST_CASE("C62 a leaf's gradient accumulates, and earlier handles see it; clearing makes it undefined") {
  Tensor x = leaf({1, 1});
  (x * 2).sum().backward();
  const Tensor handle = x.grad();
  (x * 3).sum().backward();
  CHECK(values(handle) == Numbers{5, 5});
  x.set_grad({});
  CHECK(!x.grad().defined());  // undefined, not zero
  CHECK(values(handle) == Numbers{5, 5});
  (x * 7).sum().backward();
  CHECK(values(x.grad()) == Numbers{7, 7});
}

TEST_CASE("only finish() commits") {
  Tensor x = leaf({2});
  BackwardRun run((x * x).sum());
  while (run.step()) {}
  CHECK(!x.grad().defined());
  CHECK(values(run.grads()[x]) == Numbers{4});
  run.finish();
  CHECK(values(x.grad()) == Numbers{4});
}

TEST_CASE("a seed never shares memory with .grad, and is not changed") {
  Tensor x = leaf({1, 2}), seed = f64({3, 4});
  (x + 0).backward(seed);
  CHECK(overlap_of(x.grad(), seed) == Overlap::none);
  x.grad().zero_();
  CHECK(values(seed) == Numbers{3, 4});
}

TEST_CASE("a saved value that was changed in place: the whole message, with both ops, both versions, what to do") {
  Tensor x = leaf({1, 2, 3});
  int first = 0, second = 0, third = 0;
  Tensor y, z;
  {
    const Scope scope("encoder.ffn");
    first = __LINE__; y = x.exp();
    second = __LINE__; z = y * y;
    const NoGrad off;
    third = __LINE__; y.add_(1);
  }
  const u64 exp_seq = meta_of(y)->history.node->seq, mul_seq = meta_of(z)->history.node->seq;
  const Tensor loss = z.sum();
  try {
    loss.backward();
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          fmt::format("mul: backward needs input 1 (output of exp #{}, [3] f64) as it was at version 0, but add_ wrote to it (version 1)\n"
                      "  exp at test_backward.cpp:{} in encoder.ffn; add_ at test_backward.cpp:{} in encoder.ffn\n"
                      "  write y = y + 1, or clone() before the change\n"
                      "  in backward of mul #{} at test_backward.cpp:{} in encoder.ffn",
                      exp_seq, first, third, mul_seq, second));
    CHECK(e.op() == "mul");
    CHECK(e.scope() == "encoder.ffn");
    CHECK(e.loc().line == second);
  }
  CHECK(!x.grad().defined());
}

TEST_CASE("a second backward needs retain_graph, unless nothing was saved") {
  Tensor x = leaf({3});
  Tensor linear = (x + 1).sum();
  linear.backward();
  linear.backward();
  CHECK(values(x.grad()) == Numbers{2});
  const int line = __LINE__ + 1;
  Tensor square = (x * x).sum();
  square.backward();
  const std::string text = error_text([&] { square.backward(); });
  CHECK(text == fmt::format("mul #{} (test_backward.cpp:{}): its saved values were freed by the first backward; pass retain_graph = true there",
                            Node::made() - 1, line));
}

TEST_CASE("C58 a root that is not one element needs a seed of its shape and dtype") {
  Tensor m = leaf({1, 2});
  CHECK(error_text([&] { (m * 2).backward(); }) ==
        "backward: the root has shape [2]; pass a seed of that shape or reduce it, for example mean()");
  CHECK(error_text([&] { (m * 2).backward(f64({1})); }) == "backward: the seed is [1] f64, the root [2] f64; they must agree");
  CHECK(error_text([&] { (m * 2).backward(f64({1, 1}).to(kF32)); }) == "backward: the seed is [2] f32, the root [2] f64; they must agree");
  CHECK(error_text([&] { BackwardRun({(m * 2).sum(), m * 2}); }).starts_with("backward: the root has shape [2];"));
  CHECK(error_text([&] { BackwardRun({m.sum()}, {.seeds = {Tensor(), Tensor()}}); }) == "backward: 2 seeds for 1 roots");
  CHECK(!m.grad().defined());
  (m * 2).backward(f64({1, 3}));
  CHECK(values(m.grad()) == Numbers{2, 6});
}

TEST_CASE("errors of backward and grad") {
  Tensor m = leaf({1, 2});
  CHECK(error_text([&] { (m.detach() * 2).sum().backward(); }).rfind("backward: the root does not require grad: its history ends at detach (test_backward.cpp:", 0) == 0);
  CHECK(error_text([&] { f64({1}).backward(); }) == "backward: the root does not require grad: no input of its ops does");
  Tensor other = leaf({1});
  set_name(other, "position.table");
  CHECK(error_text([&] { grad((m * 2).sum(), {m, other}); }) ==
        "grad: input 1 (\"position.table\", [1]) was not used to compute the root; pass allow_unused = true if that is intended");
  CHECK(grad((m * 2).sum(), {m, other}, {.allow_unused = true}).size() == 1);
  Tensor inner = m * 2;
  CHECK(error_text([&] { inner.grad(); }).rfind("grad(): this is the output of mul #", 0) == 0);
}

TEST_CASE("grad of an inner tensor, and of the gradient") {
  Tensor x = leaf({3});
  Tensor y = x * x;
  Tensor z = (y * y).sum();
  CHECK(values(grad(z, {y}, {.retain_graph = true})[y]) == Numbers{18});
  const Tensor g = grad(z, {x}, {.create_graph = true})[x];
  CHECK(values(g) == Numbers{108});
  CHECK(values(grad(g.sum(), {x})[x]) == Numbers{108});  // 12 x²
  CHECK(!x.grad().defined());
}

TEST_CASE("gradcheck accepts right rules and finds a wrong one") {
  Tensor x = leaf({0.5, -1.25, 2}), y = leaf({1.5, 2, -0.75});
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

TEST_CASE("an error in the commit changes no .grad") {
  Tensor x = leaf({1, 2}), y = leaf({3, 4}), seed = f64({1, 1});
  BackwardRun run(x + y, {.seeds = {seed}});  // both leaves borrow the seed: the commit copies it twice
  while (run.step()) {}
  testing::fail_after(1);
  const std::string text = error_text([&] { run.finish(); });
  testing::fail_after(-1);
  CHECK(text.find("failing allocator") != std::string::npos);
  CHECK(!x.grad().defined());
  CHECK(!y.grad().defined());
}

TEST_CASE("what finish() returns: .grad itself where it was undefined, else what this run computed") {
  Tensor x = leaf({1, 2}), y = leaf({3, 4});
  const GradMap first = (x * y).sum().backward();
  CHECK(first[x].is(x.grad()));
  CHECK(first[y].is(y.grad()));
  const GradMap second = (x * y * 2).sum().backward();
  CHECK(values(second[x]) == Numbers{6, 8});
  CHECK(values(x.grad()) == Numbers{9, 12});
  const GradMap third = (x * y).sum().backward({.create_graph = true});
  CHECK(third[x].requires_grad());
  CHECK(!x.grad().requires_grad());
  // A .grad whose elements share memory, or that is the incoming gradient's own memory, is not written to.
  const Tensor row = f64({1}), seed = f64({5, 6});
  x.set_grad(row.expand({2}));
  (x * 3).sum().backward();
  CHECK(values(x.grad()) == Numbers{4, 4});
  CHECK(values(row) == Numbers{1});
  x.set_grad(seed);
  (x + 0).backward(seed);
  CHECK(values(x.grad()) == Numbers{10, 12});
  CHECK(values(seed) == Numbers{5, 6});
}

TEST_CASE("a run that is finished does nothing more; what it showed on the way stays as it was") {
  Tensor x = leaf({2}), w = leaf({3});
  const Tensor a = x * w, b = x * 2, c = x * 5;
  BackwardRun run((a + b + c).sum());
  std::vector<Tensor> shown;
  while (run.step())
    if (run.grads().contains(x)) shown.push_back(run.grads()[x]);
  Numbers numbers;
  for (const Tensor& t : shown) numbers.push_back(t.item<double>());
  CHECK(numbers == Numbers{5, 7, 10});
  run.finish();
  CHECK(!run.step());
  CHECK(error_text([&] { run.finish(); }) == "backward: this run is finished; make a new one");
  CHECK(values(x.grad()) == Numbers{10});
}

TEST_CASE("grad: an input at which nothing arrives is an Error, or absent") {
  static constexpr OpInfo kNothing{.name = "nothing", .doc = "its rule returns no gradient", .schema = "nothing(Tensor input) -> Tensor",
                                   .formula = "y = x", .rule = "none"};
  Tensor x = leaf({2});
  const auto stop = [](const Tensor& t) {
    return record(kNothing, alias(t), {Arg(t)}, [](Saver&) { return [](Tensor, const Need&) -> Grads { return {Tensor()}; }; });
  };
  CHECK(error_text([&] { grad(stop(x * 2).sum(), {x}); }) ==
        "grad: no gradient arrived at input 0 (a leaf, [1]): the rules on the way returned none; pass allow_unused = true if that is intended");
  CHECK(grad(stop(x * 2).sum(), {x}, {.allow_unused = true}).size() == 0);
  CHECK(error_text([&] { x.set_grad(x); }) == "set_grad: a tensor cannot be its own gradient");
}

TEST_CASE("stepping, cards and rewinding") {
  Tensor x = leaf({0.5, -1});
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
  const Numbers before = values(run.grads()[x]);
  run.rewind(1);
  CHECK(run.index() == 1);
  while (run.step()) {}
  CHECK(values(run.grads()[x]) == before);
  run.finish();
  CHECK(values(x.grad()) == before);
}

}  // namespace waymark::test
