// LanguageModel: token embedding, encoder, and a head over the vocabulary. With causal = false and masked tokens in the
// input it is a masked language model (Devlin et al. 2019), with causal = true a left-to-right one; with `classes` a
// tagger: a class for each token.
//
//   models::LanguageModel model({.vocab_size = 60, .encoder = {.position = "huang-m4"}});
//   Tensor logits = model(ids, {.positions = nn::Positions::range(64)});          // [B, L, V]
//   Tensor h = model.encode(ids, call);  model.head(h at masked places)           // only where it is scored
#pragma once

#include "models/encoder.h"
#include "nn/layers/embedding.h"

namespace waymark::models {

struct LanguageModelConfig {
  i64 vocab_size = 0;
  EncoderConfig encoder = {};
  i64 classes = 0;              // of the head, V of its shapes; 0: vocab_size
  bool tie_embeddings = false;  // the head uses the token table; there is no head.weight
  bool head_bias = true;
  nn::Init token_init = nn::init::normal();
};

// h [..., E] -> logits [..., V] = h Wᵀ + b. `weight` [V, E] unless tied, `bias` [V]; as those of a Linear.
class WAYMARK_API LanguageHead : public nn::Module<LanguageHead> {
 public:
  // tied: the token table; undefined: an own weight.
  LanguageHead(ModuleBase& parent, std::string_view name, i64 width, i64 vocab_size, const Tensor& tied, bool with_bias);
  Tensor forward(const Tensor& h) const;

  Tensor weight, bias;
};

// `token_embedding.weight` [V, E], `encoder.*`, `head.*`. No factor on the embeddings, no norm behind them.
class WAYMARK_API LanguageModel : public nn::Module<LanguageModel> {
 public:
  explicit LanguageModel(const LanguageModelConfig& config) : LanguageModel(nullptr, "", config) {}
  LanguageModel(ModuleBase& parent, std::string_view name, const LanguageModelConfig& config)
      : LanguageModel(&parent, name, config) {}

  // Takes braces: model(ids, {.positions = ...}).
  Tensor operator()(const Tensor& ids, const EncoderCall& call) const { return Module::operator()(ids, call); }
  // ids i64 [B, L] -> logits [B, L, V]
  Tensor forward(const Tensor& ids, const EncoderCall& call) const { return head(encode(ids, call)); }
  // ids i64 [B, L] -> [B, L, E]
  Tensor encode(const Tensor& ids, const EncoderCall& call) const;
  // As Encoder::visit_attentions. No gradients.
  void visit_attentions(const Tensor& ids, const EncoderCall& call, const AttentionVisitor& see) const;
  // Attention weights of every layer, [B, H, L, L] each.
  std::vector<Tensor> attention_weights(const Tensor& ids, const EncoderCall& call) const;

  nn::Embedding token_embedding;
  Encoder encoder;
  LanguageHead head;

 private:
  LanguageModel(ModuleBase* parent, std::string_view name, const LanguageModelConfig& config);
  void check_ids(const Tensor& ids) const;
};

}  // namespace waymark::models
