// What this version does not have, and what has no effect where it is set.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nn/spec/glob.h"
#include "train/config/checks.h"

namespace waymark::train {

namespace {

// Keys that only some tasks use: those that a task does not list in its facts have no effect on it.
constexpr const char* kDataKeys[] = {"data.cache",     "data.split",    "data.val_fraction", "data.train_size",
                                     "data.val_size",  "data.test_size", "data.max_len",     "data.pad_to",
                                     "data.truncate",  "data.mask_zero_pixels", "data.shuffle", "data.bucket",
                                     "data.drop_last"};

// A key of which only some values are built: globs on the canonical form.
struct Limit {
  const char* key;
  std::vector<std::string> built;
  const char* why;
};

const std::vector<Limit>& limits() {
  static const std::vector<Limit> list = {
      {"model.kind", {"encoder"}, "decoders and towers are not part of this version"},
      {"model.cross_position", {"none"}, "no model of this version has cross-attention"},
      {"model.share_layers", {"false"}, "shared layers are not part of this version"},
      {"model.embedding_scale", {"1"}, "a factor on embeddings is not part of this version"},
      {"model.init", {"pytorch*"}, "this version has pytorch's initial values only"},
      {"model.checkpoint", {"false"}, "recomputing activations is not part of this version"},
      {"model.init_from", {"\"\""}, "starting from other weights is not part of this version"},
      {"model.init_strict", {"true"}, "it belongs to model.init_from, which is not part of this version"},
      {"log.tensorboard", {"false"}, "TensorBoard files are not part of this version"},
      {"log.histograms_every", {"0"}, "histograms are not part of this version"},
      {"log.attention_every", {"0"}, "pictures of attention are not part of this version"},
  };
  return list;
}

void check_built(CheckContext& c) {
  for (const Limit& limit : limits()) {
    if (!c.fine(limit.key)) continue;
    const std::string& value = c.config.canonical(limit.key);
    const bool built = std::any_of(limit.built.begin(), limit.built.end(),
                                   [&](const std::string& glob) { return nn::glob_match(glob, value); });
    if (!built) c.add(limit.key, fmt::format("{} = {}: {}", limit.key, c.config.short_form(limit.key), limit.why));
  }
}

void no_effect(CheckContext& c, const char* key, const std::string& why) {
  if (c.fine(key) && !c.config.is_default(key))
    c.add(key, fmt::format("{} = {} has no effect: {}", key, c.config.short_form(key), why));
}

void check_effects(CheckContext& c) {
  if (!c.fine("task")) return;
  const TaskFacts& facts = c.facts;
  const bool pairs = facts.kind == "pair-classify",
             classify = pairs || facts.kind == "classify" || facts.kind == "regress";
  const std::string task = c.config.spec("task").name();
  if (!classify)
    for (const char* key : {"model.pooling", "model.head_hidden", "model.head_layers"})
      no_effect(c, key, task + " does not pool a sequence");
  if (c.fine("model.pooling") && c.config.text("model.pooling") != "cls")
    no_effect(c, "model.cls_position", "model.pooling is not cls");
  if (!pairs) no_effect(c, "model.interaction", task + " has no pairs");
  if (facts.kind == "tag" && c.fine("model.tie_embeddings") && c.config.boolean("model.tie_embeddings"))
    c.add("model.tie_embeddings", "model.tie_embeddings = true: the classes of " + task + " are not its tokens");
  if (!facts.data_keys.empty())
    for (const char* key : kDataKeys)
      if (std::find(facts.data_keys.begin(), facts.data_keys.end(), key) == facts.data_keys.end())
        no_effect(c, key, task + " does not use it");
  if (!facts.has_validation)
    for (const char* key : {"train.eval_every", "train.eval_batches", "train.eval_at_start"})
      no_effect(c, key, task + " has no validation set");
}

// Does any task use this key? A task is asked with its default options, whether or not it would run with them.
bool any_task_uses(std::string_view key, const Registries& r) {
  for (const std::string& name : r.tasks->names()) {
    nn::OptionTable table = *r.tasks->find(name);
    table.check = nullptr;
    std::vector<std::string> ignored;
    const auto options = table.resolve({name, {}}, ignored);
    if (!options) return true;
    const TaskFacts facts = r.task_facts(*options);
    if (facts.data_keys.empty() || std::find(facts.data_keys.begin(), facts.data_keys.end(), key) != facts.data_keys.end())
      return true;
  }
  return false;
}

}  // namespace

std::string limit_note(std::string_view key, const Registries& registries) {
  for (const Limit& limit : limits())
    if (limit.key == key)
      return limit.built.front() == "\"\"" ? "not part of this version" : "this version: only " + limit.built.front();
  const bool of_data = std::find(std::begin(kDataKeys), std::end(kDataKeys), key) != std::end(kDataKeys);
  return of_data && !any_task_uses(key, registries) ? "no task of this version uses it" : "";
}

std::vector<std::string> unused_settings(const Config& config) {
  if (config.is_default("model.max_len")) return {};
  for (const char* key : {"model.position", "model.attention"})
    for (const auto& layer : config.layers(key))
      for (const nn::Options& options : layer)
        if (options.has("max_len")) return {};
  return {fmt::format("model.max_len = {} has no effect: no encoding and no attention of this model has a table of positions",
                      config.short_form("model.max_len"))};
}

void check_limits(CheckContext& c) {
  check_built(c);
  check_effects(c);
}

}  // namespace waymark::train
