// Attention: from tokens to mixed tokens. One interface for all kinds; a spec names the kind.
//
//   nn::MultiHeadAttention attention{*this, "attention", {.embed_dim = 64, .num_heads = 4, .position = "huang-m4(clip=8)"}};
//   Tensor y = attention({.x = x, .positions = Positions::range(64)}).y;
//
// Per head: q = x W_qᵀ + b_q; k, v from the context or x; z_i = Σ_j α_ij v_j; y = concat_h(z) W_oᵀ + b_o.
// * A row without any allowed key has z = 0, weights 0, and no gradient; the output row is then b_o.
// * Padded keys have no effect and gradient 0; padded queries have z = 0.
// * Positions are given, never inferred: without them an encoding or causal call that reads them is an Error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/attention_reference.h"
#include "nn/attention/facts.h"
#include "nn/attention/mask.h"
#include "nn/position/module.h"

namespace waymark::nn {

struct AttentionConfig {
  i64 embed_dim = 0;             // E
  i64 num_heads = 1;             // H
  i64 head_dim = 0;              // d; 0: E/H
  i64 num_kv_heads = 0;          // heads of keys and values, shared by groups of query heads; 0: H
  std::string position = "none"; // a sum of encodings; an input-site one is added to x before the projections
  std::string attention = "dense";
  bool causal = false;           // of every call
  bool cross = false;            // keys and values come from a context
  bool bias = true;              // of the projections
  bool out_proj = true;          // without: y is [B, L, H·d]
  std::optional<double> scale = {};  // of the scores; unset: 1/√(width of q); 1: none
  double dropout = 0;            // on the weights
  i64 max_len = 0;               // default of max_len options; 0: theirs
};

// The same, resolved and checked.
struct AttentionSetup {
  EncodingSizes sizes = {};
  i64 kv_heads = 1;
  EncodingSum encodings = {};
  Options attention = {};
  bool causal = false, cross = false, bias = true, out_proj = true;
  std::optional<double> scale = {};
  double dropout = 0;
  const PositionModule* stack = nullptr;  // lends shared parameters; must outlive the attention
  std::vector<std::string> warnings = {}; // of the judge
};

// One call. B rows, L queries, M keys (M = L in self-attention).
struct AttentionInput {
  Tensor x = {};                     // [B, L, E]
  Tensor context = {};               // [B, M, E]; undefined: self-attention
  Positions positions = {}, context_positions = {};
  Tensor key_keep = {};              // b8 [B, M]: kept keys; undefined: all
  Tensor query_keep = {};            // b8 [B, L]; undefined: key_keep in self-attention, else all
  Mask mask = {};
  MaskArrays arrays = {};            // what `input` in the mask stands for; `global` serves longformer(global=input), too
  bool causal = false;               // or AttentionConfig::causal
  Tensor segments = {};              // i64 [B, L]: segment of each token, for encodings that read it; self-attention only
  Tensor state = {};                 // [B, m, E]: rows that travel with the tokens (luna, hst)
  i64 shift = 0;                     // of block borders
  std::optional<u64> redraw = {};    // random topology (blocks, hashes) by this draw number in place of its own
  bool want_weights = false;
  std::shared_ptr<const PreparedTerms> prepared = {};  // of the stack, for these positions; null: every layer prepares its own
  // Read by implied_weights, implied_terms and score_parts alone, to look at a long call in pieces: their L is that of these
  // rows. An attention in which the pairs depend on what the tokens are gives all rows.
  QueryRows rows = {};
};
struct AttentionOutput {
  Tensor y = {};        // [B, L, E], or [B, L, H·d] without out_proj
  Tensor weights = {};  // [B, H, L, M] before dropout, if wanted
  Tensor state = {};    // if there is one
  // What training adds to its loss, by name (routing: "commitment"); empty in evaluation. A model's are collected by
  // AuxiliaryLosses (nn/module/auxiliary.h).
  std::vector<std::pair<std::string, Tensor>> auxiliary_losses = {};
};

struct CachedTokens;

class WAYMARK_API Attention : public Module<Attention> {
 public:
  Attention(ModuleBase* parent, std::string_view name, AttentionSetup setup)
      : Module(parent, name), setup_(std::move(setup)) {}

  // Takes braces: attention({.x = x}).
  AttentionOutput operator()(const AttentionInput& in) { return Module::operator()(in); }
  AttentionOutput operator()(const AttentionInput& in) const { return Module::operator()(in); }
  AttentionOutput forward(const AttentionInput& in) const;

  // The weights that reproduce z through v (or the terms that do), without dropout; summands of the scores. Shapes as
  // in core/ops/attention_reference.h. Not recorded.
  Tensor implied_weights(const AttentionInput& in) const;
  std::vector<ImpliedTerm> implied_terms(const AttentionInput& in) const;
  std::vector<ScorePart> score_parts(const AttentionInput& in) const;
  // The pairs that mask, causality and padding of this call allow, whatever the pattern of the attention: b8, four axes
  // that expand to [B, H, L, M]; undefined: all.
  Tensor allowed_pairs(const AttentionInput& in) const;

  const AttentionSetup& setup() const { return setup_; }
  // Spec of the attention and of its encodings.
  const Options& options() const { return setup_.attention; }
  const EncodingSum& encodings() const { return setup_.encodings; }

 protected:
  // x and its positions are checked before.
  virtual AttentionOutput attend(const AttentionInput& in) const = 0;
  // Of one weight per head and pair; undefined: there are none.
  virtual Tensor weights_of(const AttentionInput& in) const = 0;
  virtual std::vector<ImpliedTerm> terms_of(const AttentionInput& in) const = 0;
  virtual std::vector<ScorePart> parts_of(const AttentionInput& in) const = 0;
  // Error if the call does not fit this attention.
  void check(const AttentionInput& in) const;
  // The pairs that mask, causality and padding allow, for L queries and M keys: b8, four axes that expand to [B, H, L, M];
  // undefined: all. Error for repeated positions in a causal call whose mask does not keep documents apart.
  // `rows`: of these queries alone.
  Tensor allowed_pairs(const AttentionInput& in, i64 batch, i64 queries, i64 keys, QueryRows rows = {}) const;
  MaskCall mask_call(const AttentionInput& in, i64 batch, i64 queries, i64 keys) const;
  static const Positions& key_positions(const AttentionInput& in) { return in.context.defined() ? in.context_positions : in.positions; }
  static Tensor query_keep(const AttentionInput& in);
  bool causal(const AttentionInput& in) const { return setup_.causal || in.causal || in.mask.implies_causal(); }
  // y of tokens behind those of the cache, which it puts there; for attentions whose facts say `cache`.
  virtual Tensor decode(const AttentionInput& in, CachedTokens& cache) const;

 private:
  friend class AttentionCache;
  AttentionSetup setup_;
};

// One kind of attention: options, facts, and how it is made.
struct AttentionInfo {
  OptionTable options = {};
  std::function<AttentionFacts(const Options&, bool causal, bool cross)> facts = {};
  std::vector<std::string> formulas = {};
  // Appends what does not fit, without the name of the attention. May be empty.
  std::function<void(const AttentionSetup&, std::vector<std::string>& problems)> check = {};
  // The pairs that meet in a call, before mask, causality and padding; random choices by this stream. May be empty: all,
  // or, with AttentionFacts::content_pattern, what the tokens decide.
  std::function<Mask(const Options&, const MaskCall&, std::string_view stream)> pattern = {};
  std::function<std::unique_ptr<Attention>(ModuleBase* parent, std::string_view name, AttentionSetup setup)> make = {};

  const std::string& name() const { return options.name; }
};

// All problems of a config at once: specs, sizes, the judge's refusals.
WAYMARK_API AttentionSetup resolve_attention(const AttentionConfig& config);
// Appends what does not fit the attention: rules that need sizes beside its options.
WAYMARK_API void check_setup(const AttentionSetup& setup, std::vector<std::string>& problems);
WAYMARK_API std::unique_ptr<Attention> make_attention(ModuleBase* parent, std::string_view name, AttentionSetup setup);

// An attention as a member: the module is the one that the spec names, under the name given here.
class WAYMARK_API MultiHeadAttention {
 public:
  MultiHeadAttention(ModuleBase& parent, std::string_view name, const AttentionConfig& config)
      : attention_(make_attention(&parent, name, resolve_attention(config))) {}
  MultiHeadAttention(ModuleBase& parent, std::string_view name, AttentionSetup setup)
      : attention_(make_attention(&parent, name, std::move(setup))) {}
  explicit MultiHeadAttention(const AttentionConfig& config)
      : attention_(make_attention(nullptr, "", resolve_attention(config))) {}

  AttentionOutput operator()(const AttentionInput& in) const { return (*attention_)(in); }
  Attention& operator*() const { return *attention_; }
  Attention* operator->() const { return attention_.get(); }

 private:
  std::unique_ptr<Attention> attention_;
};

}  // namespace waymark::nn
