#include "train/config/registries.h"

#include "train/optim/registry.h"

namespace waymark::train {

const Registries& registries() {
  static const Registries joined = [] {
    Registries r;
    r.optimizers = &optimizer_tables();
    r.schedules = &schedule_tables();
    return r;
  }();
  return joined;
}

}  // namespace waymark::train
