// Anomaly mode: the true origin of non-finite values, forward and backward, and the hints.
#include <doctest/doctest.h>

#include <cmath>

#include "core/engine/checkpoint.h"
#include "core/inspect/anomaly.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "tests/core/inspect/small_model.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

using namespace waymark;
using inspect::AnomalyError;
using inspect::AnomalyMode;
using inspect::AnomalyReport;
using inspect::OnFind;
using test::error_text;
using test::has;
using test::kInf;
using test::leaf;
using test::make;

namespace {

// The report of backward on f(), which must raise.
template <class F> AnomalyReport report_of(F f) {
  const AnomalyMode mode;
  try {
    f().backward();
  } catch (const AnomalyError& e) {
    CHECK(std::string(e.what()) == e.report().to_string());
    return e.report();
  }
  FAIL("nothing was found");
  return {};
}

}  // namespace

TEST_CASE("C39: sqrt(0) times 0: the rule of sqrt") {
  const Tensor x = leaf({2}, {4, 0});
  const AnomalyReport r = report_of([&] { return (x.sqrt() * 0).sum(); });
  CHECK(r.backward);
  CHECK(r.op == "sqrt");
  CHECK(r.level == 2);
  CHECK(r.subject.starts_with("the rule of sqrt #"));
  CHECK(r.inner == "div");
  CHECK(r.hint == "use norm(), normalize(eps), or add eps inside");
  REQUIRE(r.places.size() == 1);
  CHECK(has(r.places[0], "[1]: g = 0, "));
  CHECK(has(r.places[0], "gradient = nan"));
  CHECK(!x.grad().defined());
}

TEST_CASE("C39: where(x > 0, sqrt(x), 0) at -1: the forward sqrt, and the branch that was not taken") {
  const Tensor x = leaf({2}, {4, -1});
  const AnomalyReport r = report_of([&] { return where(x > 0, x.sqrt(), 0.0).sum(); });
  CHECK(!r.backward);
  CHECK(r.op == "sqrt");
  CHECK(has(r.hint, "branch not taken here; guard the input as well"));
  CHECK(has(r.places.at(0), "[1]: input 0 = -1, output = nan"));
  CHECK(has(r.seen, "in the gradient for x, in backward of sqrt #"));
}

TEST_CASE("C39: where(x > 0, log(x), 0) is legal as long as nothing differentiates it") {
  const Tensor x = make<double>({2}, {4, -1});
  {
    const AnomalyMode mode;
    CHECK(mode.reports().empty());
    const Tensor y = where(x > 0, x.log(), 0.0).sum();
    CHECK(const_cast<AnomalyMode&>(mode).check(y));
    // A gradient that does not pass through the logarithm.
    const Tensor w = leaf({1}, {2}, "w");
    (w * y).sum().backward();
    CHECK(mode.reports().empty());
  }
  const AnomalyMode now(OnFind::raise_now);
  CHECK(has(error_text([&] { (void)x.log(); }), "anomaly: log made NaN"));
}

TEST_CASE("C39: NaN planted in a parameter: the input, no op") {
  const Tensor w = leaf({2, 2}, {1, NAN, 3, 4}, "encoder.w"), x = make<double>({1, 2}, {1, 1});
  const AnomalyReport r = report_of([&] { return (x.matmul(w) + 1).sum(); });
  CHECK(r.planted);
  CHECK(r.subject.starts_with("input \"encoder.w\" of matmul #"));
  CHECK(r.places.at(0) == "[0, 1] = nan");
  CHECK(r.seen == "the root is nan");
  CHECK(has(r.to_string(), "no op made it"));
  REQUIRE(r.path.size() == 3);
  CHECK(r.path[0].starts_with("matmul #"));
  CHECK(r.path[2].starts_with("sum #"));
}

TEST_CASE("C39: inf - inf") {
  const Tensor x = leaf({2}, {kInf, 1}), y = leaf({2}, {kInf, 2}, "y");
  const AnomalyReport r = report_of([&] { return (x - y).sum(); });
  CHECK(!r.planted);
  CHECK(r.op == "sub");
  CHECK(r.places.at(0) == "[0]: input 0 = inf, input 1 = inf, output = nan");
}

TEST_CASE("C39: softmax of a row without keys; the -inf of a mask is no origin") {
  const Tensor x = leaf({2, 2}, {1, 2, 3, 4}), mask = make<bool>({2, 2}, {true, true, false, true});
  const AnomalyReport r = report_of([&] { return x.masked_fill(mask, -kInf).softmax(-1).sum(); });
  CHECK(r.op == "softmax");
  CHECK(r.hint == "the row at [0, 0] has no key left; use masked_softmax or check the mask");
  CHECK(r.inner == "sub");  // of its twin: -inf - (-inf)
  // One key left in each row: nothing is wrong.
  const Tensor one = make<bool>({2, 2}, {true, false, false, true});
  const AnomalyMode mode;
  x.masked_fill(one, -kInf).softmax(-1).pow(2).sum().backward();
  CHECK(mode.reports().empty());
}

TEST_CASE("C39: 0/0, and a denominator that is a sum of features") {
  const Tensor a = leaf({2}, {0, 1}, "a"), b = leaf({2}, {0, 1}, "b");
  const AnomalyReport r = report_of([&] { return (a / b).sum(); });
  CHECK(r.op == "div");
  CHECK(r.places.at(0) == "[0]: input 0 = 0, input 1 = 0, output = nan");
  CHECK(r.hint == "the divisor is 0 at [0]; use norm(), normalize(eps), or add eps inside");
  const Tensor f = leaf({2, 2}, {1, 2, 0, 0}, "f");
  const AnomalyReport s = report_of([&] { return (f / f.sum(-1, true)).sum(); });
  CHECK(has(s.hint, "denominator 0 at [1, 0]"));
}

TEST_CASE("C39: overflow in exp inside a checkpoint") {
  const Tensor x = leaf({2}, {1, 800});
  const AnomalyReport r = report_of([&] {
    const Scope scope("block");
    return checkpoint([](const Tensor& t) { return t.exp() * 2; }, x).sum();
  });
  CHECK(r.op == "exp");
  CHECK(r.scope == "block");
  CHECK(r.level == 1);
  CHECK(r.hint == "overflow: the largest exponent is 800; use logsumexp, or clamp it");
  CHECK(r.path.size() == 3);
  // In backward, through the recomputation: exp underflows, its reciprocal does not matter, the rule of log does.
  const AnomalyReport s = report_of([&] {
    return (checkpoint([](const Tensor& t) { return t.sqrt(); }, leaf({1}, {0})) * 0).sum();
  });
  CHECK(s.backward);
  CHECK(s.op == "sqrt");
}

TEST_CASE("C39: in a fused kernel the twin names the inner op") {
  const Tensor x = leaf({1, 2}, {kInf, kInf});
  const AnomalyReport r = report_of([&] { return x.log_softmax(-1).sum(); });
  CHECK(r.op == "log_softmax");
  CHECK(r.inner == "sub");
  CHECK(has(r.to_string(), "inside sub"));
}

TEST_CASE("C39: in second order") {
  const Tensor x = leaf({2}, {4, 0});
  const AnomalyMode mode;
  const Tensor g = grad(x.pow(1.5).sum(), {x}, {.create_graph = true})[x];
  CHECK(mode.reports().empty());
  try {
    g.sum().backward();
    FAIL("nothing was found");
  } catch (const AnomalyError& e) {
    CHECK(e.report().backward);
    CHECK(e.report().op == "sqrt");  // what the rule of pow(1.5) recorded
    CHECK(has(e.report().places.at(0), "[1]: "));
  }
}

TEST_CASE("C39: a loss that is not finite is reported although every gradient is") {
  const Tensor x = leaf({2}, {1, 0});
  const AnomalyReport r = report_of([&] { return x.sum() + make<double>({}, {0}).log(); });
  CHECK(r.op == "log");
  CHECK(r.seen == "the root is -inf");
  CHECK(r.hint == "log of 0 at []; use xlogy, clamp or log_softmax");
}

TEST_CASE("C39: an op that only passes NaN on is never the origin") {
  const Tensor x = leaf({2, 2}, {NAN, 1, 2, 3});
  const AnomalyReport r = report_of([&] { return x.view({4}).clone().contiguous().reshape({2, 2}).mT().relu().sum(); });
  CHECK(r.planted);
  CHECK(has(r.subject, "input \"x\" of view"));
  const AnomalyReport s = report_of([&] { return leaf({1}, {-1}).sqrt().clone().sum(); });
  CHECK(s.op == "sqrt");
  CHECK(s.path.size() == 3);
}

TEST_CASE("C40: the report has shapes, statistics, formula, rule, place and scope") {
  const Tensor x = leaf({2, 3}, {1, 2, 3, -4, 5, 6});
  const AnomalyReport r = report_of([&] {
    const Scope scope("encoder.layers.0.ffn");
    return x.log().sum();
  });
  const std::string text = r.to_string();
  CHECK(has(text, "anomaly: log #"));
  CHECK(has(text, "made NaN"));
  CHECK(has(text, "value  y = ln x"));
  CHECK(has(text, "rule   dx = g/x"));
  CHECK(has(text, "test_anomaly.cpp:"));
  CHECK(has(text, "in encoder.layers.0.ffn"));
  CHECK(has(text, "input  x [2, 3] f64   norm 9.5   [-4, 6]"));
  CHECK(has(text, "at     [1, 0]: input 0 = -4, output = nan"));
  CHECK(has(text, "path   log #"));
  CHECK(has(text, "hint   log of -4 at [1, 0]; use xlogy, clamp or log_softmax"));
}

TEST_CASE("anomaly mode: record and pause do not raise") {
  const Tensor x = leaf({2}, {4, 0});
  const Tensor loss = (x.sqrt() * 0).sum();
  {
    const AnomalyMode mode(OnFind::record);
    loss.backward(RunOptions{.retain_graph = true});
    REQUIRE(mode.reports().size() == 1);
    CHECK(mode.reports()[0].op == "sqrt");
    CHECK(std::isnan(x.grad().to_vector<double>()[1]));
  }
  const AnomalyMode mode(OnFind::pause);
  BackwardRun run(loss, {.retain_graph = true});
  CHECK(run.until("no such op"));
  CHECK(run.current().op == "sqrt");
  CHECK(mode.reports().size() == 1);
}

TEST_CASE("anomaly mode: in place, element by element, and growth") {
  // The overwritten input is judged as it was.
  const Tensor x = leaf({2}, {-1, 4});
  const AnomalyReport r = report_of([&] {
    Tensor y = x * 1;
    y.sqrt_();
    return y.sum();
  });
  CHECK(r.op == "sqrt_");
  CHECK(r.places.at(0) == "[0]: input 0 = -1, output = nan");
  // An infinity elsewhere does not hide a division by zero.
  const Tensor a = leaf({2}, {kInf, 1}, "a"), b = make<double>({2}, {1, 0});
  const AnomalyReport s = report_of([&] { return (a / b).sum(); });
  CHECK(s.op == "div");
  CHECK(s.places.at(0) == "[1]: input 0 = 1, input 1 = 0, output = inf");
  // A gradient that explodes without any non-finite saved value.
  const Tensor w = leaf({1}, {1e-100}, "w");
  const AnomalyReport g = report_of([&] { return (w.reciprocal() * 1e150).sum(); });
  CHECK(g.subject.starts_with("the rule of reciprocal #"));
  CHECK(g.growth.starts_with("largest growth in this run: 1e+150-fold at mul #"));
}

TEST_CASE("anomaly mode: a seed that is not finite") {
  const Tensor x = leaf({2}, {1, 2});
  const AnomalyMode mode;
  const std::string text = error_text([&] { (x * 2).backward(make<double>({2}, {NAN, 1})); });
  CHECK(has(text, "the gradient that arrived at mul #"));
  CHECK(has(text, "a seed that is not finite"));
}

TEST_CASE("anomaly mode changes no bit, and holds nothing when it ends") {
  const i64 tensors = TensorImpl::live();
  {
    const Tensor x = leaf({3}, {1, 2, 3});
    (x.exp() / x).sum().backward();
    const Tensor plain = x.grad().clone();
    x.set_grad({});
    const AnomalyMode mode;
    (x.exp() / x).sum().backward();
    CHECK(test::difference(x.grad(), plain) == "");
  }
  CHECK(TensorImpl::live() == tensors);
}
