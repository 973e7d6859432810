#include "train/config/registries.h"

#include "train/optim/registry.h"
#include "train/tasks/registry.h"

namespace waymark::train {

const Registries& registries() {
  static const Registries joined = [] {
    Registries r;
    r.tasks = &task_tables();
    r.optimizers = &optimizer_tables();
    r.schedules = &schedule_tables();
    r.task_facts = task_facts;
    r.schedule_needs_total = schedule_needs_total;
    return r;
  }();
  return joined;
}

}  // namespace waymark::train
