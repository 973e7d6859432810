// Encoder: a stack of transformer layers, with the position encodings and attentions that patterns name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/attention/judge.h"
#include "nn/layers/dropout.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/norm.h"
#include "nn/module/module_list.h"

namespace waymark::models {

struct EncoderConfig {
  i64 embed_dim = 64, num_heads = 4, num_layers = 2;
  i64 head_dim = 0;                  // 0: embed_dim / num_heads
  i64 num_kv_heads = 0;              // 0: num_heads
  i64 ffn_dim = 0;                   // 0: 4 embed_dim
  std::string position = "none";     // a sum, or a pattern of sums per layer: "[rope]*3, none"
  std::string attention = "dense";   // likewise
  bool causal = false;
  std::string mask = "all()";        // of every call: a mask expression (nn/attention/mask.h)
  std::string norm = "pre";          // pre: x + f(norm(x)), with a final norm; post: norm(x + f(x))
  std::string norm_type = "layer";   // layer, rms
  double norm_eps = 1e-5;
  std::string activation = "gelu";   // gelu, gelu_tanh, relu, silu
  double dropout = 0;                // behind attention and feed-forward
  double attention_dropout = 0;      // on attention weights
  double embedding_dropout = 0;      // on the input, positions included
  bool attention_bias = true, ffn_bias = true;
  std::optional<double> scale = {};  // of scores; unset: 1/√(width of q); 1: none
  i64 max_len = 0;                   // default of max_len options; 0: theirs
};

// Everything of an encoder that specs decide, resolved and judged. Collects every problem.
struct EncoderPlan {
  nn::ModelSpecs specs = {};
  std::vector<std::string> warnings = {};
};
// One Error with all problems.
WAYMARK_API EncoderPlan plan_encoder(const EncoderConfig& config);

// What a call knows beside the tokens.
struct EncoderCall {
  nn::Positions positions = {};  // of the tokens; needed as soon as an encoding or a causal call reads them
  Tensor keep = {};              // b8 [B, L]: kept tokens; undefined: all
  nn::Mask mask = {};            // and EncoderConfig::mask
  nn::MaskArrays arrays = {};    // what `input` stands for in masks and attentions
  i64 shift = 0;                 // of block borders
  std::optional<u64> redraw = {};  // random topology by this draw number in place of its own
  Tensor segments = {};          // i64 [B, L], for encodings that read them
};

using AttentionVisitor = std::function<void(i64 layer, const nn::Attention&, const nn::AttentionInput&)>;

// `attention.*`, `norm1.*`, `ffn.0.*`, `ffn.2.*`, `norm2.*`
class WAYMARK_API EncoderLayer : public nn::Module<EncoderLayer> {
 public:
  EncoderLayer(ModuleBase& parent, std::string_view name, const EncoderConfig& config, nn::AttentionSetup setup);
  // x [B, L, E] -> [B, L, E]; `see`, if it is not empty, is shown the attention and what it is given.
  // `prepared`: terms that the stack prepared for all layers.
  using See = std::function<void(const nn::Attention&, const nn::AttentionInput&)>;
  Tensor forward(const Tensor& x, const EncoderCall& call, const See& see = {},
                 const std::shared_ptr<const nn::PreparedTerms>& prepared = {}) const;

  nn::MultiHeadAttention attention;
  nn::Norm norm1;
  nn::FeedForward ffn;
  nn::Norm norm2;
  nn::Dropout dropout1, dropout2;

 private:
  bool pre_;
};

// `position.*` (input site and shared), `layers.<n>.*`, `norm.*` with norm=pre
class WAYMARK_API Encoder : public nn::Module<Encoder> {
 public:
  Encoder(ModuleBase& parent, std::string_view name, const EncoderConfig& config) : Encoder(&parent, name, config) {}
  explicit Encoder(const EncoderConfig& config) : Encoder(nullptr, "", config) {}

  // Takes braces: encoder(x, {.positions = ...}).
  Tensor operator()(const Tensor& x, const EncoderCall& call) const { return Module::operator()(x, call); }
  // x [B, L, E] embeddings without positions -> [B, L, E].
  Tensor forward(const Tensor& x, const EncoderCall& call) const;
  // Forward, in which the attention of each layer and what it is given are shown; x as in forward.
  void visit_attentions(const Tensor& x, const EncoderCall& call, const AttentionVisitor& see) const;
  // Attention weights of every layer, [B, H, L, L] each, without dropout; undefined where an attention has none.
  std::vector<Tensor> weights(const Tensor& x, const EncoderCall& call) const;

  const EncoderConfig& config() const { return config_; }
  const EncoderPlan& plan() const { return plan_; }
  const std::vector<std::string>& warnings() const { return plan_.warnings; }

 private:
  Encoder(ModuleBase* parent, std::string_view name, const EncoderConfig& config);
  EncoderCall with_own_mask(EncoderCall call) const;
  // Input-site positions, dropout and all layers, without the final norm.
  Tensor through_layers(const Tensor& x, const EncoderCall& call, const AttentionVisitor& see) const;
  EncoderConfig config_;
  EncoderPlan plan_;

 public:
  nn::PositionModule position;
  nn::Dropout dropout;
  nn::ModuleList<EncoderLayer> layers;
  std::unique_ptr<nn::Norm> norm;  // null with norm=post
};

}  // namespace waymark::models
