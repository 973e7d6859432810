// The base of attentions whose scores are inner products of projected tokens: q_proj, k_proj, v_proj, out_proj, encodings,
// and the way from a call to the output. A derived class says which pairs meet, or with which projections.
//
// An attention without a class of its own is this one with the pattern of its AttentionInfo: softmax over the pairs that
// pattern, mask, causality and padding allow.
#pragma once

#include <functional>
#include <memory>

#include "nn/attention/attention.h"
#include "nn/layers/linear.h"

namespace waymark::nn {

// Projections of queries and keys, rows [..., E] -> [..., H·d] and [..., Hkv·d], for encodings that borrow them.
struct LentProjections {
  std::function<Tensor(const Tensor&)> query = {}, key = {};
};

class WAYMARK_API ProjectedAttention : public Attention {
 public:
  ProjectedAttention(ModuleBase* parent, std::string_view name, AttentionSetup setup, bool with_k_proj = true);

  // The part without projections: q [B, H, L, d], k and v [B, Hkv, M, ·] as they come out of them -> z [B, H, L, dv],
  // and weights. Of `in` it reads everything but x and context. Padded rows may hold anything, also inf and NaN.
  struct Core {
    Tensor z, weights;
  };
  Core core(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in) const;

  Linear q_proj;
  std::unique_ptr<Linear> k_proj;    // null where queries and keys are one vector
  Linear v_proj;
  std::unique_ptr<Linear> out_proj;  // null without
  PositionModule position;
  Tensor q_norm, k_norm;  // of qk_norm=rms, [d]

 protected:
  AttentionOutput attend(const AttentionInput& in) const override;
  Tensor decode(const AttentionInput& in, CachedTokens& cache) const override;
  Tensor weights_of(const AttentionInput& in) const override;
  std::vector<ImpliedTerm> terms_of(const AttentionInput& in) const override;
  std::vector<ScorePart> parts_of(const AttentionInput& in) const override;

  struct Projected {
    Tensor q, k, v;                       // [B, H, L, d], [B, Hkv, M, d] twice
    Tensor global_q = {}, global_k = {}, global_v = {};  // second projections of global tokens, if there are some
    QueryRows rows = {};                  // q and global_q are of these queries of the call alone
    i64 queries = 0;                      // then: how many there are in all
  };
  // One softmax over some rows. Passes share no row: their results are added.
  struct Pass {
    ReferenceAttention call;
    Tensor rows = {};                      // b8, expands to [B, H, L, 1]: the queries it is of; undefined: all
    std::vector<std::string> names = {};   // the encoding of each term
  };
  virtual Projected project(const AttentionInput& in) const;
  // `in` is the call of all queries.
  virtual std::vector<Pass> passes(const Projected& p, const AttentionInput& in) const;
  std::vector<Pass> passes_of_rows(const AttentionInput& in) const;
  // Keys, where they are made of the queries.
  virtual Tensor keys_of_queries(const Tensor& q, const Tensor& keep) const;
  // After a forward: what training does beside (routing).
  virtual void after_forward(const Projected&, const AttentionInput&, AttentionOutput&) const {}

  // The call as the reference takes it, for these q, k, v and these pairs (undefined: all). `rows`: q and the pairs are of these
  // queries alone. `lent`: the projections that made q and k, if they are not q_proj and k_proj.
  Pass pass_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in, const Tensor& keep, QueryRows rows = {},
               const LentProjections& lent = {}) const;
  // Pattern, mask, causality and padding together, of the rows of p.q.
  Tensor pattern_pairs(const Projected& p, const AttentionInput& in) const;
  // Of all queries.
  MaskCall mask_call_of(const Projected& p, const AttentionInput& in) const;

  static Tensor split_heads(const Tensor& x, i64 heads);  // [B, L, H·d] -> [B, H, L, d]
  Tensor normalised(const Tensor& x, const Tensor& weight) const;
  i64 width() const { return setup().sizes.embed_dim; }
  i64 query_width() const { return setup().sizes.num_heads * setup().sizes.head_dim; }
  i64 key_width() const { return setup().kv_heads * setup().sizes.head_dim; }

 private:
  enum class QkNorm : u8 { none, l2, rms };
  struct Mixed {
    Tensor z, weights;
  };
  Mixed mix(const std::vector<Pass>& passes) const;
  Tensor output_of(const Mixed& mixed) const;

  QkNorm qk_norm_ = QkNorm::none;
};

// The options and facts that attentions over explicit pairs share.
OptionDef qk_norm_option();
AttentionFacts pair_attention_facts();
// `make` of an AttentionInfo.
template <class A> std::unique_ptr<Attention> make_projected(ModuleBase* parent, std::string_view name, AttentionSetup setup) {
  return std::make_unique<A>(parent, name, std::move(setup));
}

}  // namespace waymark::nn
