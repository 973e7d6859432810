#include "train/trainer/model.h"

#include <algorithm>

#include "core/random/generator.h"
#include "models/language_model.h"
#include "nn/attention/mask_report.h"
#include "nn/position/registry.h"
#include "nn/spec/glob.h"

namespace waymark::train {

namespace {

// N(0, std²) in place of what the constructor drew; the next draw of the same stream.
void redraw(const nn::ModuleBase& module, std::string_view name, double std) {
  const NoGrad no_grad;
  for (const nn::NamedParameter& p : module.named_parameters())
    if (p.name == name) nn::init::normal(0, std).fill(p.tensor, std::string(name) + ".init");
}

class LanguageTaskModel final : public TaskModel {
 public:
  LanguageTaskModel(const models::LanguageModelConfig& config, i64 trained_length)
      : model_(config), trained_length_(trained_length) {}

  nn::ModuleBase& module() override { return model_; }
  Tensor output(const Batch& batch) override { return model_(batch.tokens, call_of(batch)); }
  void visit_attentions(const Batch& batch, const models::AttentionVisitor& see) override {
    model_.visit_attentions(batch.tokens, call_of(batch), see);
  }
  std::vector<std::string> warnings() const override { return model_.encoder.warnings(); }

  std::string attention_report() const override {
    const nn::ModelSpecs& specs = model_.encoder.plan().specs;
    std::vector<std::string> seen;
    std::string text;
    for (const nn::Options& attention : specs.attentions) {
      const std::string name = attention.canonical();
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      i64 layers = 0;
      for (const nn::Options& other : specs.attentions) layers += other.canonical() == name;
      text += fmt::format("attention {} in {} of {} layers\n", name, layers, specs.attentions.size());
      const nn::MaskCall call = nn::sequence_call(trained_length_, specs.sizes.num_heads, specs.causal || specs.mask.implies_causal());
      const auto pattern = nn::attention_pattern(attention, call, "attention.pattern");
      if (!pattern) text += "  which pairs of tokens meet depends on what they are\n";
      if (!pattern || !specs.mask.inputs().empty() || trained_length_ > nn::kExactReach) continue;
      if (const nn::Mask pairs = *pattern & specs.mask; !pairs.is_all())
        text += fmt::format("  pairs: {}\n{}", pairs.to_string(true), nn::to_string(nn::mask_report(pairs, call, specs.sizes.head_dim)));
    }
    return text;
  }

  i64 trained_rows() const override {
    for (const auto& sum : model_.encoder.plan().specs.encodings)
      for (const nn::Options& encoding : sum)
        if (encoding.has("max_len")) return trained_length_;
    return 0;
  }

 private:
  static models::EncoderCall call_of(const Batch& batch) {
    models::EncoderCall call;
    call.positions = batch.positions.defined() ? nn::Positions(batch.positions) : nn::Positions::range(batch.tokens.size(1));
    call.keep = batch.keep;
    call.shift = batch.shift;
    call.redraw = batch.redraw;
    return call;
  }

  models::LanguageModel model_;
  i64 trained_length_;
};

models::EncoderConfig encoder_config(const Config& c) {
  models::EncoderConfig e;
  e.embed_dim = c.integer("model.embed_dim");
  e.num_heads = c.integer("model.num_heads");
  e.num_layers = c.integer("model.num_layers");
  e.head_dim = c.integer("model.head_dim");
  e.num_kv_heads = c.integer("model.num_kv_heads");
  e.ffn_dim = c.integer("model.ffn_dim");
  e.position = c.canonical("model.position");
  e.attention = c.canonical("model.attention");
  e.causal = c.boolean("model.causal");
  e.mask = c.text("model.mask");
  e.norm = c.text("model.norm");
  e.norm_type = c.text("model.norm_type");
  e.norm_eps = c.real("model.norm_eps");
  e.activation = c.text("model.activation");
  e.dropout = c.real("model.dropout");
  e.attention_dropout = c.real("model.attention_dropout");
  e.embedding_dropout = c.real("model.embedding_dropout");
  e.attention_bias = c.boolean("model.attention_bias");
  e.ffn_bias = c.boolean("model.ffn_bias");
  if (c.is_word("model.scale", "none")) e.scale = 1;
  else if (!c.is_word("model.scale", "default")) e.scale = c.real("model.scale");
  e.max_len = c.integer("model.max_len");
  return e;
}

}  // namespace

std::optional<std::vector<std::string>> parameter_names(const Config& config) {
  constexpr double kMostNumbers = 4e7;
  models::LanguageModelConfig lm;
  lm.vocab_size = 1;
  lm.encoder = encoder_config(config);
  lm.tie_embeddings = config.boolean("model.tie_embeddings");
  lm.head_bias = config.boolean("model.head_bias");
  const auto& e = lm.encoder;
  const double width = static_cast<double>(e.embed_dim), attention = static_cast<double>(e.num_heads * e.head_dim);
  double numbers = static_cast<double>(e.num_layers) * width * (4 * attention + 2 * static_cast<double>(e.ffn_dim));
  const nn::EncodingSizes sizes{e.embed_dim, e.num_heads, e.head_dim};
  for (const auto& sum : config.layers("model.position"))
    for (const nn::Options& encoding : sum)
      if (const auto& parameters = nn::encoding_info(encoding.name()).parameters)
        for (const nn::ParameterSpec& p : parameters(encoding, sizes)) {
          double count = 1;
          for (const i64 n : p.shape) count *= static_cast<double>(n);
          numbers += count;
        }
  if (numbers > kMostNumbers) return std::nullopt;
  const RandomScope own_draws(u64{0});
  const models::LanguageModel model(lm);
  std::vector<std::string> names;
  for (const nn::NamedParameter& p : model.named_parameters()) names.push_back(p.name);
  return names;
}

std::unique_ptr<TaskModel> make_task_model(const Config& config, const Task& task) {
  const std::string& kind = task.facts().kind;
  const bool tags = kind == "tag";
  if (!tags && kind != "mlm" && kind != "lm") fail("model", "this version has no model for tasks of kind {}", kind);
  const nn::Options& init = config.spec("model.init");
  models::LanguageModelConfig lm;
  lm.vocab_size = tags ? task.inputs() : std::max(task.inputs(), task.outputs());
  if (tags) lm.classes = task.outputs();
  lm.encoder = encoder_config(config);
  lm.tie_embeddings = config.boolean("model.tie_embeddings");
  lm.head_bias = config.boolean("model.head_bias");
  lm.token_init = nn::init::normal(0, init.real("token_std"));
  auto model = std::make_unique<LanguageTaskModel>(lm, task.split("train").length);
  for (const nn::Options& encoding : config.layers("model.position").front())
    if (encoding.name() == "learned") redraw(model->module(), "encoder.position.weight", init.real("learned_std"));
  const NoGrad no_grad;
  for (const std::string& glob : init.words("zero"))
    for (const nn::NamedParameter& p : model->module().named_parameters())
      if (nn::glob_match(glob, p.name)) p.tensor.fill_(0);
  return model;
}

}  // namespace waymark::train
