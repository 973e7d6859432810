#include "models/language_model.h"

#include <cmath>

#include "core/ops/matmul.h"

namespace waymark::models {

namespace {

i64 classes_of(const LanguageModelConfig& c) {
  if (c.classes < 0) fail("language_model", "classes = {}: must be at least 0", c.classes);
  if (c.tie_embeddings && c.classes > 0 && c.classes != c.vocab_size)
    fail("language_model", "tie_embeddings: the token table has {} rows, but the head has {} classes", c.vocab_size, c.classes);
  return c.classes > 0 ? c.classes : c.vocab_size;
}

}  // namespace

LanguageHead::LanguageHead(ModuleBase& parent, std::string_view name, i64 width, i64 vocab_size, const Tensor& tied,
                           bool with_bias)
    : Module(parent, name),
      weight(tied.defined() ? tied : parameter("weight", {vocab_size, width}, nn::init::kaiming_uniform(std::sqrt(5.0)))) {
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  if (with_bias) bias = parameter("bias", {vocab_size}, nn::init::uniform(-bound, bound), {.no_decay = true});
}

Tensor LanguageHead::forward(const Tensor& h) const { return linear(h, weight, bias); }

LanguageModel::LanguageModel(ModuleBase* parent, std::string_view name, const LanguageModelConfig& c)
    : Module(parent, name),
      token_embedding(*this, "token_embedding", c.vocab_size, c.encoder.embed_dim, std::nullopt, c.token_init),
      encoder(*this, "encoder", c.encoder),
      head(*this, "head", c.encoder.embed_dim, classes_of(c), c.tie_embeddings ? token_embedding.weight : Tensor(), c.head_bias) {}

void LanguageModel::check_ids(const Tensor& ids) const {
  if (!ids.defined() || ids.dtype() != kI64 || ids.dim() != 2)
    fail("language_model", "ids must be i64 [B, L], got {}",
         ids.defined() ? fmt::format("{} {}", name_of(ids.dtype()), ids.shape()) : "an undefined tensor");
}

Tensor LanguageModel::encode(const Tensor& ids, const EncoderCall& call) const {
  check_ids(ids);
  return encoder(token_embedding(ids), call);
}

void LanguageModel::visit_attentions(const Tensor& ids, const EncoderCall& call, const AttentionVisitor& see) const {
  check_ids(ids);
  const NoGrad off;
  encoder.visit_attentions(token_embedding(ids), call, see);
}

std::vector<Tensor> LanguageModel::attention_weights(const Tensor& ids, const EncoderCall& call) const {
  check_ids(ids);
  const NoGrad off;
  return encoder.weights(token_embedding(ids), call);
}

}  // namespace waymark::models
