// Attention over explicit pairs, composed of plain ops: the readable twin of the fused kernel. It defines the meaning
// and may build [Lq, Lk].
//
// Order in a score: content, multipliers, · s_c, + s_a·tables, + biases, gate, mask. A row without any allowed key has z = 0,
// weights 0 and no gradient; a pair whose score a term makes -inf is not allowed.
#pragma once

#include <string>
#include <vector>

#include "core/ops/attention_terms.h"

namespace waymark {

struct ReferenceAttention {
  Tensor query = {}, key = {}, value = {};     // q' [B, H, Lq, w], k' [B, Hkv, Lk, w], v [B, Hkv, Lk, dv]; Hkv divides H
  Tensor term_query = {}, term_key = {};       // what the terms read, before a query-key map; undefined: query, key
  std::vector<ScoreTerm> terms = {};
  Tensor query_positions = {}, key_positions = {};  // i64 [L] or [B, L]; needed by terms that read them
  Tensor keep = {};                            // b8, expands to [B, H, Lq, Lk]; undefined: every pair
  double content_scale = 1, table_scale = 1;   // s_c, s_a
  double dropout = 0;                          // on the weights, by the stream of the active scope
  // Z/(1-p) itself, [B, H, Lq, Lk], where several calls share one mask; then `dropout` is not looked at.
  Tensor dropout_factor = {};
  // Added to the scores: [B, H, Lq, Lk] in logit units, without gradient (log of how often a pair counts).
  Tensor offset = {};
  // Pairs of several softmaxes, b8 as `keep` each: a row is the mean over those that leave it a key. Empty: one, of all.
  std::vector<Tensor> groups = {};
};
struct ReferenceResult {
  Tensor z = {};        // [B, H, Lq, dv]
  Tensor weights = {};  // [B, H, Lq, Lk], before dropout
};
WAYMARK_API ReferenceResult attention_reference(const ReferenceAttention& call);

// A named part of the scores, [B, H, Lq, Lk] in logit units: the summands add up to "total" (all without mask, but for the
// gate, which counts allowed keys). A multiplier is a factor of "content", which contains it.
struct ScorePart {
  std::string name = {};
  Tensor value = {};
  bool multiplier = false;
  int term = -1;  // which of the terms; -1: content and total
};
WAYMARK_API std::vector<ScorePart> score_parts_reference(const ReferenceAttention& call);

// z = Σ_t W_t V_t exactly, without dropout: (weights, v), and for value terms (weights summed by row, rows).
struct ImpliedTerm {
  Tensor weights = {}, values = {};  // [B, H, Lq, ·], [B|1, H|1, ·, dv]
};
WAYMARK_API std::vector<ImpliedTerm> implied_terms_reference(const ReferenceAttention& call);

}  // namespace waymark
