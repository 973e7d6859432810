// What an attention says about itself. Functions of its options, causality and cross-attention.
#pragma once

#include <string>

#include "nn/position/facts.h"

namespace waymark::nn {

struct AttentionFacts {
  Capabilities gives;
  bool causal_exact = false;        // with `causal`, a token never sees later ones
  bool cross = false;               // takes a context
  bool key_padding = false, any_mask = false, documents = false;
  bool shares_key_heads = false;    // num_kv_heads
  bool takes_state = false, takes_global = false;  // of the call
  bool cache = false;               // decodes token by token
  bool topology_sensitive = false;  // moves with the shift
  bool rows_sum_to_one = false;     // of the implied weights
  bool forms_weights = true;        // has implied weights at all
  std::string reproduces = "yes";   // z from the weights: yes, "terms", "two steps", "no"
  // Words for "(…)" behind a warning: why a score is no function of inner products.
  std::string why_not_inner_prod;
};

}  // namespace waymark::nn
