#include "nn/attention/projected.h"

#include <cmath>
#include <map>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/attention/cache.h"
#include "nn/attention/registry.h"

namespace waymark::nn {

namespace {

// Rows of padded tokens as zeros, whatever they hold.
Tensor without_padding(const Tensor& x, const Tensor& keep) {
  return keep.defined() ? masked_fill(x, logical_not(keep).unsqueeze(1).unsqueeze(-1), 0) : x;
}

}  // namespace

OptionDef qk_norm_option() {
  return {"qk_norm", word_option("none", {"none", "l2", "rms"}), "q and k of each head normalised before any map"};
}

AttentionFacts pair_attention_facts() {
  AttentionFacts f;
  f.gives = {Capability::query_key, Capability::free_qk, Capability::token_qk, Capability::any_dim,
             Capability::inner_prod, Capability::pair, Capability::weight};
  f.causal_exact = f.key_padding = f.any_mask = f.documents = f.shares_key_heads = f.cache = true;
  f.rows_sum_to_one = true;
  f.why_not_cross = "its pattern reads the positions of one sequence";
  return f;
}

ProjectedAttention::ProjectedAttention(ModuleBase* parent, std::string_view name, AttentionSetup s, bool with_k_proj)
    : Attention(parent, name, std::move(s)),
      q_proj(*this, "q_proj", width(), query_width(), setup().bias),
      k_proj(with_k_proj ? std::make_unique<Linear>(*this, "k_proj", width(), key_width(), setup().bias) : nullptr),
      v_proj(*this, "v_proj", width(), key_width(), setup().bias),
      out_proj(setup().out_proj ? std::make_unique<Linear>(*this, "out_proj", query_width(), width(), setup().bias) : nullptr),
      position(*this, encodings(), setup().sizes, setup().stack) {
  if (!options().has("qk_norm")) return;
  const std::string& norm = options().word("qk_norm");
  qk_norm_ = norm == "none" ? QkNorm::none : norm == "l2" ? QkNorm::l2 : QkNorm::rms;
  if (qk_norm_ != QkNorm::rms) return;
  q_norm = parameter_at("attention.q_norm.weight", {setup().sizes.head_dim}, init::ones(), {.no_decay = true});
  k_norm = parameter_at("attention.k_norm.weight", {setup().sizes.head_dim}, init::ones(), {.no_decay = true});
}

Tensor ProjectedAttention::split_heads(const Tensor& x, i64 heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor ProjectedAttention::normalised(const Tensor& x, const Tensor& weight) const {
  if (qk_norm_ == QkNorm::none) return x;
  if (qk_norm_ == QkNorm::rms) return rms_norm(x, weight.shape(), weight, 1e-6);
  return div(x, sqrt(clamp(sum(square(x), -1, true), 1e-24, {})));  // at least 1e-12; a zero vector has a gradient, too
}

ProjectedAttention::Projected ProjectedAttention::project(const AttentionInput& in) const {
  const i64 heads = setup().sizes.num_heads, kv_heads = setup().kv_heads;
  const Tensor x = position.add_to_input(in.x, in.positions);
  Tensor q, k, v;
  if (in.context.defined()) {
    q = q_proj(x);
    k = (*k_proj)(in.context);
    v = v_proj(in.context);
  } else if (k_proj) {
    const auto parts = linear_packed(x, {q_proj.weight, k_proj->weight, v_proj.weight}, {q_proj.bias, k_proj->bias, v_proj.bias});
    q = parts[0];
    k = parts[1];
    v = parts[2];
  } else {
    const auto parts = linear_packed(x, {q_proj.weight, v_proj.weight}, {q_proj.bias, v_proj.bias});
    q = parts[0];
    v = parts[1];
  }
  Projected p{normalised(split_heads(q, heads), q_norm), {}, split_heads(v, kv_heads)};
  p.k = k_proj ? normalised(split_heads(k, kv_heads), k_norm) : keys_of_queries(p.q, in.key_keep);
  return p;
}

Tensor ProjectedAttention::keys_of_queries(const Tensor&, const Tensor&) const {
  fail("attention", "{} has keys of its own, which were not given", options().short_form());
}

MaskCall ProjectedAttention::mask_call_of(const Projected& p, const AttentionInput& in) const {
  return mask_call(in, p.q.size(0), p.rows.count ? p.queries : p.q.size(2), p.k.size(2));
}

Tensor ProjectedAttention::pattern_pairs(const Projected& p, const AttentionInput& in) const {
  const MaskCall call = mask_call_of(p, in);
  const Tensor allowed = allowed_pairs(in, call.batch, call.queries, call.keys, p.rows);
  const auto pattern = attention_pattern(options(), call, path_of("attention.pattern"));
  const Tensor pairs = pattern ? pattern->pairs(call, p.rows) : Tensor();
  return !pairs.defined() ? allowed : !allowed.defined() ? pairs : logical_and(allowed, pairs);
}

ProjectedAttention::Pass ProjectedAttention::pass_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in,
                                                     const Tensor& keep, QueryRows rows, const LentProjections& lent) const {
  const bool is_causal = causal(in);
  const Positions of_queries = in.positions.of(rows.first, rows.count);
  const Positions& of_keys = key_positions(in);
  const auto of_rows = [&](const Tensor& t) { return t.defined() && rows.count ? narrow(t, 1, rows.first, rows.count) : t; };
  const auto own = [](const Linear& projection) {
    return [&projection](const Tensor& x) { return projection(x); };
  };
  EncodingCall call{.queries = of_queries, .keys = of_keys, .causal = is_causal, .keep = keep, .query_keep = of_rows(query_keep(in)),
                    .key_keep = in.key_keep, .query_segments = of_rows(in.segments), .key_segments = in.segments,
                    .project_query = lent.query, .project_key = lent.key};
  if (!call.project_query) call.project_query = own(q_proj);
  if (!call.project_key && k_proj) call.project_key = own(*k_proj);
  Pass pass{.call = {.query = q, .key = k, .value = v}};
  ReferenceAttention& r = pass.call;
  for (auto& [name, term] : position.prepare(call, q, k, in.prepared.get())) {
    r.terms.push_back(std::move(term));
    pass.names.push_back(name);
  }
  if (position.maps_query_key()) {
    std::tie(r.query, r.key) = position.map_query_key(q, k, call);
    r.term_query = q;
    r.term_key = k;
  }
  if (of_queries.defined()) r.query_positions = of_queries.tensor();
  if (of_keys.defined()) r.key_positions = of_keys.tensor();
  r.keep = keep;
  i64 extra = 1;
  for (const Options& o : encodings()) extra += facts_of(o, is_causal, setup().cross).extra_terms;
  const auto scale = [&](i64 of_width) {
    return setup().scale.value_or(1 / std::sqrt(static_cast<double>(of_width) * static_cast<double>(extra)));
  };
  r.content_scale = scale(r.query.size(-1));
  r.table_scale = scale(q.size(-1));
  r.dropout = training() ? setup().dropout : 0;
  return pass;
}

std::vector<ProjectedAttention::Pass> ProjectedAttention::passes(const Projected& p, const AttentionInput& in) const {
  std::vector<Pass> list;
  list.push_back(pass_of(p.q, p.k, p.v, in, pattern_pairs(p, in), p.rows));
  return list;
}

ProjectedAttention::Mixed ProjectedAttention::mix(const std::vector<Pass>& list) const {
  Mixed out;
  // One dropout mask for all passes: a pair has the same bit whichever pass it is in.
  Tensor factor;
  if (const ReferenceAttention& c = list.front().call; list.size() > 1 && c.dropout > 0)
    factor = dropout(ones({c.query.size(0), c.query.size(1), c.query.size(2), c.key.size(2)}, c.query.dtype()), c.dropout);
  for (const Pass& pass : list) {
    ReferenceAttention call = pass.call;
    call.dropout_factor = factor;
    const ReferenceResult r = attention_reference(call);
    out.z = out.z.defined() ? add(std::move(out.z), r.z) : r.z;
    out.weights = out.weights.defined() ? add(std::move(out.weights), r.weights) : r.weights;
  }
  return out;
}

ProjectedAttention::Core ProjectedAttention::core(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& in) const {
  Projected p{without_padding(q, query_keep(in)), {}, without_padding(v, in.key_keep)};
  p.k = k.defined() ? without_padding(k, in.key_keep) : keys_of_queries(p.q, in.key_keep);
  const Mixed m = mix(passes(p, in));
  return {m.z, m.weights};
}

AttentionOutput ProjectedAttention::attend(const AttentionInput& in) const {
  const Projected p = project(in);
  const Mixed m = mix(passes(p, in));
  AttentionOutput out{.y = output_of(m), .weights = in.want_weights ? m.weights : Tensor()};
  after_forward(p, in, out);
  return out;
}

Tensor ProjectedAttention::output_of(const Mixed& m) const {
  const Tensor z = m.z.transpose(1, 2).reshape({m.z.size(0), m.z.size(2), m.z.size(1) * m.z.size(3)});
  return out_proj ? (*out_proj)(z) : z;
}

Tensor ProjectedAttention::decode(const AttentionInput& in, CachedTokens& cache) const {
  Projected p = project(in);
  p.rows = {cache.length, in.x.size(1)};
  const AttentionInput call = cache.append(in, {&p.k, &p.v, &p.global_k, &p.global_v});
  p.queries = cache.length;
  return output_of(mix(passes(p, call)));
}

// The passes of the queries in in.rows.
std::vector<ProjectedAttention::Pass> ProjectedAttention::passes_of_rows(const AttentionInput& in) const {
  Projected p = project(in);
  const auto [first, count] = in.rows;
  if (first < 0 || count < 0 || count > in.x.size(1) || first > in.x.size(1) - count)
    fail("attention", "rows [{}, {} + {}) of {} queries", first, first, count, in.x.size(1));
  if (count == 0 || facts_of_attention(options(), causal(in), setup().cross).content_pattern) return passes(p, in);
  p.q = narrow(p.q, 2, first, count);
  if (p.global_q.defined()) p.global_q = narrow(p.global_q, 2, first, count);
  p.rows = in.rows;
  p.queries = in.x.size(1);
  return passes(p, in);
}

Tensor ProjectedAttention::weights_of(const AttentionInput& in) const {
  Tensor weights;
  for (const Pass& pass : passes_of_rows(in)) {
    const Tensor w = implied_terms_reference(pass.call).front().weights;
    weights = weights.defined() ? add(std::move(weights), w) : w;
  }
  return weights;
}

std::vector<ImpliedTerm> ProjectedAttention::terms_of(const AttentionInput& in) const {
  std::vector<ImpliedTerm> terms;
  for (const Pass& pass : passes_of_rows(in))
    for (ImpliedTerm& t : implied_terms_reference(pass.call)) terms.push_back(std::move(t));
  return terms;
}

std::vector<ScorePart> ProjectedAttention::parts_of(const AttentionInput& in) const {
  std::vector<ScorePart> parts;
  for (const Pass& pass : passes_of_rows(in)) {
    std::vector<ScorePart> own = score_parts_reference(pass.call);
    // Parts of two encodings with one name are told apart by the encodings'.
    std::map<std::string, int> count;
    for (const ScorePart& p : own) ++count[p.name];
    for (ScorePart& p : own)
      if (count[p.name] > 1 && p.term >= 0) p.name = pass.names[static_cast<size_t>(p.term)] + "." + p.name;
    if (parts.empty()) {
      parts = std::move(own);
      continue;
    }
    for (size_t i = 0; i < own.size(); ++i) parts[i].value = where(pass.rows, own[i].value, parts[i].value);
  }
  return parts;
}

}  // namespace waymark::nn
