// AttentionCache: decoding. Tokens come in pieces, and each piece attends to all tokens so far, whose keys and values are kept;
// the rows are those that the causal call on the whole sequence gives.
//
//   const NoGrad off;
//   nn::AttentionCache cache(*attention);                                  // attention: causal, in evaluation
//   Tensor y = cache.append({.x = prompt, .positions = Positions::range(12)});       // [B, 12, E]
//   y = cache.append({.x = next, .positions = Positions::range(1, 12)});             // [B, 1, E]
//
// Positions are given here as everywhere: those of the new tokens, behind those that came before, or whatever they are. Keys
// are kept as they come out of their projection, so that every encoding (score terms, rope, xpos, whose centre follows the
// keys) and every pattern applies to them as in the whole call; work and memory of a step grow with the number of tokens.
#pragma once

#include <initializer_list>
#include <vector>

#include "nn/attention/attention.h"

namespace waymark::nn {

// What has come so far: keys, values and whatever else an attention needs of its tokens, and the call that they make up.
struct CachedTokens {
  i64 length = 0;
  std::vector<Tensor> kept = {};   // [B, ·, length, ·] each
  AttentionInput call = {};        // positions, key_keep, query_keep and segments of all tokens

  // Puts the new tokens behind those that are here. `mine` are tensors of the new tokens [B, ·, n, ·], the same ones in every
  // call; they become those of all tokens, and undefined ones stay as they are. Returns the call of all tokens: `in` without x.
  AttentionInput append(const AttentionInput& in, std::initializer_list<Tensor*> mine);
};

class WAYMARK_API AttentionCache {
 public:
  // Error for an attention that cannot decode with a cache, with the reason. The attention must outlive the cache, and its
  // parameters must not change before clear().
  explicit AttentionCache(const Attention& attention);

  // x [B, n, E], n >= 0: the tokens behind those of the calls before. positions, key_keep, query_keep and segments are of these
  // tokens, arrays (documents, global, ...) of all tokens so far; the rest is the same in every call. Returns their rows of y.
  // Error, and nothing changes, unless the call is causal, nothing is recorded (NoGrad), the attention is in evaluation, and
  // the call has as many rows, and such of these inputs, as those before.
  Tensor append(const AttentionInput& tokens);

  i64 length() const { return tokens_.length; }
  void clear() { tokens_ = {}; }

 private:
  const Attention* attention_;
  CachedTokens tokens_ = {};
};

}  // namespace waymark::nn
