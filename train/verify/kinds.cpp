#include "train/verify/kinds.h"

namespace waymark::train {

const std::vector<CaseKind>& kinds() {
  static const std::vector<CaseKind> list = {
      {"op", "one op of the registry: inputs, outputs, gradients", run_op_case},
  };
  return list;
}

}  // namespace waymark::train
