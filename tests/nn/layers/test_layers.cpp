// Layers: names, initial values, values, modes, errors.
#include <doctest/doctest.h>

#include <cmath>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/random/generator.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/loss.h"
#include "nn/layers/norm.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::make;
using V = std::vector<double>;

namespace {

std::string shapes(const ModuleBase& m) {
  std::string text;
  for (const NamedParameter& p : m.named_parameters())
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", p.name, p.tensor.shape(), p.no_decay ? " no_decay" : "");
  return text;
}
double largest(const Tensor& t) {
  double v = 0;
  for (const double x : t.to_vector<double>()) v = std::max(v, std::abs(x));
  return v;
}
struct Root : Module<Root> {};

}  // namespace

TEST_CASE("linear") {
  manual_seed(3);
  Linear fc(100, 200);
  CHECK(shapes(fc) == "weight [200, 100]; bias [200] no_decay");
  CHECK(largest(fc.weight) <= 0.1f);
  CHECK(largest(fc.weight) > 0.0999);
  CHECK(largest(fc.bias) <= 0.1f);
  CHECK(largest(fc.bias) > 0.095);
  CHECK(shapes(Linear(3, 2, false)) == "weight [2, 3]");
  Linear small(2, 1);
  small.load_state_dict({{"weight", make<float>({1, 2}, {2, 3})}, {"bias", make<float>({1}, {-1})}});
  CHECK(small(make<float>({2, 2}, {1, 1, 0, 2})).to_vector<double>() == V{4, 5});
  CHECK(error_text([] { Linear(0, 3); }) == "linear: 0 features in, 3 out: both must be at least 1");
}

TEST_CASE("embedding") {
  manual_seed(3);
  Embedding e(50, 40, -1);
  double square = 0;
  for (const double v : e.weight.to_vector<double>()) square += v * v / (49 * 40);
  CHECK(square == doctest::Approx(1).epsilon(0.1));
  CHECK(largest(e.weight[49]) == 0);
  const Tensor y = e(make<i64>({1, 2}, {49, 3}));
  CHECK(y.shape() == Shape{1, 2, 40});
  sum(y).backward();
  CHECK(largest(e.weight.grad()[49]) == 0);
  CHECK(largest(e.weight.grad()[3]) == 1);
  CHECK(largest(Embedding(4, 3, {}, init::constant(7)).weight) == 7);
  CHECK(error_text([] { Embedding(4, 3, 4); }) == "embedding: padding_idx 4 is outside the table of 4 rows");
  CHECK(error_text([] { Embedding(0, 3); }) == "embedding: 0 rows of width 3: both must be at least 1");
}

TEST_CASE("norms") {
  LayerNorm layer(4);
  RMSNorm rms(4, 1e-6);
  CHECK(shapes(layer) == "weight [4] no_decay; bias [4] no_decay");
  CHECK(shapes(rms) == "weight [4] no_decay");
  const Tensor x = make<float>({1, 4}, {1, 2, 3, 4});
  const V y = layer(x).to_vector<double>();
  CHECK(y[0] == doctest::Approx(-1.5 / std::sqrt(1.25 + 1e-5)));
  CHECK(y[3] == doctest::Approx(1.5 / std::sqrt(1.25 + 1e-5)));
  CHECK(rms(x).to_vector<double>()[1] == doctest::Approx(2 / std::sqrt(7.5 + 1e-6)));
  Root root;
  Norm a(root, "a", norm_type("layer"), 4), b(root, "b", norm_type("rms"), 4, 1e-6);
  CHECK(shapes(root) == "a.weight [4] no_decay; a.bias [4] no_decay; b.weight [4] no_decay");
  CHECK(test::difference(a(x).detach(), layer(x).detach()) == "");
  CHECK(test::difference(b(x).detach(), rms(x).detach()) == "");
  CHECK(error_text([] { (void)norm_type("batch"); }) == "norm: \"batch\" is neither layer nor rms");
  CHECK(error_text([] { LayerNorm(4, 0); }) == "layer_norm: eps is 0: must be greater than 0");
}

TEST_CASE("dropout draws from the stream of its path, in training only") {
  Root root;
  Dropout drop(root, "drop", 0.5);
  const Tensor x = ones({64, 64});
  manual_seed(4);
  default_generator().start_capture({"drop.dropout"});
  const Tensor y = drop(x);
  CHECK(default_generator().take_captured().size() == 1);
  const double share = mean(eq(y, 0).to(kF32)).item<double>();
  CHECK(share == doctest::Approx(0.5).epsilon(0.1));
  CHECK(largest(y) == 2);
  drop.eval();
  CHECK(drop(x).is(x));
  CHECK(error_text([] { Dropout(1.0); }) == "dropout: p is 1: must be at least 0 and less than 1");
}

TEST_CASE("activations by name, feed-forward") {
  const Tensor x = make<double>({3}, {-1, 0, 2});
  CHECK(Activation("relu")(x).to_vector<double>() == V{0, 0, 2});
  CHECK(Activation("gelu")(x).to_vector<double>()[2] == doctest::Approx(1.9544997361036416).epsilon(1e-12));
  CHECK(Activation("gelu_tanh")(x).to_vector<double>()[2] == doctest::Approx(1.9545976940877752).epsilon(1e-12));
  CHECK(Activation("silu")(x).to_vector<double>()[2] == doctest::Approx(1.7615941559557649).epsilon(1e-12));
  CHECK(error_text([] { Activation("gelo"); }) == "activation: unknown activation gelo. Did you mean gelu or relu?");
  CHECK(shapes(FeedForward(4, 6)) == "0.weight [6, 4]; 0.bias [6] no_decay; 2.weight [4, 6]; 2.bias [4] no_decay");
  CHECK(shapes(FeedForward(4, 6, "relu", false)) == "0.weight [6, 4]; 2.weight [4, 6]");
  FeedForward ffn(1, 1, "relu");
  ffn.load_state_dict({{"0.weight", make<float>({1, 1}, {2})}, {"0.bias", make<float>({1}, {-1})},
                       {"2.weight", make<float>({1, 1}, {3})}, {"2.bias", make<float>({1}, {0.5})}});
  CHECK(ffn(make<float>({2, 1}, {0, 2})).to_vector<double>() == V{0.5, 9.5});
}

TEST_CASE("losses as modules equal the functions") {
  const Tensor x = make<float>({2, 3}, {1, 2, 3, 1, 1, 1}), ids = make<i64>({2}, {2, -100}), y = make<float>({2, 3}, {0, 0, 0, 0, 0, 3});
  CHECK(CrossEntropyLoss()(x, ids).item<double>() == doctest::Approx(0.4076059644));
  CHECK(CrossEntropyLoss({.ignore_index = 2, .reduction = "sum"})(x, make<i64>({2}, {2, 0})).item<double>() == doctest::Approx(std::log(3.0)));
  CHECK(MSELoss()(x, y).item<double>() == doctest::Approx(20.0 / 6));
  CHECK(MSELoss("sum")(x, y).item<double>() == doctest::Approx(20));
  CHECK(L1Loss()(x, y).item<double>() == doctest::Approx(10.0 / 6));
}
