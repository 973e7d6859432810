#include "train/verify/kinds.h"

namespace waymark::train {

const std::vector<CaseKind>& kinds() {
  static const std::vector<CaseKind> list = {
      {"op", "one op of the registry: inputs, outputs, gradients", run_op_case},
      {"optimizer", "one parameter through some updates of an optimizer", run_optimizer_case},
  };
  return list;
}

}  // namespace waymark::train
