#include "train/verify/kinds.h"

namespace waymark::train {

namespace {

using Entries = std::vector<CaseEntry>;

Entries joined(Entries a, const Entries& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Keys of an attention, where there are tokens.
const Entries kAttentionKeys = {
    {"embed_dim", "int", false, "width of the tokens; num_heads · head_dim without it"},
    {"num_heads", "int", true, "heads"},
    {"head_dim", "int", false, "width of a head; embed_dim / num_heads"},
    {"num_kv_heads", "int", false, "heads of keys and values; num_heads"},
    {"position", "text", true, "sum of encodings"},
    {"attention", "text", false, "dense"},
    {"causal", "bool", false, "false"},
    {"scale", "any", false, "\"default\" = 1/√(width of q), \"none\", or a number"},
    {"bias", "bool", false, "of the projections; true"},
    {"out_proj", "bool", false, "true; false: the output is [B, L, heads · head_dim]"},
    {"shared_qk", "bool", false, "false"},
    {"mask", "text", false, "a mask expression, e.g. window(4, 4)"},
    {"shift", "int", false, "of block borders; 0"},
};
const Entries kLayerKeys = {
    {"ffn_dim", "int", true, "width of the feed-forward part"},
    {"activation", "text", false, "gelu; gelu_tanh, relu, silu"},
    {"norm", "text", false, "pre; post"},
    {"norm_eps", "number", false, "1e-5"},
    {"norm_type", "text", false, "layer; rms"},
    {"ffn_bias", "bool", false, "true"},
};
const Entries kGradients = {
    {"param.*", "", false, "every parameter of the module, and no other"},
    {"buffer.*", "", false, "state that is not trained"},
    {"rng.*", "", false, "draws of a stream, in place of ours: rng.<stream>, rng.<stream>.1, ..."},
    {"grad_output*", "as output", false, "what comes into the output; absent: forward only"},
    {"grad_input.*", "as input", false, "gradients of Σ output · grad_output"},
    {"grad_param.*", "as param", false, "likewise"},
};
const Entries kPositions = {
    {"input.positions", "[L] or [B, L]", false, "0, 1, ... without it"},
    {"input.key_positions", "[M] or [B, M]", false, "of the keys"},
};

}  // namespace

const std::vector<CaseKind>& kinds() {
  static const std::vector<CaseKind> list = {
      {.name = "op",
       .doc = "one op of the registry: inputs, outputs, gradients",
       .run = run_op_case,
       .keys = {{"op", "text", true, "name in waymark help ops"},
                {"args", "object", false, "arguments that are no tensors, by the names of the op's schema"}},
       .tensors = {{"input.*", "", false, "by the argument's name; of a list input.tensors.0, ..."},
                   {"output*", "", true, "output, or output.<name> of several"},
                   {"grad_output*", "as output", false, "what comes into the output"},
                   {"grad_input.*", "as input", false, "gradients"}}},
      {.name = "attention",
       .doc = "an attention module with its position encodings: values and all gradients",
       .run = run_attention_case,
       .keys = kAttentionKeys,
       .tensors =
           joined(joined({{"input.x", "[B, L, E]", true, "tokens"},
                          {"input.context", "[B, M, E]", false, "cross-attention: keys and values come from here"},
                          {"input.mask", "[B, M]", false, "keys to keep; rows of padded queries are not compared"},
                          {"input.*", "", false, "segments, global, state, and arrays that a mask expression names"},
                          {"output", "[B, L, E]", true, ""},
                          {"output.state", "[B, m, E]", false, "where a state travels"},
                          {"weights", "[B, H, L, M]", false, "attention weights"}},
                         kPositions),
                  kGradients)},
      {.name = "attention_core",
       .doc = "the same without projections: q, k, v given",
       .run = run_attention_core_case,
       .keys = kAttentionKeys,
       .tensors = joined(joined({{"input.q", "[B, H, L, d]", true, ""},
                                 {"input.k", "[B, heads of keys, M, d]", false, ""},
                                 {"input.v", "[B, heads of keys, M, d]", true, ""},
                                 {"input.mask", "[B, M]", false, "keys to keep"},
                                 {"output", "[B, H, L, d]", true, ""},
                                 {"weights", "[B, H, L, M]", false, "attention weights"}},
                                kPositions),
                         kGradients)},
      {.name = "score_bias",
       .doc = "the bias of every (query, key) pair, in units of logits, without mask",
       .run = run_score_bias_case,
       .keys = {{"num_heads", "int", true, "heads"},
                {"position", "text", true, "the encoding"},
                {"causal", "bool", false, "false"},
                {"query_length", "int", true, "queries"},
                {"key_length", "int", true, "keys, at positions 0, 1, ..."},
                {"query_offset", "int", false, "position of the first query; 0"}},
       .tensors = joined({{"output", "[H, L, M]", true, ""}}, kGradients)},
      {.name = "embedding_position",
       .doc = "what an input-site encoding adds",
       .run = run_embedding_position_case,
       .keys = {{"embed_dim", "int", true, "width"},
                {"length", "int", true, "positions"},
                {"position", "text", true, "the encoding"}},
       .tensors = joined({{"input.positions", "[L]", false, "0, 1, ... without it"}, {"output", "[L, E]", true, ""}},
                         kGradients)},
      {.name = "query_key_map",
       .doc = "what a query-key encoding makes of q and k",
       .run = run_query_key_map_case,
       .keys = {{"num_heads", "int", true, "heads"},
                {"head_dim", "int", true, "width"},
                {"position", "text", true, "the encoding"}},
       .tensors = joined(joined({{"input.q", "[B, H, L, d]", true, ""},
                                 {"input.k", "[B, H, M, d]", true, ""},
                                 {"output.q", "[B, H, L, R]", true, ""},
                                 {"output.k", "[B, H, M, R]", true, ""}},
                                kPositions),
                         kGradients)},
      {.name = "encoder_layer",
       .doc = "one layer of an encoder",
       .run = run_encoder_layer_case,
       .keys = joined(kAttentionKeys, kLayerKeys),
       .tensors = joined(joined({{"input.x", "[B, L, E]", true, "tokens"},
                                 {"input.mask", "[B, L]", false, "tokens to keep; rows of the others are not compared"},
                                 {"input.*", "", false, "state, and arrays that a mask expression names"},
                                 {"output", "[B, L, E]", true, ""},
                                 {"output.state", "[B, m, E]", false, "where a state travels"}},
                                kPositions),
                         kGradients)},
      {.name = "training",
       .doc = "a token model trained for some steps: losses, gradient norms, final parameters",
       .run = run_training_case,
       .keys = {{"model", "object", true,
                 "vocab_size, num_layers, tie_embeddings, head_bias, and the keys of encoder_layer"},
                {"optimizer", "object", true, "name, its options, and decay = all or matrices"},
                {"clip_norm", "number", false, "0 = off"},
                {"lr", "list", false, "a rate for every step"}},
       .tensors = {{"param.*", "", true, "parameters at the start"},
                   {"input.ids", "[T, B, L]", true, "tokens of every step"},
                   {"input.targets", "[T, B, L]", true, "-100 = not scored"},
                   {"input.mask", "[T, B, L]", false, "tokens to keep"},
                   {"rng.*", "", false, "draws, in place of ours"},
                   {"output.loss", "[T]", true, "mean cross-entropy of every step"},
                   {"output.grad_norm", "[T]", false, "before clipping"},
                   {"output.param.*", "", false, "parameters after the last step"}}},
      {.name = "optimizer",
       .doc = "one parameter through some updates of an optimizer",
       .run = run_optimizer_case,
       .keys = {{"optimizer", "text", true, "name in waymark help optimizers; its options are keys, too"},
                {"steps", "int", true, "updates"},
                {"clip_norm", "number", false, "0 = off"},
                {"lr", "any", false, "a number, a rate for every step, or \"relative\" (adafactor)"}},
       .tensors = {{"param.w", "", true, "the parameter at the start"},
                   {"input.grad.*", "as w", true, "gradient of step 1, 2, ..."},
                   {"output", "as w", true, "the parameter after the last step"}},
       .more_keys = true},
      {.name = "loss",
       .doc = "a loss of a task; classes lie on the last axis",
       .run = run_loss_case,
       .keys = {{"loss", "text", true, "cross_entropy, kl_div, sar, r_drop, span_qa"},
                {"ignore_index", "int", false, "of cross_entropy; -100"},
                {"label_smoothing", "number", false, "of cross_entropy; 0"},
                {"kl", "text", false, "symmetric; forward, reverse"},
                {"detach", "text", false, "none; first: no gradient through the first pass's share of the divergence"},
                {"alpha", "number", false, "of sar, r_drop; 1"},
                {"ce", "text", false, "of sar, r_drop: both; first"},
                {"task", "text", false, "of sar, r_drop: classify; span, regress"},
                {"pad_logits", "bool", false, "of span_qa; false"}},
       .tensors = {{"input.*", "", true, "logits, target, first, second, mask, weight, item_weight, start_logits, ..."},
                   {"output", "[]", true, "the loss"},
                   {"grad_output", "[]", false, ""},
                   {"grad_input.*", "as input", false, "of the float inputs but weight, item_weight and target"}}},
  };
  return list;
}

const CaseKind* find_kind(std::string_view name) {
  for (const CaseKind& k : kinds())
    if (k.name == name) return &k;
  return nullptr;
}

std::vector<std::string> case_kinds() {
  std::vector<std::string> out;
  for (const CaseKind& k : kinds()) out.emplace_back(k.name);
  return out;
}

}  // namespace waymark::train
