#include <doctest/doctest.h>

#include <cmath>

#include "core/engine/backward.h"
#include "core/io/safetensors.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/temporary_folder.h"
#include "tests/train/optim/fixture.h"
#include "train/optim/registry.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

void check_near(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(got[i] - want[i]) < 6e-11);
  }
}

}  // namespace

// The first five rows are PyTorch 1.13's.
TEST_CASE("optimizers reach the golden values") {
  SUBCASE("adamw") {
    AdamW o(golden_parameters(), {.lr = 0.1});
    check_near(golden_run(o), {0.7049811127, -1.6943059130, 0.2182608123});
  }
  SUBCASE("adamw with other options") {
    AdamW o(golden_parameters(), {.lr = 0.1, .betas = {0.9, 0.98}, .eps = 1e-9, .weight_decay = 0.1});
    check_near(golden_run(o), {0.6817312387, -1.6435880015, 0.2067191736});
  }
  SUBCASE("adam") {
    Adam o(golden_parameters(), {.lr = 0.1, .weight_decay = 0.01});
    check_near(golden_run(o), {0.7066100121, -1.7000445504, 0.2190871215});
  }
  SUBCASE("sgd") {
    SGD o(golden_parameters(), {.lr = 0.1, .momentum = 0.9});
    check_near(golden_run(o), {0.9049, -1.8878, 0.3802});
  }
  SUBCASE("sgd with nesterov") {
    SGD o(golden_parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    check_near(golden_run(o), {0.8465500126, -1.8232278251, 0.3335253348});
  }
  SUBCASE("adamw without bias correction") {
    AdamW o(golden_parameters(), {.lr = 0.1, .eps = 1e-6, .bias_correction = false});
    check_near(golden_run(o), {-0.2023807693, -0.7589951977, -0.6449606275});
  }
  SUBCASE("lamb") {
    Lamb o(golden_parameters(), {.lr = 0.1});
    check_near(golden_run(o), {0.6359502823, -1.6231007469, 0.1516784146});
  }
}

// By hand: the first update has β = 0, so V = g² + ε₁ and |u| = 1 for a vector.
TEST_CASE("adafactor") {
  SUBCASE("a vector, relative step") {
    Adafactor o(golden_parameters());
    o.parameters()[0].set_grad(make<double>({3}, {0.1, -0.2, 0.3}));
    o.step();
    const double size = std::sqrt((1 + 4 + 0.25) / 3) * 1e-2;
    check_near(o.parameters()[0].to_vector<double>(), {1 - size, -2 + size, 0.5 - size});
    const auto state = o.state_dict();
    CHECK(std::find_if(state.begin(), state.end(), [](auto& e) { return e.first == "exp_avg_sq.0"; }) != state.end());
  }
  SUBCASE("a matrix, numeric lr, clipped") {
    const Tensor w = parameter(make<double>({2, 2}, {1, 1, 1, 1}));
    Adafactor o({w}, {.lr = 0.1, .clip = 0.5});
    w.set_grad(make<double>({2, 2}, {1, 2, 3, 4}));
    o.step();
    // rows: means 2.5, 12.5; columns: 5, 10; V̂ = R Cᵀ / 7.5
    const double v[] = {2.5 * 5 / 7.5, 2.5 * 10 / 7.5, 12.5 * 5 / 7.5, 12.5 * 10 / 7.5};
    double u[4], square = 0;
    for (int i = 0; i < 4; ++i) {
      u[i] = (i + 1) / std::sqrt(v[i]);
      square += u[i] * u[i] / 4;
    }
    const double factor = std::max(1.0, std::sqrt(square) / 0.5);
    check_near(w.to_vector<double>(), {1 - 0.1 * u[0] / factor, 1 - 0.1 * u[1] / factor, 1 - 0.1 * u[2] / factor,
                                       1 - 0.1 * u[3] / factor});
    const auto state = o.state_dict();
    const auto shape = [&](const std::string& name) {
      for (const auto& [key, t] : state)
        if (key == name) return t.shape();
      return Shape{-1};
    };
    CHECK(shape("exp_avg_sq_row.0") == Shape{2});
    CHECK(shape("exp_avg_sq_col.0") == Shape{2});
    CHECK(shape("exp_avg_sq.0") == Shape{-1});
  }
}

namespace {

// Several parameters of odd sizes, more than one task of the fused pass, one of them a view that is not row-major.
std::vector<Tensor> many(DType dtype) {
  std::vector<Tensor> list = {parameter(random_tensor({7, 3}, 1, dtype)), parameter(random_tensor({70001}, 2, dtype)),
                              parameter(random_tensor({}, 3, dtype)), parameter(random_tensor({0, 4}, 4, dtype))};
  list.push_back(parameter(alias(random_tensor({5, 6}, 5, dtype), {6, 5}, {1, 6}, 0)));
  return list;
}
void steps(Optimizer& o, int count, DType dtype, double scale = 1) {
  for (int t = 1; t <= count; ++t) {
    u64 key = 100;
    for (const Tensor& p : o.parameters()) p.set_grad(random_tensor(p.shape(), ++key * 10 + static_cast<u64>(t), dtype));
    o.step(scale);
  }
}
double largest_difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k) most = std::max(most, std::fabs(x[k] - y[k]) / (1e-3 + std::fabs(y[k])));
  }
  return most;
}

}  // namespace

TEST_CASE("adamw: the fused sweep equals its twin") {
  for (const DType dtype : {kF64, kF32}) {
    for (const bool correction : {true, false}) {
      CAPTURE(name_of(dtype));
      CAPTURE(correction);
      const AdamWOptions options{.lr = 0.03, .betas = {0.8, 0.9}, .weight_decay = 0.1, .bias_correction = correction};
      const auto a = many(dtype), b = many(dtype);
      AdamW fused(a, options), composed(b, options);
      steps(fused, 3, dtype, 0.7);
      const ExplainMode explain;
      steps(composed, 3, dtype, 0.7);
      CHECK(largest_difference(a, b) < (dtype == kF64 ? 1e-12 : 2e-5));
    }
  }
  const auto a = many(kF64), b = many(kF64);
  Adam fused(a, {.lr = 0.03, .weight_decay = 0.1}), composed(b, {.lr = 0.03, .weight_decay = 0.1});
  steps(fused, 3, kF64);
  const ExplainMode explain;
  steps(composed, 3, kF64);
  CHECK(largest_difference(a, b) < 1e-12);
}

TEST_CASE("an optimizer's bits do not depend on the number of threads") {
  const int before = num_threads();
  std::vector<std::vector<Tensor>> results;
  for (const int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    results.push_back(many(kF32));
    AdamW o(results.back(), {.lr = 0.03});
    steps(o, 3, kF32);
  }
  set_num_threads(before);
  for (size_t k = 1; k < results.size(); ++k)
    for (size_t i = 0; i < results[0].size(); ++i) CHECK(difference(results[k][i], results[0][i]) == "");
}

TEST_CASE("parameters without a gradient are passed over") {
  const Tensor a = parameter(make<double>({2}, {1, 2}), "a"), b = parameter(make<double>({2}, {3, 4}), "b");
  AdamW o({a, b}, {.lr = 0.1});
  a.set_grad(make<double>({2}, {1, 1}));
  o.step();
  CHECK(b.to_vector<double>() == std::vector<double>{3, 4});
  std::vector<std::string> names;
  for (const auto& [name, t] : o.state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"lr.0", "weight_decay.0", "momentum", "step.a", "exp_avg.a", "exp_avg_sq.a"});
  // Its own count of updates: b's first one is corrected as a first one.
  b.set_grad(make<double>({2}, {1, 1}));
  o.step();
  CHECK(b.to_vector<double>()[0] == doctest::Approx(3 * (1 - 0.1 * 0.01) - 0.1).epsilon(1e-9));
  o.zero_grad();
  CHECK(!a.grad().defined());
  o.step();  // nothing to do
}

TEST_CASE("a step raises versions and keeps history out") {
  const Tensor w = parameter(make<double>({2}, {1, 2}), "w");
  for (const bool adam : {true, false}) {
    std::unique_ptr<Optimizer> o;
    if (adam) o = std::make_unique<AdamW>(std::vector<Tensor>{w});
    else o = std::make_unique<SGD>(std::vector<Tensor>{w}, SGDOptions{.lr = 0.1});
    const Tensor loss = sum(w * w);
    w.set_grad(make<double>({2}, {1, 1}));
    const u32 version = w.version();
    o->step();
    CHECK(w.version() > version);
    CHECK(w.is_leaf());
    const std::string text = error_text([&] { loss.backward(); });
    CAPTURE(text);
    CHECK(has(text, adam ? "AdamW" : "sub_"));
    o->zero_grad();
  }
}

TEST_CASE("groups have their own settings") {
  const Tensor a = parameter(make<double>({1}, {1})), b = parameter(make<double>({1}, {1}));
  SGD o({{.params = {a}}, {.params = {b}, .lr = 0.5, .weight_decay = 0.0}}, {.lr = 0.1, .weight_decay = 1});
  CHECK(o.groups() == 2);
  CHECK(o.lr(0) == 0.1);
  CHECK(o.lr(1) == 0.5);
  CHECK(o.weight_decay(0) == 1);
  for (const Tensor& p : o.parameters()) p.set_grad(make<double>({1}, {1}));
  o.step();
  CHECK(a.item<double>() == doctest::Approx(1 - 0.1 * 2));
  CHECK(b.item<double>() == doctest::Approx(1 - 0.5));
  o.set_lr(0.25);
  CHECK(o.lr(1) == 0.25);
  CHECK(has(error_text([&] { o.set_lr(2, 0.1); }), "no group 2"));
  CHECK(has(error_text([&] { o.set_lr(NAN); }), "lr = nan"));
}

TEST_CASE("state goes through a file and training goes on bit for bit") {
  const TemporaryFolder folder;
  const auto run = [&](auto make_optimizer) {
    const auto whole = many(kF32);
    const auto a = make_optimizer(whole);
    steps(*a, 5, kF32);
    const auto cut = many(kF32);
    const auto first = make_optimizer(cut);
    steps(*first, 2, kF32);
    save_safetensors(folder / "optimizer.safetensors", first->state_dict());
    const auto second = make_optimizer(cut);
    const SafeTensors file = load_safetensors(folder / "optimizer.safetensors");
    OptimizerState state;
    for (const std::string& name : file.names()) state.emplace_back(name, file.get(name));
    second->load_state_dict(state);
    for (int t = 3; t <= 5; ++t) {
      u64 key = 100;
      for (const Tensor& p : cut) p.set_grad(random_tensor(p.shape(), ++key * 10 + static_cast<u64>(t), kF32));
      second->step();
    }
    for (size_t i = 0; i < whole.size(); ++i) CHECK(difference(cut[i], whole[i]) == "");
  };
  for (const char* spec : {"adamw(lr=0.03)", "adamw(lr=0.03, bias_correction=false, eps=1e-6)", "adam(lr=0.03, weight_decay=0.1)",
                           "sgd(lr=0.03)", "sgd(lr=0.03, momentum=0.9, dampening=0.2, weight_decay=0.01)",
                           "sgd(lr=0.03, momentum=0.9, nesterov=true)", "lamb(lr=0.03)", "adafactor", "adafactor(lr=0.03, weight_decay=0.1)"}) {
    CAPTURE(std::string(spec));
    run([&](const std::vector<Tensor>& p) { return make_optimizer(one_group(p), optimizer_tables().resolve(nn::parse_spec(spec))); });
  }
}

TEST_CASE("a state that does not fit is listed in full and changes nothing") {
  const Tensor w = parameter(make<double>({2}, {1, 2}), "w");
  AdamW o({w}, {.lr = 0.1});
  w.set_grad(make<double>({2}, {1, 1}));
  o.step();
  OptimizerState state = o.state_dict();
  const std::string before = difference(state.back().second, o.state_dict().back().second);
  CHECK(before == "");
  for (auto& [name, t] : state) {
    if (name == "exp_avg.w") t = make<double>({3}, {9, 9, 9});
    if (name == "lr.0") t = make<double>({}, {-1});
    if (name == "exp_avg_sq.w") name = "exp_avg_sq.v";
  }
  const std::string text = error_text([&] { o.load_state_dict(state); });
  CAPTURE(text);
  CHECK(has(text, "exp_avg.w: f64 [3], must be f64 [2]"));
  CHECK(has(text, "lr.0: -1"));
  CHECK(has(text, "exp_avg_sq.w: missing"));
  CHECK(has(text, "exp_avg_sq.v: unexpected"));
  CHECK(o.lr() == 0.1);
}

TEST_CASE("bad parameters and options are errors") {
  const Tensor w = parameter(make<double>({2}, {1, 2}), "w");
  CHECK(has(error_text([] { AdamW o(std::vector<Tensor>{}); }), "AdamW: there are no parameters"));
  CHECK(has(error_text([&] { AdamW o({w, w}); }), "given twice"));
  CHECK(has(error_text([&] { SGD o({w * w}); }), "optimizers take leaves"));
  CHECK(has(error_text([&] { SGD o({Tensor()}); }), "undefined"));
  CHECK(has(error_text([&] { AdamW o({w}, {.lr = -1}); }), "AdamW: lr = -1: must be finite and >= 0"));
  CHECK(has(error_text([&] { AdamW o({w}, {.betas = {0.9, 1}}); }), "betas[1] = 1: must be in [0, 1)"));
  CHECK(has(error_text([&] { Adam o({w}, {.eps = NAN}); }), "eps = nan"));
  CHECK(has(error_text([&] { SGD o({w}, {.nesterov = true}); }), "nesterov needs momentum"));
  CHECK(has(error_text([&] { SGD o({w}); o.set_momentum(0.5); }), "without momentum"));
  CHECK(has(error_text([&] { Adafactor o({w}, {.decay = 0.5}); }), "decay = 0.5: must be < 0"));
}
