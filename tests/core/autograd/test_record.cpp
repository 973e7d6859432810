// record, Saver, OpInfo: a user's own op, what it keeps, and what a wrong rule is told.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/engine/checkpoint.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

// A small plug-in: an op that the library does not have, in one place, listed nowhere.
constexpr OpInfo kSoftThreshold{.name = "soft_threshold", .doc = "shrinks towards 0 by t",
                                .schema = "soft_threshold(Tensor input, float t) -> Tensor",
                                .formula = "y = sign(x)·max(|x| − t, 0)", .rule = "dx = g where |x| > t",
                                .saves = {{"input", For{0}}}, .kinks = "|x| = t"};
int factories_run = 0;
Tensor soft_threshold(Arg x, double t) {
  Tensor value;
  {
    const NoGrad off;
    value = sign(*x) * clamp(abs(*x) - t, 0.0, std::nullopt);
  }
  return record(kSoftThreshold, value, {x}, [&](Saver& s) {
    ++factories_run;
    return [x = s.input(0), t](Tensor g, const Need&) -> Grads { return {where(abs(*x) > t, g, 0)}; };
  }, [&](Attrs& a) { a("t", t); });
}

// y = 2x with a rule that returns whatever `gradient` makes of g.
constexpr OpInfo kOdd{.name = "odd", .doc = "twice", .schema = "odd(Tensor input) -> Tensor", .formula = "y = 2x", .rule = "dx = 2g"};
Tensor odd(Arg x, std::function<Grads(Tensor)> gradient) {
  Tensor value;
  {
    const NoGrad off;
    value = *x * 2;
  }
  return record(kOdd, value, {x}, [&](Saver&) {
    return [gradient](Tensor g, const Need&) -> Grads { return gradient(std::move(g)); };
  });
}

}  // namespace

TEST_CASE("a user's own op: gradcheck, second order, card, and no cost where no gradient is wanted") {
  const Tensor x = leaf({-2, -0.3, 0.4, 1.5});
  const TensorFunction f = [](const std::vector<Tensor>& v) { return std::vector<Tensor>{soft_threshold(v[0], 0.7) * v[0]}; };
  CHECK(gradcheck(f, {x}).message == "");
  CHECK(gradgradcheck(f, {x}).message == "");
  factories_run = 0;
  soft_threshold(make<double>({1}, {1}), 0.5);
  {
    const NoGrad off;
    soft_threshold(x, 0.5);
  }
  CHECK(factories_run == 0);
  BackwardRun run(soft_threshold(x, 0.5).sum());
  CHECK(run.until("soft_threshold"));
  run.step();
  CHECK(has(run.current().to_string(), "dx = g where |x| > t"));
  CHECK(has(run.current().to_string(), "saved  input [4] f64   32 B   version 0/0"));
}

TEST_CASE("a wrong rule is told what is wrong with it") {
  const Tensor x = leaf({1, 2, 3});
  CHECK(has(error_text([&] { odd(x, [](Tensor) { return Grads{make<double>({2}, {1, 1})}; }).sum().backward(); }),
            "odd: the rule returned a gradient of shape [2] for input 0 of shape [3]"));
  CHECK(has(error_text([&] { odd(x, [](Tensor) { return Grads{make<i64>({3}, {1, 1, 1})}; }).sum().backward(); }),
            "odd: the rule returned a gradient of dtype i64 for input 0; gradients are f32 or f64"));
  CHECK(has(error_text([&] { odd(x, [](Tensor g) { return Grads{g, g}; }).sum().backward(); }),
            "odd: the rule returned 2 gradients for 1 inputs"));
  // A gradient for positions, which have none.
  const Tensor where = make<i64>({3}, {0, 1, 2});
  const Tensor wrong = record(kOdd, x.detach() * 2, {x, where}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {g, g}; };
  });
  CHECK(has(error_text([&] { wrong.sum().backward(); }), "odd: the rule returned a gradient for input 1, which is no float tensor and has none"));
  // The edge casts between floats and sums what broadcasting added.
  odd(x, [](Tensor) { return Grads{make<float>({2, 3}, {1, 2, 3, 10, 20, 30})}; }).sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{11, 22, 33});
  CHECK(x.grad().dtype() == kF64);
}

TEST_CASE("an undefined gradient is not zero: nothing runs upstream") {
  const Tensor x = leaf({1});
  const Tensor y = x * 3;
  bool ran = false;
  y.register_hook([&](const Tensor&) { ran = true; return Tensor(); });
  const GradMap map = odd(y, [](Tensor) { return Grads{Tensor()}; }).sum().backward();
  CHECK(!ran);
  CHECK(!map.contains(x));
  CHECK(!x.grad().defined());
}

TEST_CASE("nothing is saved for inputs that need no gradient; saved outputs make no cycle") {
  const Tensor x = leaf({1, 2}), constant = make<double>({2}, {3, 4});
  const Edge product = edge_of(x * constant);
  REQUIRE(product.node);
  REQUIRE(product.node->saved.size() == 1);      // the constant, for x's gradient; not x
  CHECK(product.node->saved[0].index == 1);
  const i64 nodes = Node::live(), storages = Storage::live(), tensors = TensorImpl::live();
  { const Tensor y = exp(exp(x)); }
  CHECK(Node::live() == nodes);
  CHECK(Storage::live() == storages);
  CHECK(TensorImpl::live() == tensors);
}

TEST_CASE("C41 every error in backward names the forward line, for functions, operators and methods") {
  const Tensor x = leaf({2});
  const Scope scope("net.head");
  const auto check = [&](const Tensor& y, int line, const std::function<void()>& f) {
    try {
      f();
      FAIL_CHECK("no error for line " << line);
    } catch (const Error& e) {
      CHECK(has(e.what(), fmt::format("test_record.cpp:{}", line)));
      CHECK(e.scope() == "net.head");
      CHECK(e.loc().line == line);
      CHECK(std::string(e.loc().name()) == "test_record.cpp");
    }
    static_cast<void>(y);
  };
  const auto freed = [&](const Tensor& y, int line) { check(y, line, [&] { y.backward(); y.backward(); }); };
  Tensor y;
  y = exp(x); freed(y, __LINE__);
  y = x * x; freed(y, __LINE__);
  y = x.exp(); freed(y, __LINE__);
  y = 1 / (x * x); freed(y, __LINE__);
  y = -(x.tanh()); freed(y, __LINE__);
  // A saved value that was changed.
  y = x.sigmoid(); const int changed = __LINE__;
  y.detach().add_(1);
  check(y, changed, [&] { y.backward(); });
  // A wrong rule, an error inside a rule, an error in a hook.
  y = odd(x, [](Tensor) { return Grads{make<i64>({1}, {1})}; }); check(y, __LINE__, [&] { y.backward(); });
  y = odd(x, [](Tensor g) { return Grads{matmul(g, g.view({1, 1, 1}).expand({1, 2, 3}))}; }); check(y, __LINE__, [&] { y.backward(); });
  y = x * 3; const int hooked = __LINE__;
  y.register_hook([](const Tensor&) -> Tensor { fail("mine", "no"); });
  check(y, hooked, [&] { y.backward(); });
  // In a recomputation.
  y = checkpoint([](const Tensor& t) { return exp(t * t); }, y.detach().requires_grad_()); const int again = __LINE__;
  y.backward();
  check(y, again, [&] { y.backward(); });
}

TEST_CASE("scopes are kept") {
  const Tensor x = leaf({2});
  Tensor y;
  {
    const Scope scope("encoder.ffn");
    y = x.exp();
  }
  BackwardRun run(y);
  run.step();
  CHECK(run.current().scope == "encoder.ffn");
}

}  // namespace waymark::test
