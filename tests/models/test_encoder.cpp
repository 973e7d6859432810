// Encoder and LanguageModel: names, patterns, sharing, norms, causality, padding, errors, gradients.
#include <fmt/ranges.h>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/convert.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "models/language_model.h"
#include "nn/module/summary.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::models;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;
using Names = std::vector<std::string>;

namespace {

Names names_of(const nn::ModuleBase& m) {
  Names names;
  for (const nn::NamedParameter& p : m.named_parameters()) names.push_back(p.name);
  return names;
}
std::string shapes(const nn::ModuleBase& m, const std::string& part) {
  std::string text;
  for (const nn::NamedParameter& p : m.named_parameters())
    if (p.name.find(part) != std::string::npos) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", p.name, p.tensor.shape());
  return text;
}
EncoderConfig small(const std::string& position) {
  return {.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 12, .position = position};
}

}  // namespace

TEST_CASE("encoder: parameter names") {
  const LanguageModel model({.vocab_size = 5, .encoder = {.embed_dim = 8, .num_heads = 2, .num_layers = 1, .ffn_dim = 12,
                                                          .position = "learned(max_len=6) + huang-m2(clip=1)"}});
  CHECK(names_of(model) == Names{
      "token_embedding.weight", "encoder.position.weight", "encoder.layers.0.attention.q_proj.weight",
      "encoder.layers.0.attention.q_proj.bias", "encoder.layers.0.attention.k_proj.weight", "encoder.layers.0.attention.k_proj.bias",
      "encoder.layers.0.attention.v_proj.weight", "encoder.layers.0.attention.v_proj.bias", "encoder.layers.0.attention.out_proj.weight",
      "encoder.layers.0.attention.out_proj.bias", "encoder.layers.0.attention.position.scale", "encoder.layers.0.norm1.weight",
      "encoder.layers.0.norm1.bias", "encoder.layers.0.ffn.0.weight", "encoder.layers.0.ffn.0.bias", "encoder.layers.0.ffn.2.weight",
      "encoder.layers.0.ffn.2.bias", "encoder.layers.0.norm2.weight", "encoder.layers.0.norm2.bias", "encoder.norm.weight",
      "encoder.norm.bias", "head.weight", "head.bias"});
  LanguageModelConfig tied{.vocab_size = 5, .encoder = small("none"), .tie_embeddings = true, .head_bias = false};
  tied.encoder.norm = "post";
  const LanguageModel two(tied);
  CHECK(shapes(two, "head") == "");
  CHECK(shapes(two, "encoder.norm") == "");
  CHECK(shapes(two, "token") == "token_embedding.weight [5, 8]");
  tied.head_bias = true;
  CHECK(shapes(LanguageModel(tied), "head") == "head.bias [5]");
  EncoderConfig plain = small("none");
  plain.attention_bias = plain.ffn_bias = false;
  plain.norm_type = "rms";
  CHECK(shapes(Encoder(plain), "bias") == "");
}

TEST_CASE("encoder: patterns per layer, and parameters that all layers share") {
  CHECK(shapes(Encoder(small("sinusoid + shaw(clip=1), sinusoid + huang-m1(clip=2)")), "position") ==
        "layers.0.attention.position.key_table [3, 4]; layers.1.attention.position.scale [2, 3]");
  CHECK(shapes(Encoder(small("[huang-m4(clip=1)]*2")), "position") ==
        "layers.0.attention.position.table [3, 4]; layers.1.attention.position.table [3, 4]");
  CHECK(shapes(Encoder(small("learned(max_len=3) + shaw(clip=1, share_layers=true)")), "position") ==
        "position.weight [3, 8]; position.key_table [3, 4]");
  CHECK(shapes(Encoder(small("shaw(clip=1, share_layers=true), huang-m4(clip=2)")), "position") ==
        "position.key_table [3, 4]; layers.1.attention.position.table [5, 4]");
  // Two owners in the stack: qualified by name.
  CHECK(shapes(Encoder(small("huang-m1(clip=1, share_layers=true) + huang-m2(clip=1, share_layers=true)")), "position") ==
        "position.huang-m1.scale [2, 2]; position.huang-m2.scale [2, 3]");
  CHECK(error_text([] { Encoder e(small("shaw(clip=1, share_layers=true), shaw(clip=2, share_layers=true)")); }) ==
        "position: shaw(clip=1, share_layers=true) and shaw(clip=2, share_layers=true) would share the parameter position.key_table; "
        "use share_layers=false, or the same options in every layer");

  // Shared is the same as own parameters with equal values; its gradient is their sum.
  const test::DefaultF64 dtype;
  Encoder shared(small("huang-m4(clip=1, share_layers=true)")), own(small("huang-m4(clip=1)"));
  test::randomise(shared);
  nn::StateDict state;
  for (const auto& [name, t] : shared.state_dict()) {
    if (name == "position.table") {
      state.emplace_back("layers.0.attention.position.table", t);
      state.emplace_back("layers.1.attention.position.table", t);
    } else {
      state.emplace_back(name, t);
    }
  }
  own.load_state_dict(state);
  const Tensor x = test::tokens(2, 5), g = randn({2, 5, 8});
  const Tensor a = shared(x, {.positions = nn::Positions::range(5)}), b = own(x, {.positions = nn::Positions::range(5)});
  CHECK(largest_difference(a, b) < 1e-13);
  a.backward(g);
  b.backward(g);
  const auto gradient = [](const nn::ModuleBase& m, const std::string& name) {
    for (const nn::NamedParameter& p : m.named_parameters())
      if (p.name == name) return p.tensor.grad();
    return Tensor();
  };
  CHECK(largest_difference(gradient(shared, "position.table"), gradient(own, "layers.0.attention.position.table") +
                                                                   gradient(own, "layers.1.attention.position.table")) < 1e-12);
}

TEST_CASE("encoder: no future, no padding, prefixes, for every encoding") {
  for (const std::string& spec : test::encoding_specs()) {
    for (const char* norm : {"pre", "post"}) {
      CAPTURE(spec);
      CAPTURE(norm);
      const test::DefaultF64 dtype;
      LanguageModelConfig c{.vocab_size = 7, .encoder = small(spec)};
      c.encoder.causal = true;
      c.encoder.norm = norm;
      LanguageModel model(c);
      test::randomise(model);
      const Tensor ids = make<i64>({2, 6}, {1, 2, 3, 4, 5, 6, 6, 0, 1, 1, 3, 2}), other = ids.clone();
      other.narrow(1, 4, 2).fill_(0);
      const Tensor y = model(ids, {.positions = nn::Positions::range(6)}).detach();
      const Tensor changed = model(other, {.positions = nn::Positions::range(6)}).detach();
      CHECK(test::difference(y.narrow(1, 0, 4), changed.narrow(1, 0, 4)) == "");
      CHECK(largest_difference(y.narrow(1, 4, 2), changed.narrow(1, 4, 2)) > 1e-6);
      CHECK(largest_difference(model(ids.narrow(1, 0, 3), {.positions = nn::Positions::range(3)}), y.narrow(1, 0, 3)) < 1e-12);
      // Left and right padding.
      for (const i64 left : {0, 2}) {
        const Tensor wide = zeros({2, 8}, kI64), keep = zeros({2, 8}, kB8);
        wide.narrow(1, left, 6).copy_(ids);
        keep.narrow(1, left, 6).fill_(true);
        const Tensor out = model(wide, {.positions = nn::Positions::from_mask(keep), .keep = keep});
        CHECK(largest_difference(out.narrow(1, left, 6), y) < 1e-12);
      }
    }
  }
}

TEST_CASE("encoder: weights of every layer") {
  const test::DefaultF64 dtype;
  LanguageModel model({.vocab_size = 7, .encoder = small("shaw(clip=2)")});
  test::randomise(model);
  const auto weights = model.attention_weights(make<i64>({1, 4}, {1, 2, 3, 0}), {.positions = nn::Positions::range(4)});
  REQUIRE(weights.size() == 2);
  for (const Tensor& w : weights) {
    CHECK(w.shape() == Shape{1, 2, 4, 4});
    CHECK(largest_difference(sum(w, -1), ones({1, 2, 4})) < 1e-13);
    CHECK(!w.requires_grad());
  }
  CHECK(largest_difference(weights[0], weights[1]) > 1e-3);
}

TEST_CASE("encoder: gradcheck of pre- and post-norm layers") {
  const test::DefaultF64 dtype;
  for (const char* norm : {"pre", "post"})
    for (const char* type : {"layer", "rms"}) {
      EncoderConfig c = small("rope + huang-m4(clip=1)");
      c.norm = norm;
      c.norm_type = type;
      c.num_layers = 1;
      c.activation = "silu";
      Encoder e(c);
      test::randomise(e);
      std::vector<Tensor> inputs = {test::tokens(1, 3).requires_grad_()};
      for (const Tensor& p : e.parameters()) inputs.push_back(p);
      const GradcheckReport r = gradcheck(
          [&](const std::vector<Tensor>& v) { return std::vector<Tensor>{e(v[0], {.positions = nn::Positions::range(3)})}; }, inputs,
          {.all_elements = 24});
      CHECK_MESSAGE(r.passed, norm << " " << type << ": " << r.message);
    }
}

TEST_CASE("encoder: dropout acts in training only, in its places") {
  EncoderConfig c = small("none");
  c.dropout = c.embedding_dropout = c.attention_dropout = 0.3;
  Encoder e(c);
  const Tensor x = ones({2, 4, 8});
  default_generator().start_capture({});
  (void)e(x, {});
  Names names;
  for (const NamedDraw& d : default_generator().take_captured()) names.push_back(d.name);
  std::sort(names.begin(), names.end());
  CAPTURE(fmt::format("{}", fmt::join(names, " ")));
  CHECK(names == Names{"rng.dropout", "rng.layers.0.attention.dropout", "rng.layers.0.dropout1.dropout",
                       "rng.layers.0.dropout2.dropout", "rng.layers.1.attention.dropout", "rng.layers.1.dropout1.dropout",
                       "rng.layers.1.dropout2.dropout"});
  e.eval();
  CHECK(test::difference(e(x, {}).detach(), e(x, {}).detach()) == "");
}

TEST_CASE("encoder: all problems of a config at once") {
  const std::string text = error_text([] {
    Encoder e({.embed_dim = 10, .num_heads = 4, .position = "rope + huang-m3", .attention = "dens", .norm = "mid", .norm_type = "batch",
               .norm_eps = 0, .activation = "gelo", .dropout = 1, .scale = 0});
  });
  for (const char* part : {"embed_dim = 10 is not divisible by num_heads = 4; set head_dim", "norm = mid: must be pre or post",
                           "norm_eps = 0: must be greater than 0", "scale = 0: must be greater than 0", "dropout = 1: must be at least 0",
                           "unknown activation gelo", "\"batch\" is neither layer nor rms", "huang-m3 redefines the content product",
                           "unknown attention dens"}) {
    CAPTURE(part);
    CHECK(has(text, part));
  }
  CHECK(has(error_text([] { Encoder e(small("[rope]*3")); }), "the pattern [rope]*3 names 3 layers, the model has 2"));
  CHECK(error_text([] { LanguageModel m({.vocab_size = 0, .encoder = small("none")}); }) ==
        "embedding: 0 rows of width 8: both must be at least 1");
  const LanguageModel m({.vocab_size = 4, .encoder = small("learned(max_len=3)")});
  CHECK(error_text([&] { (void)m(make<i64>({1, 2}, {0, 1}), {}); }) == "encoder: positions are missing: learned reads them");
  CHECK(error_text([&] { (void)m(make<i64>({2}, {0, 1}), {}); }) == "language_model: ids must be i64 [B, L], got i64 [2]");
  CHECK(error_text([&] { (void)m(make<i64>({1, 2}, {0, 1}), {.positions = nn::Positions::range(3)}); }) ==
        "encoder: positions [3] do not fit 2 tokens in 1 rows: must be [2] or [1, 2]");
  CHECK(has(error_text([&] { (void)m(make<i64>({1, 2}, {0, 4}), {.positions = nn::Positions::range(2)}); }), "outside the table of 4 rows"));
}

TEST_CASE("encoder: a training step is bit-equal for any number of threads") {
  const int before = num_threads();
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    manual_seed(5);
    LanguageModel model({.vocab_size = 11, .encoder = {.embed_dim = 32, .num_heads = 4, .position = "huang-m4(clip=4)", .dropout = 0.1}});
    const Tensor ids = randint(0, 11, {8, 64}), logits = model(ids, {.positions = nn::Positions::range(64)});
    const Tensor loss = cross_entropy(logits.view({512, 11}), ids.view({512}));
    loss.backward();
    std::vector<Tensor> now = {loss.detach()};
    for (const Tensor& p : model.parameters()) now.push_back(p.grad());
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(test::difference(first[i], now[i]) == "");
  }
  set_num_threads(before);
}

TEST_CASE("LanguageModel with classes is a tagger") {
  LanguageModel model({.vocab_size = 9, .encoder = small("none"), .classes = 3});
  CHECK(model(ones({2, 5}, kI64), {.positions = nn::Positions::range(5)}).shape() == Shape{2, 5, 3});
  CHECK(model.head.weight.shape() == Shape{3, model.encoder.config().embed_dim});
  CHECK(has(error_text([] { LanguageModel m({.vocab_size = 9, .encoder = small("none"), .classes = 3, .tie_embeddings = true}); }),
            "9 rows, but the head has 3 classes"));
}
