// Whole trainings of PyTorch models whose parameters have other names than ours: 50 losses and gradient norms.
//
// The files of tests/golden/curves hold parameters at the start, one batch that is trained on in every step, and the
// losses and norms of 50 steps. The environment variable WAYMARK_CURVES may name a folder with more, larger ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/engine/backward.h"
#include "core/io/safetensors.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "models/language_model.h"
#include "nn/layers/activation.h"
#include "nn/layers/linear.h"
#include "tests/test_level.h"
#include "train/optim/clip.h"
#include "train/optim/optimizer.h"

using namespace waymark;
using namespace waymark::test;

namespace {

namespace fs = std::filesystem;

bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }
std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

// Their parameters under our names; the packed qkv is three of ours.
nn::StateDict converted(const SafeTensors& file) {
  nn::StateDict state;
  for (const std::string& full : file.names()) {
    if (!begins(full, "param.")) continue;
    std::string name = full.substr(6);
    const Tensor t = file.get(full);
    if (begins(name, "blocks."))
      name = "encoder.layers." + name.substr(7);
    else if (begins(name, "norm.") || begins(name, "position."))
      name = "encoder." + name;
    name = replaced(name, "token.", "token_embedding.");
    name = replaced(name, ".out.", ".attention.out_proj.");
    name = replaced(name, ".up.", ".ffn.0.");
    name = replaced(name, ".down.", ".ffn.2.");
    if (name.find(".qkv.") == std::string::npos) {
      state.emplace_back(name, t);
      continue;
    }
    const i64 width = t.size(0) / 3;
    for (int part = 0; part < 3; ++part) {
      const std::string own = std::string(".attention.") + "qkv"[part] + "_proj.";
      state.emplace_back(replaced(name, ".qkv.", own), t.narrow(0, part * width, width));
    }
  }
  return state;
}

models::EncoderConfig encoder_config(const SafeTensors& file) {
  models::EncoderConfig c;
  c.num_layers = 0;
  for (const std::string& name : file.names())
    if (begins(name, "param.blocks.") && name.find(".norm1.weight") != std::string::npos) ++c.num_layers;
  const Shape position = file.find("param.position.weight")->shape;
  c.max_len = position[0];
  c.embed_dim = position[1];
  c.num_heads = c.embed_dim >= 128 ? c.embed_dim / 32 : 2;
  c.ffn_dim = file.find("param.blocks.0.up.weight")->shape[0];
  c.position = "learned";
  return c;
}

// The classifier of the Long Range Arena: mean over the tokens, two layers behind it.
struct PooledEncoder : nn::Module<PooledEncoder> {
  struct Head : nn::Module<Head> {
    Head(nn::ModuleBase& parent, std::string_view name, i64 width, i64 hidden, i64 classes)
        : Module(parent, name), first(*this, "0", width, hidden), second(*this, "2", hidden, classes) {}
    Tensor forward(const Tensor& x) const { return second(first(x).relu()); }
    nn::Linear first, second;
  };
  PooledEncoder(const models::EncoderConfig& c, i64 vocabulary, i64 hidden, i64 classes)
      : token_embedding(*this, "token_embedding", vocabulary, c.embed_dim),
        encoder(*this, "encoder", c),
        head(*this, "head", c.embed_dim, hidden, classes) {}
  Tensor forward(const Tensor& ids) const {
    return head(mean(encoder(token_embedding(ids), {.positions = nn::Positions::range(ids.size(1))}), 1));
  }
  nn::Embedding token_embedding;
  models::Encoder encoder;
  Head head;
};

// AdamW lr 3e-4, betas 0.9 0.95, eps 1e-8, weight decay 0.1 on all, clip 1, as the files say.
template <class Model, class Output> void follow(Model& model, const SafeTensors& file, Output output) {
  model.load_state_dict(converted(file));
  train::AdamW optimizer(model.parameters(), {.lr = 3e-4, .betas = {0.9, 0.95}, .eps = 1e-8, .weight_decay = 0.1});
  const std::vector<double> losses = file.get("output.loss").template to_vector<double>();
  const std::vector<double> norms = file.get("output.grad_norm").template to_vector<double>();
  const Tensor targets = file.get("input.targets").reshape({-1});
  REQUIRE(losses.size() == 50);
  double worst = 0;
  for (size_t t = 0; t < losses.size(); ++t) {
    optimizer.zero_grad();
    const Tensor logits = output(file.get("input.ids"));
    const Tensor loss = cross_entropy(logits.reshape({-1, logits.size(-1)}), targets);
    loss.backward();
    const double norm = train::grad_norm(model.parameters());
    optimizer.step(train::clip_factor(norm, 1));
    CAPTURE(t);
    CHECK(loss.template item<double>() == doctest::Approx(losses[t]).epsilon(1e-4));
    CHECK(norm == doctest::Approx(norms[t]).epsilon(5e-3));
    worst = std::max(worst, std::abs(loss.template item<double>() - losses[t]) / losses[t]);
  }
  MESSAGE("largest relative difference of 50 losses: " << worst);
}

void follow(const fs::path& path) {
  const SafeTensors file = load_safetensors(path);
  INFO(path.filename().string() << ": " << file.metadata().at("source"));
  REQUIRE(file.metadata().at("source").find(
              "AdamW lr 0.0003 betas 0.9 0.95 eps 1e-8 weight decay 0.1 on all, clip 1.0") != std::string::npos);
  models::EncoderConfig c = encoder_config(file);
  const i64 vocabulary = file.find("param.token.weight")->shape[0];
  if (file.contains("param.head.weight")) {
    c.causal = true;
    models::LanguageModel model({.vocab_size = vocabulary, .encoder = c, .head_bias = false});
    i64 count = 0;
    for (const Tensor& p : model.parameters()) count += p.numel();
    CHECK(fmt::format("{}", count) == file.metadata().at("parameters"));
    follow(model, file,
           [&](const Tensor& ids) { return model(ids, {.positions = nn::Positions::range(ids.size(1))}); });
  } else {
    const Shape second = file.find("param.head.2.weight")->shape;
    PooledEncoder model(c, vocabulary, second[1], second[0]);
    follow(model, file, [&](const Tensor& ids) { return model(ids); });
  }
}

}  // namespace

TEST_CASE("50 steps of PyTorch's trainings") {
  std::vector<fs::path> folders = {fs::path(WAYMARK_SOURCE_DIR) / "tests/golden/curves"};
  if (const char* more = std::getenv("WAYMARK_CURVES"); more && *more) folders.emplace_back(more);
  int followed = 0;
  for (const fs::path& folder : folders)
    for (const auto& e : fs::directory_iterator(folder)) {
      if (e.path().extension() != ".safetensors") continue;
      // Everything but the smallest takes minutes.
      if (level() != Level::full && fs::file_size(e.path()) > 200'000) continue;
      follow(e.path());
      ++followed;
    }
  CHECK(followed >= 1);
}
