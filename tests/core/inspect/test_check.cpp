// The finite-difference check of one node, and that recorded ops can be called again.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/inspect/check.h"
#include "core/inspect/recorder.h"
#include "core/inspect/replay.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/dropout.h"
#include "core/ops/extremes.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/registry.h"
#include "core/ops/shape.h"
#include "tests/core/inspect/small_model.h"
#include "tests/error_text.h"
#include "tests/ops/instance.h"

using namespace waymark;
using inspect::check_node;
using test::has;
using test::leaf;
using test::make;

namespace {

// The check of the first node of this op in f(x).
template <class F> NodeCheck check_of(const Tensor& x, const char* op, F f) {
  const inspect::Recorder recorder({.keep = inspect::Keep::values, .max_elements = INT64_MAX});
  return check_node(inspect::record(f(x)).node(op).card());
}

}  // namespace

TEST_CASE("check: a right rule passes, a wrong one is found with place and numbers") {
  const Tensor x = leaf({2, 2}, {0.5, -1, 2, 0.25});
  const NodeCheck right = check_of(x, "tanh", [](const Tensor& t) { return (t.tanh() * t).sum(); });
  CHECK(right.possible);
  CHECK(right.passed);
  CHECK(right.compared == 4);
  CHECK(right.max_error < 1e-9);

  static constexpr OpInfo kWrong{.name = "wrong_square", .doc = "a rule with one entry that is off by 1 %",
                                 .schema = "wrong_square(Tensor input) -> Tensor", .formula = "y = x²", .rule = "dx = 2·g·x, but for the last",
                                 .apply = [](OpCall& c) { c.result(c.tensor("input").square()); }};
  const NodeCheck wrong = check_of(x, "wrong_square", [](const Tensor& t) {
    Tensor value;
    {
      const NoGrad off;
      value = t.square();
    }
    return record(kWrong, value, {t}, [](Saver& s) {
             return [a = s.input(0)](Tensor g, const Need&) -> Grads {
               const Tensor d = (g * *a * 2).clone();
               d.data<double>()[3] *= 1.01;
               return {d};
             };
           }).sum();
  });
  CHECK(!wrong.passed);
  CHECK(wrong.where == "input 0 [1, 1]");
  CHECK(wrong.analytic == doctest::Approx(0.505));
  CHECK(wrong.numeric == doctest::Approx(0.5));
  CHECK(wrong.max_error == doctest::Approx(0.005 / 4));
}

TEST_CASE("check: elements near a kink are left out and counted") {
  const NodeCheck c = check_of(leaf({4}, {0, 1e-4, 1, -2}), "relu", [](const Tensor& t) { return (t.relu() * 3).sum(); });
  CHECK(c.passed);
  CHECK(c.near_kinks == 2);
  CHECK(c.compared == 2);
  const NodeCheck ties = check_of(leaf({2, 3}, {1, 1, 0, 5, 3, 1}), "amax", [](const Tensor& t) { return t.amax(1).sum(); });
  CHECK(ties.passed);
  CHECK(ties.near_kinks == 2);
  CHECK(ties.compared == 4);
}

TEST_CASE("check: what is not possible says why") {
  const Tensor x = leaf({4}, {1, 2, 3, 4});
  const NodeCheck drawn = check_of(x, "dropout", [](const Tensor& t) { return dropout(t, 0.5).sum(); });
  CHECK(!drawn.possible);
  CHECK(has(drawn.reason, "draws random numbers"));
  const NodeCheck unseen = check_node(inspect::record(x.exp().sum()).node("exp").card());
  CHECK(has(unseen.reason, "the forward pass was not recorded"));
  const inspect::Recorder stats_only;
  const NodeCheck no_values = check_node(inspect::record((x * 1).exp().sum()).node("mul").card());
  CHECK(has(no_values.reason, "were not kept"));
  const Tensor y = x.exp();
  int asked = 0;
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const inspect::Trace trace = inspect::record((make_empty({64, 64}, kF64).zero_() + x.sum()).exp().sum());
  const NodeCheck stopped = check_node(trace.node("exp").card(), {.stop = [&] { return ++asked > 2; }});
  CHECK(stopped.reason == "interrupted");
}

TEST_CASE("check: windows, broadcasts and large inputs") {
  const Tensor x = leaf({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(check_of(x, "select", [](const Tensor& t) { return t.select(0, 1).square().sum(); }).passed);
  CHECK(check_of(x, "unfold", [](const Tensor& t) { return t.unfold(1, 3, 1).square().sum(); }).passed);
  const NodeCheck sum = check_of(leaf({4}, {1, 2, 3, 4}), "mul", [](const Tensor& t) { return (t * make<double>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})).sum(); });
  CHECK(sum.passed);
  Tensor big = make_empty({80, 80}, kF32);
  for (i64 i = 0; i < big.numel(); ++i) big.data<float>()[i] = static_cast<float>(i % 17) / 8 - 1;
  big.requires_grad_();
  const NodeCheck sampled = check_of(big, "exp", [](const Tensor& t) { return (t.exp() * t).sum(); });
  CHECK(sampled.passed);
  CHECK(sampled.compared == 64 + 64 + 4);
  CHECK(sampled.tolerance == 1e-4);
}

TEST_CASE("check: every node of an encoder with a score encoding") {
  test::SmallModel m("huang-m4(clip=2) + learned(max_len=8)");
  const inspect::Recorder recorder({.keep = inspect::Keep::values, .max_elements = INT64_MAX});
  const inspect::Trace trace = inspect::record(m.loss());
  std::set<std::string> impossible;
  i64 passed = 0;
  for (const NodeCard& card : trace.backward()) {
    const NodeCheck c = check_node(card, {.all_elements = 16, .largest = 4, .random = 4, .directions = 1});
    if (!c.possible) impossible.insert(card.op + ": " + c.reason);
    else if (c.passed) ++passed;
    else FAIL_CHECK(card.label << " " << c.max_error << " at " << c.where << ": " << c.analytic << " " << c.numeric);
  }
  INFO(fmt::format("{}", fmt::join(impossible, "\n")));
  CHECK(impossible.empty());
  CHECK(passed > 50);
}

// Attributes and inputs of a recorded op suffice to call it again, with the same bits.
TEST_CASE("recorded ops of the case table can be called again") {
  std::set<std::string> wrong;
  for (const test::OpCase& c : test::all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply) continue;
    const test::Instance x = test::instance(op, test::title_of(c), c.args, test::MemoryLayout::contiguous, 0);
    const inspect::Recorder recorder({.keep = inspect::Keep::values, .max_elements = INT64_MAX});
    (void)x.run(x.leaves);
    const inspect::Trace trace = recorder.trace();
    for (const inspect::ForwardRecord& f : trace.forward()) {
      // Ops that draw would draw others; creation has no input; index lists mix numbers and tensors.
      if (!f.op->apply || f.op->family == "random" || f.op->family == "dropout" || f.op->family == "create") continue;
      if (f.op->name == "index" || f.op->name == "index_put") continue;
      std::vector<Tensor> inputs;
      for (u32 id : f.inputs) inputs.push_back(id == inspect::kNoTensor ? Tensor() : trace.tensors()[id].value);
      std::string problem;
      try {
        const RandomScope draws(7);
        const std::vector<Tensor> again = inspect::call_again(*f.op, inputs, f.attributes);
        for (size_t k = 0; k < f.outputs.size(); ++k) {
          const Tensor& before = trace.tensors()[f.outputs[k]].value;
          if (k >= again.size()) problem = "fewer results";
          else if (before.dtype() != again[k].dtype() || before.shape() != again[k].shape()) problem = fmt::format("{} {} and {} {}", before.shape(), name_of(before.dtype()), again[k].shape(), name_of(again[k].dtype()));
          else if (test::difference(before, again[k]) != "") problem = "other values";
        }
      } catch (const std::exception& e) {
        problem = e.what();
      }
      if (!problem.empty()) wrong.insert(fmt::format("{} (in {}): {}", f.op->name, test::title_of(c), problem));
    }
  }
  for (const std::string& w : wrong) MESSAGE(w);
  CHECK(wrong.empty());
}
