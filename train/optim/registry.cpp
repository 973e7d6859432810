#include "train/optim/registry.h"

// One line per optimizer, in the order of the documentation. Each is a function that returns its OptimizerKind; the line
// declares it, and lists it.
#define WAYMARK_OPTIMIZERS(X) \
  X(adamw_kind)               \
  X(adam_kind)                \
  X(sgd_kind)                 \
  X(lamb_kind)                \
  X(adafactor_kind)

namespace waymark::train {

#define WAYMARK_DECLARE(NAME) OptimizerKind NAME();
WAYMARK_OPTIMIZERS(WAYMARK_DECLARE)
#undef WAYMARK_DECLARE

namespace {

// Tables and makers stay in step: `add` is the only way in.
template <class Kind> struct Kinds {
  nn::SpecTables tables;
  std::vector<Kind> list;
  Kinds(const char* what, std::vector<Kind> kinds) : tables(what) {
    for (Kind& kind : kinds) add(std::move(kind));
  }
  void add(Kind kind) {
    tables.add(kind.table);
    list.push_back(std::move(kind));
  }
  const Kind& of(const nn::Options& options) const {
    const i64 place = tables.order_of(options.name());
    if (place < 0) fail("registry", "there is no {} {}", tables.kind(), options.name());
    return list[static_cast<size_t>(place)];
  }
};

Kinds<OptimizerKind>& optimizers() {
#define WAYMARK_CALL(NAME) NAME(),
  static Kinds<OptimizerKind> kinds("optimizer", {WAYMARK_OPTIMIZERS(WAYMARK_CALL)});
#undef WAYMARK_CALL
  return kinds;
}
Kinds<ScheduleKind>& schedules() {
  static Kinds<ScheduleKind> kinds("schedule", schedule_kinds());
  return kinds;
}

}  // namespace

const nn::SpecTables& optimizer_tables() { return optimizers().tables; }
const nn::SpecTables& schedule_tables() { return schedules().tables; }
void register_optimizer(OptimizerKind kind) { optimizers().add(std::move(kind)); }
void register_schedule(ScheduleKind kind) { schedules().add(std::move(kind)); }

std::unique_ptr<Optimizer> make_optimizer(std::vector<ParamGroup> groups, const nn::Options& options) {
  return optimizers().of(options).make(std::move(groups), options);
}

namespace {
i64 own_total(const nn::Options& options) { return options.has("total") ? options.integer("total") : 0; }
}  // namespace

std::unique_ptr<Schedule> make_schedule(Optimizer& optimizer, const nn::Options& options, i64 total) {
  const i64 own = own_total(options);
  return schedules().of(options).make(optimizer, options, own > 0 ? own : total);
}

bool schedule_needs_total(const nn::Options& options) {
  if (own_total(options) > 0) return false;
  if (schedules().of(options).needs_total) return true;
  if (!options.has("warmup")) return false;
  const double warmup = options.real("warmup");
  return warmup > 0 && warmup < 1;
}

// Option tables -------------------------------------------------------------------------------------------------------

nn::OptionDef lr_option(double fallback) {
  return {"lr", nn::real_option(fallback, 0.0), "learning rate at full height of the schedule"};
}
std::vector<nn::OptionDef> adam_options(double eps, double weight_decay) {
  return {lr_option(1e-3),
          {"betas", nn::real_list_option(std::vector<double>{0.9, 0.999}, 0, 1 - 1e-15, 2, 2),
           "decay of the two moments"},
          {"eps", nn::real_option(eps, 0.0), "added to the root"},
          {"weight_decay", nn::real_option(weight_decay, 0.0), "of the parameters that decay"}};
}

}  // namespace waymark::train
