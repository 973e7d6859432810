#include "train/trainer/plan.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "nn/spec/glob.h"
#include "nn/spec/suggest.h"
#include "train/data/loader.h"
#include "train/optim/registry.h"

namespace waymark::train {

TrainPlan make_plan(const Config& config, const Task& task) {
  Problems problems;
  TrainPlan p;
  const SplitFacts& train = task.split("train");
  p.batch_size = config.integer("train.batch_size");
  const i64 micro = config.integer("train.micro_batch"), accumulate = config.integer("optim.accumulate");
  p.micro_batch = micro > 0 ? micro : (p.batch_size + accumulate - 1) / accumulate;
  p.shuffle = config.boolean("data.shuffle");
  p.drop_last = config.boolean("data.drop_last");
  if (train.size > 0 && p.drop_last && train.size < p.batch_size)
    problems.push_back({config.origin("data.drop_last"),
                        fmt::format("data.drop_last = true leaves nothing of {} items in batches of {}", train.size, p.batch_size)});

  if (config.has("train.epochs")) {
    p.budget = "epochs";
    if (train.size == 0)
      problems.push_back({config.origin("train.epochs"),
                          "train.epochs: the training data has no end; set data.train_size, or use train.steps"});
    else if (problems.empty()) {
      const i64 batches = BatchOrder(train.size, {.batch_size = p.batch_size, .drop_last = p.drop_last}).batches();
      p.steps = std::max<i64>(1, std::llround(config.real("train.epochs") * static_cast<double>(batches)));
    }
  } else if (config.has("train.tokens")) {
    p.budget = "tokens";
    p.token_budget = config.integer("train.tokens");
    if (train.length > 0) p.steps = (p.token_budget + p.batch_size * train.length - 1) / (p.batch_size * train.length);
  } else if (config.has("train.minutes")) {
    p.budget = "minutes";
    p.second_budget = 60 * config.real("train.minutes");
  } else {
    p.budget = "steps";
    p.steps = config.integer("train.steps");
  }
  if (p.steps >= (1 << 22))
    problems.push_back({config.origin("train." + p.budget), fmt::format("train.{} is {} steps; fewer than {} are possible",
                                                                        p.budget, p.steps, 1 << 22)});
  if (p.steps == 0 && problems.empty() && schedule_needs_total(config.spec("optim.schedule")))
    problems.push_back({config.origin("optim.schedule"),
                        fmt::format("{} must know the number of steps, which train.{} does not say: write its total=",
                                    config.short_form("optim.schedule"), p.budget)});

  p.log_every = config.integer("train.log_every");
  const auto every = [&](const char* key) {
    if (!config.is_word(key, "auto")) return config.integer(key);
    return p.steps > 0 ? std::max<i64>(1, p.steps / 10) : 100;
  };
  p.eval_every = every("train.eval_every");
  p.save_every = every("train.save_every");
  p.keep = config.integer("train.keep");
  p.eval_batches = config.integer("train.eval_batches");
  p.eval_at_start = config.boolean("train.eval_at_start");
  p.patience = config.integer("train.patience");
  p.has_validation = task.has_split("val");
  p.skip_nonfinite = config.text("train.on_nonfinite") == "skip";
  p.clip_norm = config.real("optim.clip_norm");
  p.clip_value = config.real("optim.clip_value");
  const std::string& select = config.text("train.select");
  if (select != "last" && p.has_validation && !task.test_is_validation()) p.select_metric = select.substr(4);  // "val."
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return p;
}

void check_globs(const Config& config, const std::vector<std::string>& names, Problems& problems) {
  const auto nothing = [&](const std::string& glob) {
    constexpr size_t kShown = 5;
    std::string text = fmt::format("{} matches no parameter. There are ", nn::printable(glob));
    for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += (i ? ", " : "") + names[i];
    if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
    return text + "." + nn::did_you_mean(glob, names);
  };
  const std::vector<ParameterGroup>& groups = config.groups();
  std::vector<bool> taken(names.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    bool any = false, own = false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!nn::glob_match(groups[g].match, names[i])) continue;
      any = true;
      own = own || !taken[i];
      taken[i] = true;
    }
    if (own) continue;
    const std::string place = fmt::format("optim.groups[{}]: match = ", g);
    problems.push_back({config.origin("optim.groups"),
                        place + (any ? nn::printable(groups[g].match) + " matches only what an earlier group has already"
                                     : nothing(groups[g].match))});
  }
  for (const std::string& glob : config.texts("optim.no_decay"))
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return nn::glob_match(glob, name); }))
      problems.push_back({config.origin("optim.no_decay"), "optim.no_decay: " + nothing(glob)});
}

std::vector<ParamGroup> make_param_groups(const Config& config, const nn::ModuleBase& module) {
  const nn::Options& options = config.spec("optim.optimizer");
  const bool relative = options.has("lr") && options.is_word("lr", "relative");
  const double lr = options.has("lr") && !relative ? options.real("lr") : 1;
  const double decay = options.has("weight_decay") ? options.real("weight_decay") : 0;
  const std::string& rule = config.text("optim.decay");
  const std::vector<std::string> never = config.texts("optim.no_decay");
  const std::vector<ParameterGroup>& groups = config.groups();
  std::vector<std::string> names;
  for (const nn::NamedParameter& p : module.named_parameters()) names.push_back(p.name);
  Problems problems;
  check_globs(config, names, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  // In the order in which they appear; the usual learning rate first, since its value is the one that is shown.
  std::map<std::pair<double, double>, size_t> places;
  std::vector<ParamGroup> out;
  for (const nn::NamedParameter& p : module.named_parameters()) {
    const ParameterGroup* group = nullptr;
    for (size_t i = 0; i < groups.size() && !group; ++i)
      if (nn::glob_match(groups[i].match, p.name)) group = &groups[i];
    if (group && group->freeze) {
      p.tensor.requires_grad_(false);
      continue;
    }
    bool decays = rule == "all" || (rule == "matrices" && p.tensor.dim() >= 2 && !p.no_decay);
    for (const std::string& glob : never) decays &= !nn::glob_match(glob, p.name);
    const double wanted = group && group->weight_decay ? *group->weight_decay : decays ? decay : 0;
    const double scale = group ? group->lr_scale : 1;
    const auto [place, added] = places.try_emplace({scale, wanted}, out.size());
    if (added) out.push_back({.params = {}, .lr = lr * scale, .weight_decay = wanted});
    out[place->second].params.push_back(p.tensor);
  }
  if (out.empty()) throw ConfigError(Problems{{config.origin("optim.groups"), "all parameters are frozen"}});
  std::stable_sort(out.begin(), out.end(), [&](const ParamGroup& a, const ParamGroup& b) {
    return (*a.lr == lr) > (*b.lr == lr);
  });
  return out;
}

}  // namespace waymark::train
