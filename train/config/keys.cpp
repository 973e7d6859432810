#include "train/config/keys.h"

#include <fmt/format.h>

#include "nn/spec/suggest.h"

namespace waymark::train {

namespace {

using nn::bool_option;
using nn::int_option;
using nn::OptionRule;
using nn::real_option;
using nn::required;
using nn::SpecValue;
using nn::text_option;
using nn::word_option;

constexpr i64 kMaxWidth = 1 << 20, kMaxLength = i64{1} << 31, kMaxItems = i64{1} << 32;
constexpr double kLeast = 1e-30;  // what is smaller may be 0 in f32

enum Id : bool { kNotInId = false, kInId = true };

std::string fallback_text(const OptionRule& rule) {
  if (!rule.fallback) return rule.from;
  return rule.fallback->kind() == SpecValue::Kind::real ? fmt::format("{}", rule.fallback->real())
                                                        : to_string(*rule.fallback);
}

struct Table {
  std::vector<KeyInfo> keys;

  void plain(std::string name, OptionRule rule, Id in_id, std::string doc) {
    KeyInfo key{std::move(name), KeyShape::plain, std::move(rule), "", in_id, std::move(doc)};
    key.fallback = fallback_text(key.rule);
    keys.push_back(std::move(key));
  }
  void special(std::string name, KeyShape shape, std::string fallback, std::string doc) {
    keys.push_back({std::move(name), shape, text_option({}), std::move(fallback), kInId, std::move(doc)});
  }
};

// A default that other keys decide: the text is what help shows, resolve.cpp computes it.
OptionRule from(OptionRule rule, const char* text) { return rule.default_from(text); }

std::vector<KeyInfo> make_keys() {
  Table t;
  const OptionRule probability = real_option(0.0, 0.0).less_than(1);

  t.plain("name", from(text_option({}), "task, position, attention, id"), kNotInId,
          "label in tables, folder of the run");
  t.plain("seed", int_option(0, 0), kInId, "seed of everything but the data");
  t.special("task", KeyShape::spec, "required", "what is trained and measured: help tasks");
  t.plain("preset", word_option("none", {"none"}), kInId, "fills in the settings of a published experiment");

  t.plain("data.dir", text_option(""), kNotInId, "where data files are looked for first");
  t.plain("data.cache", text_option(""), kNotInId, "where made and tokenised data are kept; empty: ~/.cache/waymark");
  t.plain("data.seed", int_option(0, 0), kInId, "seed of generated data, splits and evaluation masks");
  t.plain("data.split", text_option("own"), kInId, "own, official, file:PATH, or a split of the task");
  t.plain("data.val_fraction", real_option(0.1).greater_than(0).less_than(1), kInId,
          "share of the training data used for validation where the task has no validation set");
  t.plain("data.train_size", from(int_option(required(), 0, kMaxItems), "task"), kInId, "training items; 0 = all, or unlimited");
  t.plain("data.val_size", from(int_option(required(), 0, kMaxItems), "task"), kInId, "validation items; 0 = all");
  t.plain("data.test_size", from(int_option(required(), 0, kMaxItems), "task"), kInId, "test items; 0 = all");
  t.plain("data.max_len", from(int_option(required(), 0, kMaxLength), "task"), kInId,
          "longest item; 0 = as long as the data");
  t.plain("data.pad_to", int_option(0, 0, kMaxLength), kInId, "pad batches to this length; 0 = their longest item");
  t.plain("data.truncate", bool_option(false), kInId, "cut longer items instead of refusing them");
  t.plain("data.mask_zero_pixels", bool_option(false), kInId, "hide zero pixels from attention");
  t.plain("data.shuffle", bool_option(true), kInId, "a new order in every epoch");
  t.plain("data.bucket", bool_option(false), kInId, "sort by length inside windows of 50 batches");
  t.plain("data.drop_last", bool_option(false), kInId, "leave out the short last batch of an epoch");

  t.plain("model.kind", from(word_option(required(), {"encoder", "decoder", "dual-encoder"}), "task"), kInId,
          "how tokens become outputs");
  t.plain("model.causal", from(bool_option(required()), "task"), kInId, "a token sees earlier tokens only");
  t.plain("model.embed_dim", int_option(64, 1, kMaxWidth), kInId, "width of the model, E");
  t.plain("model.num_heads", int_option(4, 1, kMaxWidth), kInId, "attention heads, H");
  t.plain("model.head_dim", from(int_option(required(), 1, kMaxWidth), "embed_dim/num_heads"), kInId,
          "width of a head, d; attention width is H*d");
  t.plain("model.ffn_dim", from(int_option(required(), 1, kMaxWidth), "4*embed_dim"), kInId,
          "inner width of the feed-forward part");
  t.plain("model.num_layers", int_option(2, 1, 4096), kInId, "layers");
  t.special("model.position", KeyShape::layers_of_sums, "none", "position encodings, joined by +; a pattern per layer");
  t.special("model.attention", KeyShape::layers_of_specs, "dense", "attention; a pattern per layer");
  t.special("model.cross_position", KeyShape::sum, "none", "position encoding of cross-attention");
  t.plain("model.mask", text_option("all()"), kInId, "mask expression, joined with pattern, causality and padding");
  t.plain("model.num_kv_heads", from(int_option(required(), 1, kMaxWidth), "num_heads"), kInId,
          "heads of keys and values, shared by groups of query heads");
  t.plain("model.norm", word_option("pre", {"pre", "post"}), kInId,
          "norm before or after each part; pre adds a last one");
  t.plain("model.norm_type", word_option("layer", {"layer", "rms"}), kInId, "layer norm or RMS norm");
  t.plain("model.norm_eps", real_option(1e-5, kLeast, 1.0), kInId, "added to the variance");
  t.plain("model.activation", word_option("gelu", {"gelu", "gelu_tanh", "relu", "silu"}), kInId,
          "of the feed-forward part; gelu is the exact one");
  t.plain("model.dropout", probability, kInId, "after embeddings, attention and feed-forward parts");
  t.plain("model.attention_dropout", probability, kInId, "on attention weights");
  t.plain("model.embedding_dropout", from(real_option(required(), 0.0).less_than(1), "dropout"), kInId,
          "after the embeddings");
  t.plain("model.attention_bias", bool_option(true), kInId, "biases of the q, k, v and output projections");
  t.plain("model.ffn_bias", bool_option(true), kInId, "biases of the feed-forward part");
  t.plain("model.head_bias", bool_option(true), kInId, "bias of the last linear layer of the head");
  t.plain("model.pooling", word_option("mean", {"cls", "mean", "mean-all", "mean-zeroed", "first", "last", "max"}),
          kInId, "how a sequence becomes one vector");
  t.plain("model.cls_position", word_option("first", {"first", "none"}), kInId, "position of the [CLS] row");
  t.plain("model.head_hidden", from(int_option(required(), 1, kMaxWidth), "ffn_dim"), kInId,
          "hidden width of a classification head");
  t.plain("model.head_layers", int_option(2, 1, 3), kInId, "linear layers of a classification head");
  t.plain("model.interaction", word_option("nli", {"nli", "concat"}), kInId, "how two towers are joined");
  t.plain("model.share_layers", bool_option(false), kInId, "one layer used num_layers times");
  t.plain("model.tie_embeddings", bool_option(false), kInId, "the output layer uses the token table");
  t.plain("model.scale", real_option("default", kLeast, 1 / kLeast).or_word({"default", "none"}), kInId,
          "of the scores; default = 1/sqrt(width of q)");
  t.plain("model.embedding_scale", real_option(1).greater_than(0), kInId, "factor on token embeddings");
  t.special("model.init", KeyShape::spec, "pytorch", "initial values: pytorch, xavier, normal(std=0.02), lra");
  t.plain("model.max_len", from(int_option(required(), 0, kMaxLength), "data.max_len"), kNotInId,
          "rows of learned tables whose spec names none; the resolved spec shows the number");
  t.plain("model.checkpoint", bool_option(false), kInId, "recompute activations of each layer in backward");
  t.plain("model.init_from", text_option(""), kInId, "start from these weights: a safetensors file or a folder");
  t.plain("model.init_strict", bool_option(true), kInId, "names of model.init_from must match; false lists and skips");

  t.special("optim.optimizer", KeyShape::spec, "adamw(lr=1e-3)", "help optimizers");
  t.special("optim.schedule", KeyShape::spec, "cosine(warmup=100)", "learning rate over steps: help schedules");
  t.plain("optim.clip_norm", real_option(1, 0.0), kInId, "largest norm of all gradients; 0 = off");
  t.plain("optim.clip_value", real_option(0, 0.0), kInId,
          "largest absolute gradient element, before the norm; 0 = off");
  t.plain("optim.accumulate", int_option(1, 1, 1 << 20), kInId, "micro-batches per step");
  t.plain("optim.decay", word_option("matrices", {"matrices", "all", "none"}), kInId, "which parameters decay");
  t.plain("optim.no_decay", nn::word_list_option(std::vector<std::string>{}, {}), kInId,
          "globs of names that never decay");
  t.special("optim.groups", KeyShape::groups, "[]",
            "list of {match, lr_scale, weight_decay, freeze}; first match wins");

  const OptionRule length = from(int_option(required(), 1, (1 << 22) - 1), "2000, if none of the four is given");
  t.plain("train.steps", length, kInId, "optimizer updates; exactly one of steps, epochs, tokens, minutes");
  t.plain("train.epochs", from(real_option(required()).greater_than(0), "not set"), kInId,
          "passes over the training data");
  t.plain("train.tokens", from(int_option(required(), 1), "not set"), kInId, "trained tokens");
  t.plain("train.minutes", from(real_option(required()).greater_than(0), "not set"), kInId, "minutes of training time");
  t.plain("train.batch_size", int_option(32, 1, 1 << 24), kInId, "items per update");
  t.plain("train.micro_batch", int_option(0, 0, 1 << 24), kInId,
          "items per forward; the other way to say optim.accumulate");
  t.plain("train.eval_every", from(int_option(required(), 1).or_word({"auto"}), "steps/10"), kInId,
          "steps between validations; auto = a tenth of the run");
  t.plain("train.eval_batches", int_option(0, 0), kInId, "batches of a validation during training; 0 = all");
  t.plain("train.eval_at_start", bool_option(false), kInId, "validate before the first step");
  t.plain("train.select", from(text_option({}), "val.<main metric>"), kInId,
          "what the best checkpoint is best in, or last");
  t.plain("train.patience", int_option(0, 0), kInId, "stop after so many validations without gain; 0 = never");
  t.plain("train.log_every", int_option(10, 1), kNotInId, "steps between metric lines");
  t.plain("train.save_every", from(int_option(required(), 1).or_word({"auto"}), "eval_every"), kNotInId,
          "steps between checkpoints");
  t.plain("train.keep", int_option(1, 0, 1 << 20), kNotInId, "newest checkpoints that stay, beside last and best");
  t.special("train.regularizer", KeyShape::sum, "none", "terms added to the loss");
  t.plain("train.on_nonfinite", word_option("stop", {"stop", "skip"}), kInId, "what an infinite or NaN loss does");

  t.plain("log.jsonl", bool_option(true), kNotInId, "write metrics.jsonl");
  t.plain("log.tensorboard", bool_option(false), kNotInId, "write TensorBoard event files");
  t.plain("log.histograms_every", int_option(0, 0), kNotInId, "steps between histograms; 0 = none");
  t.plain("log.attention_every", int_option(0, 0), kNotInId, "steps between attention pictures; 0 = none");
  t.plain("log.progress", word_option("auto", {"auto", "bar", "plain", "json", "none"}), kNotInId,
          "how progress is shown");

  t.plain("run.threads", int_option("auto", 1, 4096).or_word({"auto"}), kNotInId,
          "threads; results do not depend on them");
  t.plain("run.precision", word_option("f32", {"f32", "f64"}), kInId, "number type of the model");
  return t.keys;
}

// What the same thing is called elsewhere.
struct Foreign {
  const char* names;
  const char* ours;
};
constexpr Foreign kForeign[] = {
    {"lr learning_rate", "optim.optimizer(lr=)"},
    {"d_model hidden_size emb_dim n_embd dim", "model.embed_dim"},
    {"n_head num_head heads", "model.num_heads"},
    {"n_layer layers depth", "model.num_layers"},
    {"mlp_dim d_ff intermediate_size", "model.ffn_dim"},
    {"dropout_rate", "model.dropout"},
    {"warmup", "optim.schedule(warmup=)"},
    {"batch", "train.batch_size"},
    {"max_steps num_train_steps iters", "train.steps"},
    {"grad_clip", "optim.clip_norm"},
    {"random_seed", "seed"},
    {"pos_emb position_embedding_type", "model.position"},
};

std::string_view last_component(std::string_view key) { return key.substr(key.rfind('.') + 1); }
std::string_view table_of(std::string_view key) {
  const size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

}  // namespace

const std::vector<KeyInfo>& config_keys() {
  static const std::vector<KeyInfo> keys = make_keys();
  return keys;
}

const KeyInfo* find_key(std::string_view name) {
  for (const KeyInfo& key : config_keys())
    if (key.name == name) return &key;
  return nullptr;
}

std::string suggest_key(std::string_view wrong) {
  std::vector<nn::Candidate> candidates;
  const std::string_view table = table_of(wrong);
  const std::string last(last_component(wrong));
  for (const KeyInfo& key : config_keys())
    candidates.push_back({std::string(last_component(key.name)), key.name, table_of(key.name) == table ? 0 : 1});
  for (const Foreign& f : kForeign) {
    std::string_view names = f.names;
    while (!names.empty()) {
      const size_t space = std::min(names.find(' '), names.size());
      candidates.push_back({std::string(names.substr(0, space)), f.ours, 2});
      names.remove_prefix(std::min(space + 1, names.size()));
    }
  }
  return nn::did_you_mean(nn::suggest(last, candidates));
}

}  // namespace waymark::train
