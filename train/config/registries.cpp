#include "train/config/registries.h"

#include <algorithm>

#include "nn/attention/judge.h"
#include "train/config/resolve.h"
#include "train/optim/registry.h"
#include "train/tasks/registry.h"
#include "train/trainer/model.h"
#include "train/trainer/plan.h"
#include "train/trainer/regularizer.h"

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
  try {
    model.mask = nn::Mask::parse(config.text("model.mask"));
    model.mask.check_heads(model.sizes.num_heads);
    if (const auto inputs = model.mask.inputs(); !inputs.empty())
      fail("", "{}(input) needs an array of the call, and no task of this version gives one", inputs.front());
  } catch (const Error& e) {
    problems.push_back({config.origin("model.mask"), fmt::format("model.mask: {}", e.what())});
    return;
  }
  model.cls_has_position = config.text("model.pooling") == "cls" && config.text("model.cls_position") == "first";
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

// Names that optim.groups and optim.no_decay write must be there. The model is built for them only if they do.
void check_parameters(const Config& config, Problems& problems) {
  if (config.groups().empty() && config.texts("optim.no_decay").empty()) return;
  try {
    if (const auto names = parameter_names(config)) check_globs(config, *names, problems);
  } catch (const Error&) {  // a model that cannot be built is a problem of its own
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
    r.parameters = check_parameters;
    r.optimizers = &optimizer_tables();
    r.schedules = &schedule_tables();
    r.regularizers = &regularizer_tables();
    r.regularizer = check_regularizer;
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
