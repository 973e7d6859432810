// Recorders and anomaly modes that end in any order, on any thread, inside a hook: never a call to one that is gone.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>

#include "core/inspect/anomaly.h"
#include "core/inspect/recorder.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "tests/core/inspect/small_model.h"
#include "tests/error_text.h"

using namespace waymark;
using inspect::AnomalyError;
using inspect::AnomalyMode;
using inspect::OnFind;
using inspect::Recorder;
using test::has;
using test::leaf;
using test::make;

namespace {
size_t ops_of(const std::unique_ptr<Recorder>& r) { return r->trace().forward().size(); }
}  // namespace

TEST_CASE("guards end in any order: those that are left see on") {
  const Tensor x = make<double>({1}, {2});
  auto a = std::make_unique<Recorder>(), b = std::make_unique<Recorder>(), c = std::make_unique<Recorder>();
  auto mode = std::make_unique<AnomalyMode>(OnFind::record);
  CHECK(Recorder::current() == c.get());
  (void)(x + x);
  b.reset();  // in the middle
  (void)(x + x);
  CHECK(ops_of(a) == 2);
  CHECK(ops_of(c) == 2);
  a.reset();  // the outermost
  (void)(x / 0);
  CHECK(ops_of(c) == 3);
  CHECK(Recorder::current() == c.get());
  c.reset();
  CHECK(Recorder::current() == nullptr);
  const Tensor bad = log(make<double>({1}, {-1}));
  CHECK(!mode->check(bad));
  mode.reset();
  CHECK(thread_state().observer == nullptr);
  CHECK(run_observer() == nullptr);
  (void)(x + x);
}

TEST_CASE("a guard ends on another thread: its own one goes on without it") {
  const Tensor x = leaf({2}, {1, 2}, "x");
  for (const bool between : {false, true}) {
    auto outer = std::make_unique<Recorder>();
    auto gone = std::make_unique<Recorder>();
    (void)(x * x);
    std::thread([&] { gone.reset(); }).join();
    if (between) (void)(x * x);
    (x * x).sum().backward();
    CHECK(ops_of(outer) == (between ? 4 : 3));
    CHECK(!outer->trace().backward().empty());
    std::thread([&] { outer.reset(); }).join();
    (x * x).sum().backward();
    CHECK(Recorder::current() == nullptr);
  }
  // Its thread has ended before it.
  std::unique_ptr<Recorder> left;
  std::thread([&] {
    left = std::make_unique<Recorder>();
    (void)(x * x);
  }).join();
  CHECK(ops_of(left) == 1);
  left.reset();
  // While its thread works.
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<Recorder> used;
    std::thread worker([&] {
      for (int k = 0; k < 200; ++k) (void)(x * x);
    });
    {
      const Recorder own;
      (void)(x * x);
    }
    worker.join();
  }
}

TEST_CASE("a guard ends, or begins, inside a hook") {
  for (const bool anomaly : {false, true}) {
    const Tensor x = leaf({2}, {1, 2}, "x");
    auto recorder = std::make_unique<Recorder>();
    auto mode = anomaly ? std::make_unique<AnomalyMode>() : nullptr;
    const Tensor y = x * x;
    const auto handle = y.register_hook([&](const Tensor&) -> Tensor {
      recorder.reset();
      mode.reset();
      return {};
    });
    (y * 3).sum().backward();
    CHECK(x.grad().to_vector<double>() == std::vector<double>{6, 12});
    CHECK(Recorder::current() == nullptr);
    CHECK(thread_state().observer == nullptr);
  }
  // One that begins there sees the ops of the hook and what comes after; the one around it does not see the hook's.
  for (const bool around : {false, true}) {
    const Tensor x = leaf({2}, {1, 2}, "x");
    const auto outer = around ? std::make_unique<Recorder>() : nullptr;
    std::unique_ptr<Recorder> inner;
    const Tensor y = x * x, loss = y.sum();
    const size_t before = around ? ops_of(outer) : 0;
    const auto handle = y.register_hook([&](const Tensor& g) -> Tensor {
      inner = std::make_unique<Recorder>();
      return g * 2;
    });
    loss.backward();
    CHECK(x.grad().to_vector<double>() == std::vector<double>{4, 8});
    CHECK(ops_of(inner) == 1);
    if (around) CHECK(ops_of(outer) == before);
    (void)(x + x);
    CHECK(ops_of(inner) == 2);
    if (around) CHECK(ops_of(outer) == before + 1);
    inner.reset();
    (void)(x + x);
    if (around) CHECK(ops_of(outer) == before + 2);
  }
}

TEST_CASE("record and the stepper outlive a recorder that a hook ends") {
  const Tensor x = leaf({2}, {1, 2}, "x");
  auto recorder = std::make_unique<Recorder>();
  const Tensor y = x * x;
  const auto handle = y.register_hook([&](const Tensor&) -> Tensor {
    recorder.reset();
    return {};
  });
  const inspect::Trace trace = inspect::record(y.sum());
  CHECK(trace.forward().size() == 2);
}

TEST_CASE("anomaly mode names the hook that made a NaN, and keeps the kind of the error") {
  const auto report = [](bool of_leaf, int which, bool in_place) {
    const Tensor x = leaf({2}, {1, 2}, "x");
    const AnomalyMode mode;
    const Tensor y = x * x;
    const auto fine = [](const Tensor& g) -> Tensor { return g * 2; };
    const auto bad = [in_place](const Tensor& g) -> Tensor {
      if (!in_place) return g / 0.0 - g / 0.0;
      g.data<double>()[1] = NAN;
      return g;
    };
    const Tensor& t = of_leaf ? x : y;
    std::vector<HookHandle> handles;
    for (int i = 1; i <= 2; ++i) handles.push_back(i == which ? t.register_hook(bad) : t.register_hook(fine));
    try {
      (y * 3).sum().backward();
    } catch (const AnomalyError& e) {
      CHECK(e.report().backward);
      CHECK(e.report().level == 2);
      CHECK(!x.grad().defined());
      return e.report();
    }
    FAIL("no AnomalyError");
    return inspect::AnomalyReport();
  };
  CHECK(report(false, 1, false).subject.starts_with("hook 1 of mul #"));
  CHECK(report(false, 2, false).subject.starts_with("hook 2 of mul #"));
  CHECK(report(true, 2, false).subject == "hook 2 of \"x\"");
  const auto in_place = report(false, 1, true);
  CHECK(in_place.subject.starts_with("hook 1 of mul #"));
  REQUIRE(!in_place.places.empty());
  CHECK(has(in_place.places[0], "[1]: came as 3, returned as nan"));
  CHECK(has(in_place.to_string(), "anomaly: hook 1 of mul #"));
  // A hook that passes on what is not finite is none.
  const Tensor x = leaf({1}, {0}, "x");
  const AnomalyMode mode;
  const Tensor y = sqrt(x);
  const auto handle = x.register_hook([](const Tensor& g) -> Tensor { return g * 2; });
  try {
    (y * 1.0).sum().backward();
    FAIL("no AnomalyError");
  } catch (const AnomalyError& e) { CHECK(e.report().subject.starts_with("the rule of sqrt #")); }
}
