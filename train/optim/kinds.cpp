// The optimizers' and schedules' option tables, and how they become objects.
#include "train/optim/optimizer.h"
#include "train/optim/registry.h"

namespace waymark::train {

using nn::Options;

namespace {

std::array<double, 2> pair(const std::vector<double>& values) { return {values.at(0), values.at(1)}; }

nn::OptionDef weight_decay_option() {
  return {"weight_decay", nn::real_option(0, 0.0), "of the parameters that decay"};
}

}  // namespace

OptimizerKind adamw_kind() {
  auto options = adam_options(1e-8, 0.01);
  options.push_back({"bias_correction", nn::bool_option(true), "false: without it, as BERT"});
  return {{"adamw", options, "Adam with decoupled weight decay"}, [](std::vector<ParamGroup> groups, const Options& o) {
            return std::make_unique<AdamW>(std::move(groups),
                                           AdamWOptions{.lr = o.real("lr"), .betas = pair(o.reals("betas")),
                                                        .eps = o.real("eps"), .weight_decay = o.real("weight_decay"),
                                                        .bias_correction = o.boolean("bias_correction")});
          }};
}

OptimizerKind adam_kind() {
  return {{"adam", adam_options(1e-8, 0), "Adam; weight decay is added to the gradient"},
          [](std::vector<ParamGroup> groups, const Options& o) {
            return std::make_unique<Adam>(std::move(groups),
                                          AdamOptions{.lr = o.real("lr"), .betas = pair(o.reals("betas")),
                                                      .eps = o.real("eps"), .weight_decay = o.real("weight_decay")});
          }};
}

OptimizerKind sgd_kind() {
  nn::OptionTable table{"sgd",
                        {{"lr", nn::real_option(nn::required(), 0.0), "learning rate at full height of the schedule"},
                         {"momentum", nn::real_option(0, 0.0).less_than(1), "share of the last velocity that stays"},
                         {"dampening", nn::real_option(0, 0.0, 1.0), "of the gradient in the velocity"},
                         {"nesterov", nn::bool_option(false), "look ahead"},
                         weight_decay_option()},
                        "gradient descent, with momentum if wanted",
                        [](const Options& o, std::vector<std::string>& problems) {
                          if (o.boolean("nesterov") && (o.real("momentum") == 0 || o.real("dampening") != 0))
                            problems.emplace_back("nesterov needs momentum > 0 and dampening = 0");
                        }};
  return {table, [](std::vector<ParamGroup> groups, const Options& o) {
            return std::make_unique<SGD>(std::move(groups),
                                         SGDOptions{.lr = o.real("lr"), .momentum = o.real("momentum"),
                                                    .dampening = o.real("dampening"),
                                                    .weight_decay = o.real("weight_decay"),
                                                    .nesterov = o.boolean("nesterov")});
          }};
}

OptimizerKind lamb_kind() {
  return {{"lamb", adam_options(1e-6, 0.01), "Adam's direction, scaled by the norm of each tensor"},
          [](std::vector<ParamGroup> groups, const Options& o) {
            return std::make_unique<Lamb>(std::move(groups),
                                          LambOptions{.lr = o.real("lr"), .betas = pair(o.reals("betas")),
                                                      .eps = o.real("eps"), .weight_decay = o.real("weight_decay")});
          }};
}

OptimizerKind adafactor_kind() {
  nn::OptionTable table{
      "adafactor",
      {{"lr", nn::real_option("relative", 0.0).or_word({"relative"}), "relative: by the size of the parameters"},
       {"eps", nn::real_list_option(std::vector<double>{1e-30, 1e-3}, 0, 1, 2, 2), "added to g², least size"},
       {"clip", nn::real_option(1).greater_than(0), "largest root mean square of an update"},
       {"decay", nn::real_option(-0.8).less_than(0), "exponent of the decay of the second moment"},
       weight_decay_option()},
      "second moments of matrices as row and column means"};
  return {table, [](std::vector<ParamGroup> groups, const Options& o) {
            AdafactorOptions options{.lr = {}, .eps = pair(o.reals("eps")), .clip = o.real("clip"),
                                     .decay = o.real("decay"), .weight_decay = o.real("weight_decay")};
            if (!o.is_word("lr", "relative")) options.lr = o.real("lr");
            return std::make_unique<Adafactor>(std::move(groups), options);
          }};
}

// Schedules -----------------------------------------------------------------------------------------------------------

std::vector<ScheduleKind> schedule_kinds() {
  const nn::OptionDef warmup{"warmup", nn::real_option(0, 0.0), "updates of linear rise; below 1 a share of all"};
  const nn::OptionDef final{"final", nn::real_option(0, 0.0, 1.0), "share of the learning rate at the end"};
  const nn::OptionDef total{"total", nn::int_option(0, 0), "updates until the end; 0 = those of the run"};
  const nn::OptionDef start{"start", nn::int_option(1, 0, 1), "1: the first update has a learning rate; 0: it is 0"};
  nn::OptionDef long_warmup = warmup;
  long_warmup.rule = nn::real_option(1000).greater_than(0);

  std::vector<ScheduleKind> kinds;
  kinds.push_back({{"constant", {warmup, total, start}, "constant after the warm-up"}, false,
                   [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
                     return std::make_unique<Constant>(
                         optimizer, ConstantOptions{.total = steps, .warmup = o.real("warmup"), .start = o.integer("start")});
                   }});
  kinds.push_back(
      {{"linear",
        {warmup, final, {"from", nn::word_option("warmup", {"warmup", "start", "product"}),
                         "where the decline begins; product: warm-up times decline"}, total, start},
        "linear decline after the warm-up"},
       true,
       [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
         const std::string& from = o.word("from");
         return std::make_unique<Linear>(
             optimizer, LinearOptions{.total = steps, .warmup = o.real("warmup"), .final = o.real("final"),
                                      .from = from == "start"     ? LinearFrom::start
                                              : from == "product" ? LinearFrom::product
                                                                  : LinearFrom::warmup,
                                      .start = o.integer("start")});
       }});
  kinds.push_back(
      {{"cosine",
        {warmup, final, {"form", nn::word_option("once", {"once", "lra"}), "lra: as the Long Range Arena code"}, total, start},
        "half a cosine after the warm-up"},
       true,
       [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
         return std::make_unique<Cosine>(
             optimizer, CosineOptions{.total = steps, .warmup = o.real("warmup"), .final = o.real("final"),
                                      .form = o.word("form") == "lra" ? CosineForm::lra : CosineForm::once,
                                      .start = o.integer("start")});
       }});
  kinds.push_back({{"rsqrt",
                    {long_warmup, {"normalised", nn::bool_option(true), "1 at the end of the warm-up"}, total, start},
                    "falls with the root of the updates"},
                   false,
                   [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
                     return std::make_unique<Rsqrt>(
                         optimizer, RsqrtOptions{.total = steps, .warmup = o.real("warmup"),
                                                 .normalised = o.boolean("normalised"), .start = o.integer("start")});
                   }});
  kinds.push_back(
      {{"one-cycle",
        {{"pct", nn::real_option(0.3, 0.0, 1.0), "share of the rise"},
         {"div", nn::real_option(25, 1.0), "height over beginning"},
         {"final_div", nn::real_option(1e4, 1.0), "beginning over end"},
         {"anneal", nn::word_option("cos", {"cos", "linear"}), "form of both parts"},
         {"cycle_momentum", nn::bool_option(true), "move the momentum against the learning rate"},
         {"base", nn::real_option(0.85, 0.0).less_than(1), "least momentum"},
         {"max", nn::real_option(0.95, 0.0).less_than(1), "largest momentum"},
         total},
        "up and down once",
        [](const Options& o, std::vector<std::string>& problems) {
          if (o.real("base") > o.real("max")) problems.emplace_back("base must not exceed max");
        }},
       true,
       [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
         return std::make_unique<OneCycle>(
             optimizer, OneCycleOptions{.total = steps, .pct = o.real("pct"), .div = o.real("div"),
                                        .final_div = o.real("final_div"),
                                        .anneal = o.word("anneal") == "linear" ? Anneal::linear : Anneal::cos,
                                        .cycle_momentum = o.boolean("cycle_momentum"), .base = o.real("base"),
                                        .max = o.real("max")});
       }});
  kinds.push_back({{"step",
                    {{"every", nn::int_option(nn::required(), 1), "updates between drops"},
                     {"gamma", nn::real_option(0.1).greater_than(0), "factor of a drop"},
                     warmup, total, start},
                    "drops by a factor now and then"},
                   false,
                   [](Optimizer& optimizer, const Options& o, i64 steps) -> std::unique_ptr<Schedule> {
                     return std::make_unique<StepDecay>(
                         optimizer, StepOptions{.every = o.integer("every"), .gamma = o.real("gamma"), .total = steps,
                                                .warmup = o.real("warmup"), .start = o.integer("start")});
                   }});
  return kinds;
}

}  // namespace waymark::train
