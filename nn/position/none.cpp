// none: no encoding. Without a causal mask, attention then sees a set of tokens, not a sequence.
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

EncodingInfo none() {
  return {.options = {"none", {}, "no position encoding"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.reads_positions = false;
            f.direction = "only through a causal mask";
            f.shift_invariant = true;
            f.beyond_trained = "defined";
            f.key_bias_is_constant = true;
            return f;
          },
          .make = [](const Options&, const EncodingSizes&, const ParameterLookup&) { return std::make_unique<Encoding>(); }};
}

}  // namespace waymark::nn::encodings
