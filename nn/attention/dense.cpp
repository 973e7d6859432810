// dense: softmax over all allowed keys (Vaswani et al. 2017). The reference for the limits of all others.
#include "nn/attention/projected.h"

namespace waymark::nn::attentions {

AttentionInfo dense() {
  return {.options = {"dense", {qk_norm_option()}, "softmax over all allowed keys"},
          .facts = [](const Options&, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.gives = f.gives.with(Capability::row);
            f.cross = true;
            f.why_not_cross.clear();
            return f;
          },
          .formulas = {"z_i = Σ_j softmax_j(e_ij)·v_j,  e_ij = q_i·k_j/√d + terms of the encodings"},
          .make = make_projected<ProjectedAttention>};
}

}  // namespace waymark::nn::attentions
