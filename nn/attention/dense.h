// dense: softmax over all allowed keys (Vaswani et al. 2017). The reference for the limits of all others.
#pragma once

#include <memory>

#include "nn/attention/attention.h"
#include "nn/layers/linear.h"

namespace waymark::nn {

class WAYMARK_API DenseAttention : public Attention {
 public:
  DenseAttention(ModuleBase* parent, std::string_view name, AttentionSetup setup);

  // The part without projections: q [B, H, L, d], k and v [B, Hkv, M, ·] as they come out of them -> z [B, H, L, dv],
  // and weights. Of `in` it reads everything but x and context. Padded rows may hold anything, also inf and NaN.
  struct Core {
    Tensor z, weights;
  };
  Core core(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in) const;

  Linear q_proj, k_proj, v_proj;
  std::unique_ptr<Linear> out_proj;  // null without
  PositionModule position;
  Tensor q_norm, k_norm;  // of qk_norm=rms, [d]

 protected:
  AttentionOutput attend(const AttentionInput& in) const override;
  std::vector<ImpliedTerm> terms_of(const AttentionInput& in) const override;
  std::vector<ScorePart> parts_of(const AttentionInput& in) const override;

 private:
  i64 width() const { return setup().sizes.embed_dim; }
  i64 query_width() const { return setup().sizes.num_heads * setup().sizes.head_dim; }
  i64 key_width() const { return setup().kv_heads * setup().sizes.head_dim; }
  enum class QkNorm : u8 { none, l2, rms };
  struct Projected {
    Tensor q, k, v;  // [B, H, L, d], [B, Hkv, M, d] twice
  };
  Projected project(const AttentionInput& in) const;
  AttentionInput cut(const AttentionInput& in, Projected& p) const;
  Tensor normalised(const Tensor& x, const Tensor& weight) const;
  // The call as the reference takes it; names[i] is the encoding of terms[i].
  ReferenceAttention reference(const Projected& p, const AttentionInput& in, std::vector<std::string>* names) const;

  QkNorm qk_norm_;
};

}  // namespace waymark::nn
