// Optimizers and schedules by name, as configs write them: adamw(lr=1e-3), cosine(warmup=100). To add one, write its
// class with a kind function beside it, and a line in registry.cpp.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/spec/options.h"
#include "train/optim/base.h"
#include "train/optim/schedule.h"

namespace waymark::train {

struct OptimizerKind {
  nn::OptionTable table = {};
  std::function<std::unique_ptr<Optimizer>(std::vector<ParamGroup>, const nn::Options&)> make = {};
};
struct ScheduleKind {
  nn::OptionTable table = {};
  bool needs_total = false;  // it must know T
  std::function<std::unique_ptr<Schedule>(Optimizer&, const nn::Options&, i64 total)> make = {};
};

WAYMARK_API const nn::SpecTables& optimizer_tables();
WAYMARK_API const nn::SpecTables& schedule_tables();
// A user's own. Error if the name is taken. Not while another thread resolves specs.
WAYMARK_API void register_optimizer(OptimizerKind kind);
WAYMARK_API void register_schedule(ScheduleKind kind);

// `options` as resolved by the tables. Groups without an lr or weight_decay take those of the options.
WAYMARK_API std::unique_ptr<Optimizer> make_optimizer(std::vector<ParamGroup> groups, const nn::Options& options);
// The options' own `total` wins over `total` (the updates of the run; 0 = unknown).
WAYMARK_API std::unique_ptr<Schedule> make_schedule(Optimizer& optimizer, const nn::Options& options, i64 total);
// Does this schedule have to know the number of updates beforehand (and does its spec not say it)?
WAYMARK_API bool schedule_needs_total(const nn::Options& options);

// All schedules (kinds.cpp).
std::vector<ScheduleKind> schedule_kinds();

// Options that several kinds share.
nn::OptionDef lr_option(double fallback);
std::vector<nn::OptionDef> adam_options(double eps, double weight_decay);

}  // namespace waymark::train
