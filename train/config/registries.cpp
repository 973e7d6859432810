#include "train/config/registries.h"

#include <algorithm>

#include "nn/attention/judge.h"
#include "train/config/resolve.h"
#include "train/optim/registry.h"
#include "train/tasks/registry.h"

namespace waymark::train {

namespace {

void judge_config(const Config& config, Problems& problems) {
  nn::ModelSpecs model;
  model.encodings = config.layers("model.position");
  for (const auto& layer : config.layers("model.attention")) model.attentions.push_back(layer.front());
  model.sizes = {config.integer("model.embed_dim"), config.integer("model.num_heads"),
                 config.integer("model.head_dim")};
  model.kv_heads = config.integer("model.num_kv_heads");
  model.causal = config.boolean("model.causal");
  // A refused pair is a cell of a sweep that does not run; anything else is a mistake.
  std::vector<std::string> refusals, found, warnings;
  for (size_t i = 0; i < model.encodings.size(); ++i)
    for (const nn::Options& encoding : model.encodings[i])
      if (const nn::Verdict v = nn::judge(encoding, model.attentions[i], model.causal); v.ruling == nn::Ruling::refuse)
        refusals.push_back(v.text());
  nn::judge_model(model, found, warnings);
  for (const std::string& text : found) {
    const bool refusal = std::find(refusals.begin(), refusals.end(), text) != refusals.end();
    const bool at_attention = config.is_default("model.position") && !config.is_default("model.attention");
    problems.push_back({config.origin(at_attention ? "model.attention" : "model.position"), text, refusal});
  }
}

}  // namespace

const Registries& registries() {
  static const Registries joined = [] {
    Registries r;
    r.tasks = &task_tables();
    r.encodings = &nn::encoding_tables();
    r.attentions = &nn::attention_tables();
    r.judge = judge_config;
    r.optimizers = &optimizer_tables();
    r.schedules = &schedule_tables();
    r.task_facts = task_facts;
    r.schedule_needs_total = schedule_needs_total;
    return r;
  }();
  return joined;
}

Config make_config(const Settings& settings, const std::vector<std::string>& files) {
  Problems problems;
  std::vector<Source> sources;
  for (const std::string& file : files) sources.push_back(read_toml_file(file, problems));
  std::vector<Override> overrides;
  for (const auto& [key, text] : settings) overrides.push_back({key, text, "program", false});
  sources.push_back(command_line_source(overrides, problems));
  return resolve_or_throw(sources, std::move(problems));
}

}  // namespace waymark::train
