#include "train/verify/kinds.h"

namespace waymark::train {

const std::vector<CaseKind>& kinds() {
  static const std::vector<CaseKind> list = {
      {"op", "one op of the registry: inputs, outputs, gradients", run_op_case},
      {"attention", "an attention module with its position encodings: values and all gradients", run_attention_case},
      {"attention_core", "the same without projections: q, k, v given", run_attention_core_case},
      {"embedding_position", "what an input-site encoding adds", run_embedding_position_case},
      {"query_key_map", "what a query-key encoding makes of q and k", run_query_key_map_case},
      {"encoder_layer", "one layer of an encoder", run_encoder_layer_case},
      {"training", "a token model trained for some steps: losses, gradient norms, final parameters", run_training_case},
      {"optimizer", "one parameter through some updates of an optimizer", run_optimizer_case},
  };
  return list;
}

}  // namespace waymark::train
