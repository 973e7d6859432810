// What an attention says about itself. Functions of its options, causality and cross-attention.
#pragma once

#include <string>

#include "nn/position/facts.h"

namespace waymark::nn {

struct AttentionFacts {
  Capabilities gives = {};
  bool causal_exact = false;        // with `causal`, a token never sees later ones
  bool cross = false;               // takes a context
  bool key_padding = false, any_mask = false, documents = false;
  bool shares_key_heads = false;    // num_kv_heads
  bool takes_state = false;          // of the call
  bool cache = false;               // decodes token by token
  bool topology_sensitive = false;  // moves with the shift
  i64 block = 0;                    // tokens after which a shift of the borders repeats; 0: there are none
  bool random_topology = false;     // which pairs meet depends on random draws, which a call may have drawn again
  bool reads_positions = false;     // its pattern does
  bool neighbourhood = false;       // a token sees its own neighbourhood, and no token sees all
  bool content_pattern = false;     // which pairs meet depends on what the tokens are
  bool rows_sum_to_one = false;     // of the implied weights
  bool forms_weights = true;        // has implied weights at all
  std::string reproduces = "yes";   // z from the weights: yes, "terms", "two steps", "no"
  // Why it cannot do what the facts above deny, as the end of a sentence; empty: no more to say.
  std::string why_not_causal = {}, why_not_cross = {}, why_not_mask = {}, why_not_shared_heads = {};
  // Words for "(…)" behind a warning: why a score is no function of inner products.
  std::string why_not_inner_prod = {};
};

}  // namespace waymark::nn
