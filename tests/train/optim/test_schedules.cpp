#include <doctest/doctest.h>

#include <cmath>

#include "tests/train/optim/fixture.h"
#include "train/optim/registry.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

std::vector<Tensor> one() { return {parameter(make<double>({1}, {1}))}; }
double relative(double got, double want) { return std::fabs(got - want) / std::fabs(want); }

}  // namespace

// Golden values.
TEST_CASE("schedules of the Long Range Arena") {
  struct Case {
    i64 t;
    double lr;
  };
  const auto check = [](const Schedule& s, double base, std::initializer_list<Case> cases) {
    for (const Case& c : cases) {
      CAPTURE(c.t);
      CHECK(base * s.factor(c.t) == doctest::Approx(c.lr).epsilon(1e-7));
    }
  };
  SGD o(one(), {.lr = 0.05});
  const Rsqrt listops(o, {.warmup = 1000, .normalised = false, .start = 0});
  CHECK(listops.factor(0) == 0);
  check(listops, 0.05, {{1, 1.5811388e-6}, {500, 7.9056942e-4}, {1000, 1.5811388e-3}, {4999, 7.0717750e-4}});
  const Rsqrt text(o, {.warmup = 8000, .normalised = false, .start = 0});
  check(text, 0.05, {{8000, 5.5901699e-4}, {19999, 3.5356223e-4}});
  const Rsqrt retrieval(o, {.warmup = 8000, .normalised = false, .start = 0});
  check(retrieval, 0.05, {{4999, 3.4931574e-4}});
  const Cosine image(o, {.total = 35000, .warmup = 175, .form = CosineForm::lra, .start = 0});
  check(image, 5e-4, {{1, 2.8571429e-6}, {175, 5e-4}, {17500, 2.5392683e-4}});
  CHECK(relative(5e-4 * image.factor(34999), 3.1195e-8) < 1e-4);
  const Cosine pathfinder(o, {.total = 62400, .warmup = 312, .form = CosineForm::lra, .start = 0});
  check(pathfinder, 1e-3, {{31200, 5.0785366e-4}});
}

TEST_CASE("one-cycle") {
  Adam o(one(), {.lr = 1e-4});
  OneCycle s(o, {.total = 5000, .pct = 0.2, .anneal = Anneal::linear});
  struct Case {
    i64 t;
    double lr, beta;
  };
  for (const Case& c : {Case{0, 4e-6, 0.95}, {1, 4.0960961e-6, 0.9498999}, {500, 5.2048048e-5, 0.8999499},
                        {999, 1e-4, 0.85}, {1000, 9.9975e-5, 0.850025}, {2500, 6.247515e-5, 0.887525},
                        {4999, 4e-10, 0.95}}) {
    CAPTURE(c.t);
    s.set_updates(c.t);
    CHECK(relative(o.lr(), c.lr) < (c.t == 4999 ? 1e-4 : 1e-6));
    CHECK(o.momentum() == doctest::Approx(c.beta).epsilon(1e-6));
  }
  SGD plain(one(), {.lr = 0.1});
  CHECK(has(error_text([&] { OneCycle bad(plain, {.total = 10}); }), "no momentum"));
  OneCycle fine(plain, {.total = 10, .cycle_momentum = false});
  CHECK(plain.lr() == doctest::Approx(0.004));
}

TEST_CASE("warm-up, decline and their ends") {
  SGD o(one(), {.lr = 2});
  const Linear after(o, {.total = 100, .warmup = 10});
  CHECK(after.factor(0) == doctest::Approx(0.1));  // start = 1: the first update is no zero update
  CHECK(after.factor(9) == doctest::Approx(1));
  CHECK(after.factor(54) == doctest::Approx(0.5));
  CHECK(after.factor(99) == doctest::Approx(0));
  CHECK(after.factor(500) == doctest::Approx(0));
  // BERT's form drops by warmup/T where the warm-up ends (R17).
  const Linear bert(o, {.total = 100, .warmup = 10, .from = LinearFrom::start, .start = 0});
  CHECK(bert.factor(0) == 0);
  CHECK(bert.factor(9) == doctest::Approx(0.9));
  CHECK(bert.factor(10) == doctest::Approx(0.9));
  CHECK(bert.factor(11) == doctest::Approx(0.89));
  const Linear product(o, {.total = 900, .warmup = 50, .final = 0.02, .from = LinearFrom::product});
  CHECK(product.factor(0) == doctest::Approx(1.0 / 50));
  CHECK(product.factor(24) == doctest::Approx(0.5 * (1 - 24.0 / 900)));
  CHECK(product.factor(450) == doctest::Approx(0.5));
  CHECK(product.factor(899) == doctest::Approx(0.02));
  const Cosine cosine(o, {.total = 110, .warmup = 10, .final = 0.1});
  CHECK(cosine.factor(9) == doctest::Approx(1));
  CHECK(cosine.factor(59) == doctest::Approx(0.55));
  CHECK(cosine.factor(109) == doctest::Approx(0.1));
  // A run shorter than the warm-up only rises.
  const Cosine short_run(o, {.total = 10, .warmup = 40});
  CHECK(short_run.factor(9) == doctest::Approx(0.25));
  const Linear short_line(o, {.total = 10, .warmup = 40});
  CHECK(short_line.factor(8) == doctest::Approx(0.225));
  const Constant constant(o, {.total = 200, .warmup = 0.05});
  CHECK(constant.factor(4) == doctest::Approx(0.5));
  CHECK(constant.factor(1000) == 1);
  const Rsqrt rsqrt(o, {.warmup = 100});
  CHECK(rsqrt.factor(49) == doctest::Approx(0.5));
  CHECK(rsqrt.factor(399) == doctest::Approx(0.5));
  const StepDecay drops(o, {.every = 10, .gamma = 0.5});
  CHECK(drops.factor(9) == 1);
  CHECK(drops.factor(29) == 0.25);
}

TEST_CASE("a schedule moves all groups and knows where it is") {
  SGD o({{.params = one()}, {.params = one(), .lr = 0.5}}, {.lr = 0.1});
  Constant s(o, {.warmup = 4});
  CHECK(s.lr() == doctest::Approx(0.025));
  s.step();
  CHECK(s.updates() == 1);
  CHECK(s.lr(0) == doctest::Approx(0.05));
  CHECK(s.lr(1) == doctest::Approx(0.25));
  s.set_updates(100);
  CHECK(s.lr(1) == 0.5);
  CHECK(has(error_text([&] { s.factor(-1); }), "no update -1"));
}

TEST_CASE("bad schedules are errors") {
  SGD o(one(), {.lr = 0.1});
  CHECK(has(error_text([&] { Cosine s(o, {}); }), "Cosine: total = 0"));
  CHECK(has(error_text([&] { Constant s(o, {.warmup = 0.5}); }), "total must be given"));
  CHECK(has(error_text([&] { Constant s(o, {.warmup = -1}); }), "warmup = -1"));
  CHECK(has(error_text([&] { Linear s(o, {.total = 10, .final = 2}); }), "final = 2"));
  CHECK(has(error_text([&] { Linear s(o, {.total = 10, .start = 2}); }), "start = 2"));
  CHECK(has(error_text([&] { StepDecay s(o, {}); }), "every = 0"));
  CHECK(has(error_text([&] { StepDecay s(o, {.every = 1, .gamma = 2}); }), "gamma = 2"));
  CHECK(has(error_text([&] { Rsqrt s(o, {.warmup = 0}); }), "at least one update"));
}

TEST_CASE("optimizers and schedules come from their specs") {
  const auto options = [](const nn::SpecTables& tables, const std::string& text) {
    return tables.resolve(nn::parse_spec(text));
  };
  for (const std::string& name : optimizer_tables().names()) {
    CAPTURE(name);
    const auto o = make_optimizer(one_group(one()), options(optimizer_tables(), name + "(lr=0.5)"));
    CHECK(o->lr() == 0.5);
    CHECK(std::string(optimizer_tables().find(name)->doc) != "");
  }
  const auto relative_steps = make_optimizer(one_group(one()), options(optimizer_tables(), "adafactor"));
  CHECK(dynamic_cast<Adafactor&>(*relative_steps).relative());
  const auto adamw = make_optimizer(one_group(golden_parameters()),
                                    options(optimizer_tables(), "adamw(lr=0.1, betas=[0.9, 0.98], eps=1e-9, weight_decay=0.1)"));
  CHECK(golden_run(*adamw)[1] == doctest::Approx(-1.6435880015).epsilon(1e-9));
  CHECK(has(error_text([&] { options(optimizer_tables(), "sgd(lr=1, nesterov=true)"); }), "nesterov needs"));

  SGD o(one(), {.lr = 1, .momentum = 0.9});
  for (const std::string& name : schedule_tables().names()) {
    CAPTURE(name);
    const auto s = make_schedule(o, options(schedule_tables(), name == "step" ? "step(every=10)" : name), 2000);
    CHECK(s->factor(1) > 0);
    o.set_lr(1);
  }
  CHECK(make_schedule(o, options(schedule_tables(), "cosine(warmup=100, total=50000)"), 10)->factor(99) == doctest::Approx(1));
  CHECK(schedule_needs_total(options(schedule_tables(), "cosine")));
  CHECK(!schedule_needs_total(options(schedule_tables(), "cosine(total=10)")));
  CHECK(schedule_needs_total(options(schedule_tables(), "constant(warmup=0.1)")));
  CHECK(!schedule_needs_total(options(schedule_tables(), "constant(warmup=10)")));
}

// One new file and one list line add an optimizer; here they are a test's.
TEST_CASE("a user's own optimizer") {
  struct SignDescent final : Optimizer {
    SignDescent(std::vector<ParamGroup> groups, double lr) : Optimizer("SignDescent", {}, std::move(groups), {lr, 0}) {}
    void update(std::span<const Item> items, double) override {
      for (const Item& item : items) {
        for (i64 i = 0; i < item.param.numel(); ++i)
          item.param.data<double>()[i] -= item.group->lr * (item.grad.data<double>()[i] < 0 ? -1 : 1);
        wrote(item.param);
      }
    }
  };
  if (!optimizer_tables().find("sign-descent"))
    register_optimizer({{"sign-descent", {{"lr", nn::real_option(0.5), "step"}}, "by sign"},
                        [](std::vector<ParamGroup> groups, const nn::Options& o) -> std::unique_ptr<Optimizer> {
                          return std::make_unique<SignDescent>(std::move(groups), o.real("lr"));
                        }});
  const auto o = make_optimizer(one_group(golden_parameters()), optimizer_tables().resolve(nn::parse_spec("sign-descent")));
  CHECK(golden_run(*o) == std::vector<double>{-0.5, -0.5, -1});
}
