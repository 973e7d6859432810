// Kinds `encoder_layer` and `training`.
#include "core/ops/convert.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "models/language_model.h"
#include "train/optim/clip.h"
#include "train/verify/kinds.h"

namespace waymark::train {
namespace {

models::EncoderConfig encoder_keys(JsonReader& r, const AttentionKeys& keys) {
  const nn::AttentionConfig& a = keys.config;
  if (!a.out_proj) r.refuse("out_proj", "must be true: a layer has its output projection");
  models::EncoderConfig e;
  e.embed_dim = a.embed_dim;
  e.num_heads = a.num_heads;
  e.head_dim = a.head_dim;
  e.num_kv_heads = a.num_kv_heads;
  e.position = a.position;
  e.attention = a.attention;
  e.causal = a.causal;
  e.mask = keys.mask.to_string();
  e.scale = a.scale;
  e.attention_bias = a.bias;
  e.ffn_dim = size_key(r, "ffn_dim", 1);
  e.activation = r.maybe_text("activation").value_or("gelu");
  e.norm = r.maybe_text("norm").value_or("pre");
  e.norm_type = r.maybe_text("norm_type").value_or("layer");
  e.norm_eps = r.maybe_number("norm_eps").value_or(1e-5);
  e.ffn_bias = r.maybe_flag("ffn_bias").value_or(true);
  return e;
}

// Sizes of a layer, which the file's parameters must have.
bool need_layer(CaseContext& c, const std::string& prefix, const models::EncoderConfig& e, const nn::EncodingSum& encodings,
                const nn::EncodingSizes& sizes) {
  return need_shape(c, prefix + "ffn.0.weight", {e.ffn_dim, e.embed_dim}) &&
         need_shape(c, prefix + "attention.q_proj.weight", {sizes.num_heads * sizes.head_dim, e.embed_dim}) &&
         need_parameters(c, encodings, sizes);
}

struct OneLayer : nn::Module<OneLayer> {
  OneLayer(const models::EncoderConfig& config, const nn::AttentionSetup& setup) : layer(*this, "layer", config, setup) {}
  models::EncoderLayer layer;
};

}  // namespace

void run_encoder_layer_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const AttentionKeys keys(r, false);
  const models::EncoderConfig config = encoder_keys(r, keys);
  r.finish();
  const nn::AttentionSetup setup = nn::resolve_attention(keys.config);
  if (!nn::at_input(setup.encodings).empty()) return c.problem("config.position: an input-site encoding belongs to the stack, not to a layer");
  need_axes(c, "input.x", "[B, L, E]");
  if (!need_shape(c, "input.x", {-1, -1, config.embed_dim}) || !need_layer(c, "param.", config, setup.encodings, setup.sizes)) return;
  OneLayer root(config, setup);
  c.parameters(root.layer);
  const Tensor x = leaf_of(c, "input.x");
  const models::EncoderCall call{.positions = positions_or_range(c, "input.positions", x.size(1)), .keep = keep_of(c, "input.mask"),
                                 .mask = keys.mask, .arrays = mask_arrays(c), .shift = keys.shift};
  const Tensor y = root.layer(x, call);
  if (call.keep.defined()) c.compare_rows("output", y, call.keep);
  else c.compare("output", y);
  compare_gradients(c, {{"output", y, call.keep}}, {{"x", x}}, &root.layer);
}

void run_training_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader top(c.config(), "config");
  JsonReader m(top.need("model"), "config", "model");
  models::LanguageModelConfig config;
  config.vocab_size = size_key(m, "vocab_size", 1);
  const AttentionKeys keys(m, false);
  if (keys.shift != 0) m.refuse("shift", "must be 0: a model trains with the borders that it has");
  config.encoder = encoder_keys(m, keys);
  config.encoder.num_layers = size_key(m, "num_layers", 1);
  config.tie_embeddings = m.maybe_flag("tie_embeddings").value_or(false);
  config.head_bias = m.maybe_flag("head_bias").value_or(true);
  m.finish();
  Json::Object options = top.object("optimizer");
  const double clip = clip_norm_key(c.config());
  top.get("clip_norm");
  top.get("lr");
  top.finish();
  JsonReader own(top.need("optimizer"), "config", "optimizer");
  const std::string name = own.text("name"), decay = own.maybe_text("decay").value_or("all");
  if (decay != "all" && decay != "matrices") own.refuse("decay", fmt::format("is \"{}\"; it must be all or matrices", decay));
  std::erase_if(options, [](const Json::Member& o) { return o.first == "name" || o.first == "decay"; });

  const Tensor ids = c.get("input.ids"), targets = c.get("input.targets"), mask = keep_of(c, "input.mask");
  for (const char* tensor : {"input.ids", "input.targets", "input.mask"}) need_axes(c, tensor, "[T, B, L]");
  for (const char* tensor : {"input.targets", "input.mask"})
    if (c.has(tensor) && c.get(tensor).shape() != ids.shape()) fail("verify", "{} is {}, but input.ids is {}", tensor, c.get(tensor).shape(), ids.shape());
  const i64 steps = ids.size(0), length = ids.size(2);
  // Rows of a learned table that names no max_len: as many as the file has.
  if (c.has("param.encoder.position.weight")) config.encoder.max_len = c.get("param.encoder.position.weight").size(0);
  const std::vector<double> rates = rates_key(c.config(), steps);
  if (!need_shape(c, "param.token_embedding.weight", {config.vocab_size, config.encoder.embed_dim})) return;
  const std::string last = fmt::format("param.encoder.layers.{}.", config.encoder.num_layers - 1);
  if (!c.writing() && c.with_prefix(last).empty()) return c.problem("the file has no parameters " + last + "*");
  const models::EncoderPlan plan = models::plan_encoder(config.encoder);
  for (const nn::EncodingSum& encodings : plan.specs.encodings)
    if (!need_layer(c, last, config.encoder, encodings, plan.specs.sizes)) return;
  models::LanguageModel model(config);
  c.parameters(model);

  ParamGroup decayed, others;
  others.weight_decay = 0;
  for (const nn::NamedParameter& p : model.named_parameters())
    (decay == "all" || (p.tensor.dim() >= 2 && !p.no_decay) ? decayed : others).params.push_back(p.tensor);
  std::vector<ParamGroup> groups{decayed};
  if (!others.params.empty()) groups.push_back(others);
  if (!rates.empty()) {  // in place of the optimizer's own
    std::erase_if(options, [](const Json::Member& o) { return o.first == "lr"; });
    options.emplace_back("lr", rates[0]);
  }
  const auto optimizer = optimizer_from_case(groups, name, options);

  std::vector<double> losses, norms;
  for (i64 t = 0; t < steps; ++t) {
    optimizer->zero_grad();
    const Tensor keep = mask.defined() ? mask.select(0, t) : Tensor();
    const Tensor logits = model(ids.select(0, t), {.positions = nn::Positions::range(length), .keep = keep});
    const Tensor loss = cross_entropy(logits.reshape({-1, config.vocab_size}), targets.select(0, t).reshape({-1}));
    loss.backward();
    losses.push_back(loss.item<double>());
    norms.push_back(grad_norm(model.parameters()));
    if (!rates.empty()) optimizer->set_lr(rates[static_cast<size_t>(t)]);
    optimizer->step(clip > 0 ? clip_factor(norms.back(), clip) : 1);
  }
  const auto series = [&](const std::vector<double>& v) {
    const Tensor out = make_empty({steps}, kF64);
    std::copy(v.begin(), v.end(), out.data<double>());
    return to(out, c.dtype());
  };
  c.compare("output.loss", series(losses));
  if (c.wants("output.grad_norm")) c.compare("output.grad_norm", series(norms));
  for (const nn::NamedParameter& p : model.named_parameters())
    if (c.wants("output.param." + p.name)) c.compare("output.param." + p.name, p.tensor.detach());
}

}  // namespace waymark::train
