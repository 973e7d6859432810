#include "nn/attention/dense.h"

#include <cmath>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/attention/attention.h"

namespace waymark::nn {

namespace {

// keep AND more, either may be undefined.
Tensor both(const Tensor& keep, const Tensor& more) {
  return !keep.defined() ? more : !more.defined() ? keep : logical_and(keep, more);
}

// [B, L, H·d] -> [B, H, L, d]
Tensor split_heads(const Tensor& x, i64 heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

// Rows of padded tokens as zeros, whatever they hold.
Tensor without_padding(const Tensor& x, const Tensor& keep) {
  return keep.defined() ? masked_fill(x, logical_not(keep).unsqueeze(1).unsqueeze(-1), 0) : x;
}

Tensor query_keep_of(const AttentionInput& in) {
  return in.query_keep.defined() ? in.query_keep : in.context.defined() ? Tensor() : in.key_keep;
}
const Positions& key_positions_of(const AttentionInput& in) {
  return in.context.defined() ? in.context_positions : in.positions;
}

}  // namespace

DenseAttention::DenseAttention(ModuleBase* parent, std::string_view name, AttentionSetup s)
    : Attention(parent, name, std::move(s)),
      q_proj(*this, "q_proj", width(), query_width(), setup().bias),
      k_proj(*this, "k_proj", width(), key_width(), setup().bias),
      v_proj(*this, "v_proj", width(), key_width(), setup().bias),
      out_proj(setup().out_proj ? std::make_unique<Linear>(*this, "out_proj", query_width(), width(), setup().bias) : nullptr),
      position(*this, encodings(), setup().sizes, setup().stack) {
  const std::string& norm = options().word("qk_norm");
  qk_norm_ = norm == "none" ? QkNorm::none : norm == "l2" ? QkNorm::l2 : QkNorm::rms;
  if (qk_norm_ != QkNorm::rms) return;
  q_norm = parameter_at("attention.q_norm.weight", {setup().sizes.head_dim}, init::ones(), {.no_decay = true});
  k_norm = parameter_at("attention.k_norm.weight", {setup().sizes.head_dim}, init::ones(), {.no_decay = true});
}

Tensor DenseAttention::normalised(const Tensor& x, const Tensor& weight) const {
  if (qk_norm_ == QkNorm::none) return x;
  if (qk_norm_ == QkNorm::rms) return rms_norm(x, weight.shape(), weight, 1e-6);
  return div(x, clamp(sqrt(sum(square(x), -1, true)), 1e-12, {}));
}

DenseAttention::Projected DenseAttention::project(const AttentionInput& in) const {
  const i64 heads = setup().sizes.num_heads, kv_heads = setup().kv_heads;
  const Tensor x = position.add_to_input(in.x, in.positions);
  Tensor q, k, v;
  if (in.context.defined()) {
    q = q_proj(x);
    k = k_proj(in.context);
    v = v_proj(in.context);
  } else {
    const auto parts = linear_packed(x, {q_proj.weight, k_proj.weight, v_proj.weight}, {q_proj.bias, k_proj.bias, v_proj.bias});
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  return {normalised(split_heads(q, heads), q_norm), normalised(split_heads(k, kv_heads), k_norm), split_heads(v, kv_heads)};
}

ReferenceAttention DenseAttention::reference(const Projected& p, const AttentionInput& in,
                                             std::vector<std::string>* names) const {
  const i64 batch = p.q.size(0), heads = p.q.size(1), queries = p.q.size(2), keys = p.k.size(2);
  const Positions &query_positions = in.positions, &key_positions = key_positions_of(in);
  const bool is_causal = causal(in);

  Tensor keep = in.mask.pairs(batch, heads, queries, keys);
  if (keep.defined())
    while (keep.dim() < 4) keep = keep.unsqueeze(0);
  if (is_causal) {
    if (in.mask.is_all()) check_distinct(key_positions, in.key_keep);
    keep = both(keep, causal_pairs(query_positions, key_positions));
  }
  if (in.key_keep.defined()) keep = both(keep, in.key_keep.view({batch, 1, 1, keys}));
  if (const Tensor q_keep = query_keep_of(in); q_keep.defined()) keep = both(keep, q_keep.view({batch, 1, queries, 1}));

  const EncodingCall call{.queries = query_positions,
                          .keys = key_positions,
                          .causal = is_causal,
                          .keep = keep,
                          .query_keep = query_keep_of(in),
                          .key_keep = in.key_keep,
                          .segments = in.segments,
                          .project_query = [this](const Tensor& rows) { return q_proj(rows); },
                          .project_key = [this](const Tensor& rows) { return k_proj(rows); }};
  ReferenceAttention r{.query = p.q, .key = p.k, .value = p.v};
  for (auto& [name, term] : position.prepare(call, p.q, p.k, in.prepared.get())) {
    r.terms.push_back(std::move(term));
    if (names) names->push_back(name);
  }
  if (position.maps_query_key()) {
    std::tie(r.query, r.key) = position.map_query_key(p.q, p.k, call);
    r.term_query = p.q;
    r.term_key = p.k;
  }
  if (query_positions.defined()) r.query_positions = query_positions.tensor();
  if (key_positions.defined()) r.key_positions = key_positions.tensor();
  r.keep = keep;
  i64 extra = 1;
  for (const Options& o : encodings()) extra += facts_of(o, is_causal, setup().cross).extra_terms;
  const auto scale = [&](i64 width) {
    return setup().scale.value_or(1 / std::sqrt(static_cast<double>(width) * static_cast<double>(extra)));
  };
  r.content_scale = scale(r.query.size(-1));
  r.table_scale = scale(p.q.size(-1));
  r.dropout = training() ? setup().dropout : 0;
  return r;
}

DenseAttention::Core DenseAttention::core(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in) const {
  const Tensor q_keep = query_keep_of(in);
  const Projected clean = {without_padding(q, q_keep), without_padding(k, in.key_keep), without_padding(v, in.key_keep)};
  const ReferenceResult r = attention_reference(reference(clean, in, nullptr));
  return {r.z, r.weights};
}

AttentionOutput DenseAttention::attend(const AttentionInput& in) const {
  const ReferenceResult r = attention_reference(reference(project(in), in, nullptr));
  const Tensor z = r.z.transpose(1, 2).reshape({in.x.size(0), in.x.size(1), r.z.size(1) * r.z.size(3)});
  return {out_proj ? (*out_proj)(z) : z, in.want_weights ? r.weights : Tensor(), Tensor()};
}

std::vector<ImpliedTerm> DenseAttention::terms_of(const AttentionInput& in) const {
  return implied_terms_reference(reference(project(in), in, nullptr));
}

std::vector<ScorePart> DenseAttention::parts_of(const AttentionInput& in) const {
  std::vector<std::string> names;
  std::vector<ScorePart> parts = score_parts_reference(reference(project(in), in, &names));
  // Parts of two encodings with one name are told apart by the encodings'.
  std::map<std::string, int> count;
  for (const ScorePart& p : parts) ++count[p.name];
  for (ScorePart& p : parts)
    if (count[p.name] > 1 && p.term >= 0) p.name = names[static_cast<size_t>(p.term)] + "." + p.name;
  return parts;
}

namespace attentions {

AttentionInfo dense() {
  return {.options = {"dense",
                      {{"qk_norm", word_option("none", {"none", "l2", "rms"}), "q and k of each head normalised before any map"}},
                      "softmax over all allowed keys"},
          .facts = [](const Options&, bool, bool) {
            AttentionFacts f;
            f.gives = {Capability::query_key, Capability::free_qk, Capability::token_qk, Capability::any_dim,
                       Capability::inner_prod, Capability::pair, Capability::weight, Capability::row};
            f.causal_exact = f.cross = f.key_padding = f.any_mask = f.documents = f.shares_key_heads = f.cache = true;
            f.rows_sum_to_one = true;
            return f;
          },
          .formulas = {"z_i = Σ_j softmax_j(e_ij)·v_j,  e_ij = q_i·k_j/√d + terms of the encodings"},
          .make = [](ModuleBase* parent, std::string_view name, AttentionSetup setup) -> std::unique_ptr<Attention> {
            return std::make_unique<DenseAttention>(parent, name, std::move(setup));
          }};
}

}  // namespace attentions
}  // namespace waymark::nn
