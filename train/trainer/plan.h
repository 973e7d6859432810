// Internal: what the config's numbers mean for one task.
#pragma once

#include <string>
#include <vector>

#include "train/optim/base.h"
#include "train/trainer/model.h"

namespace waymark::train {

struct TrainPlan {
  i64 steps = 0;          // 0: another budget decides
  i64 token_budget = 0;   // 0: none
  double second_budget = 0;
  std::string budget = {};     // "steps", "epochs", "tokens", "minutes": what is said when it is used up
  i64 batch_size = 1, micro_batch = 1;
  i64 log_every = 1, eval_every = 1, save_every = 1, keep = 1;
  i64 eval_batches = 0, patience = 0;
  bool eval_at_start = false, has_validation = false, skip_nonfinite = false, shuffle = true, drop_last = false;
  double clip_norm = 0, clip_value = 0;
  std::string select_metric = {};  // of val; empty: the last checkpoint is the only one
};

// ConfigError if the budget cannot be turned into steps where that is needed, or names data that is not there.
TrainPlan make_plan(const Config& config, const Task& task);

// What optim.groups and optim.no_decay say about parameters that are not there: a glob that matches none of `names`, a
// group whose parameters all belong to earlier groups.
void check_globs(const Config& config, const std::vector<std::string>& names, Problems& problems);

// The groups of the optimizer: by optim.groups, optim.decay and optim.no_decay. Frozen parameters lose requires_grad
// and are in no group. Error if nothing is left, or a group of the config matches no parameter.
std::vector<ParamGroup> make_param_groups(const Config& config, const nn::ModuleBase& module);

}  // namespace waymark::train
