// What encodings and attentions say about themselves. The judge, the constructors, `waymark explain`, `waymark matrix`
// and the tests read these facts and nothing else.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::nn {

// What an attention can give to an encoding.
enum class Capability : u8 {
  query_key,   // it projects queries and keys
  free_qk,     // q and k may be transformed differently
  token_qk,    // scores use the q, k of single tokens (no pooling or soft sorting before)
  any_dim,     // the width of q and k may change
  inner_prod,  // a score depends on inner products and norms only
  pair,        // it forms a logit per (query, key) pair
  weight,      // it forms a normalised weight per pair
  row,         // it sees a whole row of logits in key order
};

class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr Capabilities(std::initializer_list<Capability> list) {
    for (const Capability c : list) bits_ |= bit(c);
  }
  constexpr bool has(Capability c) const { return (bits_ & bit(c)) != 0; }
  constexpr Capabilities operator|(Capabilities more) const {
    return changed(bits_ | more.bits_);
  }
  constexpr bool operator==(const Capabilities&) const = default;
  constexpr Capabilities with(Capability c) const { return changed(bits_ | bit(c)); }
  constexpr Capabilities without(Capability c) const { return changed(bits_ & ~bit(c)); }

 private:
  static constexpr u32 bit(Capability c) { return u32{1} << static_cast<u32>(c); }
  static constexpr Capabilities changed(u32 bits) {
    Capabilities c;
    c.bits_ = bits;
    return c;
  }
  u32 bits_ = 0;
};

enum class Site : u8 { none, input, query_key, score };

struct EncodingFacts {
  Site site = Site::none;
  bool value_side = false;           // adds to the mixed values, too
  Capabilities needs = {}, wants = {};  // missing needs: refused; missing wants: a property is lost
  bool needs_causal_call = false;
  bool redefines_content = false;    // replaces q·k: excludes query-key maps
  i64 extra_terms = 0;               // counted by the scale
  bool reads_positions = true;
  bool reads_segments = false;       // the segments of a call; so there is no cross-attention
  // Its terms depend on positions, causality and parameters alone: where all of its parameters live in the stack, it prepares
  // them once for all layers.
  bool terms_of_positions = false;
  bool twice_differentiable = true;  // false: backward through its gradients is refused
  bool sees_direction = false;       // tells left from right without a causal mask
  std::string direction = {};        // in words: "yes", "no", "only through a causal mask"
  bool shift_invariant = false;      // depends on differences of positions alone
  std::string shift = {};            // in words where it is neither: "while p <= threshold"
  std::string beyond_trained = {};   // what happens beyond the trained length
  // A constant added to all keys adds a constant to all scores of a row: k_proj.bias then gets gradient 0.
  bool key_bias_is_constant = false;
  // Parameters of its own, by their names in its ParameterSpecs, whose gradient is 0 while every token has a position:
  // they add a constant to all scores of a row.
  std::vector<std::string> invariant_parameters = {};
  std::string lost = {};             // what missing wants cost: "scores no longer depend on distance alone"

  // "yes", "no", or under which condition.
  std::string shift_text() const { return !shift.empty() ? shift : shift_invariant ? "yes" : "no"; }
};

}  // namespace waymark::nn
