#include "train/config/registries.h"

namespace waymark::train {

const Registries& registries() {
  static const Registries joined;
  return joined;
}

}  // namespace waymark::train
