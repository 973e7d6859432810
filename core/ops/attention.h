// Scaled dot-product attention, composed of recorded ops.
#pragma once

#include <optional>

#include "core/autograd/arg.h"

namespace waymark {

// softmax(scale·q·kᵀ + mask)·v for query (B, H, L, d), key (B, H, M, d), value (B, H, M, dv); any leading axes. The
// result (B, H, L, dv) lies in memory as (B, L, H, dv), so that merging the heads needs no copy.
// * attn_mask expands to (B, H, L, M): b8, true = may attend; or float, added to the scaled scores and differentiable.
// * is_causal: key j for query i only if j <= i, counted from the first of each; not together with attn_mask.
// * scale: 1/√d unless given. dropout_p: dropout of the weights, from the stream of ops/dropout.h.
// * enable_gqa: key and value have fewer heads, which divide those of query; query head h reads head h·H_kv/H.
// Queries without keys (masked out, or -inf throughout a float mask) have value 0 and gradient 0.
[[nodiscard]] WAYMARK_API Tensor scaled_dot_product_attention(Arg query, Arg key, Arg value, const Tensor& attn_mask = {},
                                                              double dropout_p = 0, bool is_causal = false,
                                                              std::optional<double> scale = {}, bool enable_gqa = false);

}  // namespace waymark
