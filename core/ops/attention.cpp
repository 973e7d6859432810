#include "core/ops/attention.h"

#include <cmath>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/products.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace waymark {

using namespace ops;

namespace {

constexpr std::string_view kOp = "scaled_dot_product_attention";

void check_attention(const Arg& q, const Arg& k, const Arg& v, bool enable_gqa) {
  for (const Arg* t : {&q, &k, &v}) {
    check_defined(kOp, *t);
    need_float(kOp, **t);
  }
  for (const Arg* t : {&k, &v}) check_product_dtypes(kOp, q, *t);
  if (q->dim() < 2 || k->dim() != q->dim() || v->dim() != q->dim())
    fail_at(q.loc(), kOp, "query, key and value need the same number of axes, at least 2; got {}, {}, {}", q->shape(), k->shape(), v->shape());
  if (q->shape().back() != k->shape().back())
    fail_at(q.loc(), kOp, "the widths of query and key differ: {} and {} ({} != {})", q->shape(), k->shape(), q->shape().back(), k->shape().back());
  if (k->shape().at(-2) != v->shape().at(-2))
    fail_at(q.loc(), kOp, "the lengths of key and value differ: {} and {} ({} != {})", k->shape(), v->shape(), k->shape().at(-2), v->shape().at(-2));
  const int lead = q->dim() - 2;
  for (int i = 0; i < lead; ++i) {
    const i64 a = q->shape()[i], b = k->shape()[i];
    const bool heads = enable_gqa && i == lead - 1;
    if (b != v->shape()[i] || (heads ? b == 0 || a % b != 0 : a != b))
      fail_at(q.loc(), kOp, "the leading axes of query {}, key {} and value {} do not match{}", q->shape(), k->shape(), v->shape(),
              heads ? ": the heads of key and value must be equal and divide those of query" : a != b && i == lead - 1 ? "; for fewer heads of key and value pass enable_gqa" : "");
  }
  if (enable_gqa && lead < 1) fail_at(q.loc(), kOp, "enable_gqa needs an axis of heads, got {}", q->shape());
}

// q of H heads as H_kv heads of longer sequences, and back.
Shape grouped(const Shape& s, i64 heads) {
  Shape out = s;
  const int h = s.size() - 3;
  out[h + 1] = s[h] / heads * s[h + 1];
  out[h] = heads;
  return out;
}

struct Mask {
  Tensor keep;   // b8: may attend; undefined: everywhere
  Tensor added;  // float, finite where keep; undefined: nothing
};
Mask mask_of(const Tensor& attn_mask, bool is_causal, const Shape& scores, Loc loc) {
  if (is_causal) {
    if (attn_mask.defined()) fail_at(loc, kOp, "attn_mask and is_causal exclude each other; put the causal part into the mask");
    return {ge(unsqueeze(arange(scores.at(-2)), 1), arange(scores.back())), {}};
  }
  if (!attn_mask.defined()) return {};
  if (!broadcasts_to(attn_mask.shape(), scores))
    fail_at(loc, kOp, "attn_mask {} does not expand to the scores {}", attn_mask.shape(), scores);
  if (attn_mask.dtype() == kB8) return {attn_mask, {}};
  if (!is_float(attn_mask.dtype()))
    fail_at(loc, kOp, "attn_mask must be b8 (true: may attend) or float (added to the scores), got {}", name_of(attn_mask.dtype()));
  // -inf means "may not attend": as a number it would make rows without keys NaN.
  const Tensor given = attn_mask, absent = eq(given, -std::numeric_limits<double>::infinity());
  return {logical_not(absent), masked_fill(given, absent, 0)};
}

}  // namespace

extern constexpr OpInfo kScaledDotProductAttention{
    .name = "scaled_dot_product_attention", .family = "attention",
    .doc = "attention of queries to keys, by matmul, masked_softmax, dropout and matmul",
    .schema = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
              "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    .formula = "y = P·v,  P = softmax(s·q·kᵀ + mask)",
    .rule = "dv = Pᵀg,  dS = P⊙(g·vᵀ − Σ g⊙y),  dq = s·dS·k,  dk = s·dSᵀ·q,  dmask = dS; by the rules of its ops",
    .flops = [](OpCall& c) {
      const Tensor &q = c.tensor("query"), &v = c.tensor("value");
      return 2.0 * static_cast<double>(q.numel() + (q.numel() / std::max<i64>(1, q.shape().back())) * v.shape().back()) *
             static_cast<double>(v.shape().at(-2));
    },
    .apply = [](OpCall& c) {
      std::optional<double> scale;
      if (c.has("scale")) scale = c.number("scale");
      c.result(scaled_dot_product_attention(c.tensor("query"), c.tensor("key"), c.tensor("value"), c.optional_tensor("attn_mask"),
                                            c.number("dropout_p", 0), c.flag("is_causal", false), scale,
                                            c.flag("enable_gqa", false)));
    }};

Tensor scaled_dot_product_attention(Arg query, Arg key, Arg value, const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale_or_default, bool enable_gqa) {
  check_attention(query, key, value, enable_gqa);
  if (!(dropout_p >= 0 && dropout_p <= 1)) fail_at(query.loc(), kOp, "dropout_p = {} is outside [0, 1]", dropout_p);
  const Loc at = query.loc();
  const Tensor q = *query, k = *key, v = *value;
  Shape scores = q.shape();
  scores[scores.size() - 1] = k.shape().at(-2);
  const Mask mask = mask_of(attn_mask, is_causal, scores, at);
  const double scale = scale_or_default.value_or(1 / std::sqrt(static_cast<double>(std::max<i64>(1, q.shape().back()))));
  const i64 heads = enable_gqa ? k.shape().at(-3) : 0;
  const bool groups = enable_gqa && heads != q.shape().at(-3);

  // All query heads of a group against their one key head: a longer sequence, no copies of k.
  Tensor s = matmul(Arg(groups ? reshape(Arg(q, at), grouped(q.shape(), heads)) : q, at), mT(Arg(k, at)));
  if (groups) s = reshape(Arg(s, at), scores);
  double factor = scale;
  if (mask.added.defined()) {
    s = add(Arg(factor == 1 ? s : mul(Arg(s, at), factor), at), mask.added);
    factor = 1;
  }
  Tensor p;
  if (mask.keep.defined()) p = masked_softmax(Arg(s, at), mask.keep, -1, factor);
  else p = softmax(Arg(factor == 1 ? s : mul(Arg(s, at), factor), at), -1);
  if (dropout_p > 0) p = dropout(Arg(p, at), dropout_p, true);
  if (!groups) return matmul_by_rows(Arg(p, at), v);
  Shape out = q.shape();
  out[out.size() - 1] = v.shape().back();
  return reshape(Arg(matmul(Arg(reshape(Arg(p, at), grouped(p.shape(), heads)), at), v), at), out);
}

}  // namespace waymark
