// Training traces of PyTorch models: losses, gradient norms and final parameters after 12 to 20 updates.
#include <cmath>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/loss.h"
#include "core/ops/shape.h"
#include "models/language_model.h"
#include "tests/golden_case.h"
#include "train/optim/adam.h"
#include "train/optim/clip.h"

using namespace waymark;
using test::GoldenCase;

TEST_CASE("golden: training traces") {
  for (const char* name : {"training_causal_none_tied", "training_huang_m2_padded", "training_huang_m4_padded", "training_post_learned_padded",
                           "training_pre_learned", "training_pre_learned_padded_tied", "training_rope_causal", "training_shaw"}) {
    CAPTURE(name);
    const GoldenCase c(name);
    const test::DefaultDType dtype(kF64);
    const auto &m = c.config().at("model"), &o = c.config().at("optimizer");
    models::LanguageModelConfig config{.vocab_size = m.at("vocab_size").get<i64>(),
                                       .encoder = {.embed_dim = m.at("embed_dim").get<i64>(), .num_heads = m.at("num_heads").get<i64>(),
                                                   .num_layers = m.at("num_layers").get<i64>(), .ffn_dim = m.at("ffn_dim").get<i64>(),
                                                   .position = m.at("position").get<std::string>(),
                                                   .attention = m.value("attention", "dense"), .causal = m.at("causal").get<bool>(),
                                                   .norm = m.at("norm").get<std::string>(), .norm_eps = m.at("norm_eps").get<double>(),
                                                   .activation = m.at("activation").get<std::string>()},
                                       .tie_embeddings = m.at("tie_embeddings").get<bool>(),
                                       .head_bias = m.value("head_bias", true)};
    models::LanguageModel model(config);
    model.load_state_dict(c.with_prefix("param."));
    REQUIRE(o.at("name").get<std::string>() == "adamw");
    const double decay = o.at("weight_decay").get<double>();
    const bool matrices = o.at("decay").get<std::string>() == "matrices";
    train::ParamGroup yes{.params = {}, .weight_decay = decay}, no{.params = {}, .weight_decay = 0};
    for (const nn::NamedParameter& p : model.named_parameters())
      (!matrices || (p.tensor.dim() >= 2 && !p.no_decay) ? yes : no).params.push_back(p.tensor);
    std::vector<train::ParamGroup> groups = {yes};
    if (!no.params.empty()) groups.push_back(no);
    train::AdamW optimizer(groups, {.betas = o.at("betas").get<std::array<double, 2>>(), .eps = o.at("eps").get<double>()});

    const Tensor ids = c.get("input.ids"), targets = c.get("input.targets"), mask = c.mask("input.mask");
    const i64 steps = ids.size(0), batch = ids.size(1), length = ids.size(2), vocabulary = config.vocab_size;
    const double clip = c.config().at("clip_norm").get<double>();
    const Tensor losses = make_empty({steps}, kF64), norms = make_empty({steps}, kF64);
    for (i64 t = 0; t < steps; ++t) {
      optimizer.zero_grad();
      const Tensor logits = model(ids[t], {.positions = nn::Positions::range(length), .keep = mask.defined() ? mask[t] : Tensor()});
      const Tensor loss = cross_entropy(logits.view({batch * length, vocabulary}), targets[t].reshape({batch * length}));
      loss.backward();
      losses.at<double>({t}) = loss.item<double>();
      norms.at<double>({t}) = train::clip_grad_norm_(model.parameters(), clip > 0 ? clip : INFINITY);
      optimizer.set_lr(c.config().at("lr").at(static_cast<size_t>(t)).get<double>());
      optimizer.step();
    }
    c.compare("output.loss", losses);
    c.compare("output.grad_norm", norms);
    for (const nn::NamedParameter& p : model.named_parameters()) c.compare("output.param." + p.name, p.tensor);
  }
}
