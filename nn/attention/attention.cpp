#include "nn/attention/attention.h"

#include <fmt/ranges.h>

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/shape.h"
#include "nn/attention/judge.h"
#include "nn/attention/registry.h"
#include "nn/module/auxiliary.h"
#include "nn/spec/catalog.h"

namespace waymark::nn {

namespace {

void check_keep(const char* name, const Tensor& keep, i64 batch, i64 length) {
  if (!keep.defined()) return;
  if (keep.dtype() != kB8) fail("attention", "{} must be b8 (true = kept), got {}", name, name_of(keep.dtype()));
  if (!(keep.shape() == Shape{batch, length})) fail("attention", "{} must be [{}, {}], got {}", name, batch, length, keep.shape());
}

void check_tokens(const char* name, const Tensor& x, i64 width) {
  if (!x.is_floating_point()) fail("attention", "{} must be float, got {}", name, name_of(x.dtype()));
  if (x.dim() != 3 || x.size(2) != width) fail("attention", "{} must be [B, L, {}], got {}", name, width, x.shape());
}

}  // namespace

void Attention::check(const AttentionInput& in) const {
  if (!in.x.defined()) fail("attention", "x is undefined");
  check_tokens("x", in.x, setup_.sizes.embed_dim);
  const i64 batch = in.x.size(0), length = in.x.size(1);
  if (setup_.cross != in.context.defined())
    fail("attention", "{}", setup_.cross ? "the context is undefined, but this is cross-attention"
                                         : "a context was given, but this is self-attention; build it with cross = true");
  if (in.context.defined()) {
    check_tokens("context", in.context, setup_.sizes.embed_dim);
    if (in.context.size(0) != batch) fail("attention", "x has {} rows, the context {}", batch, in.context.size(0));
  }
  const i64 keys = in.context.defined() ? in.context.size(1) : length;
  if (in.positions.defined()) in.positions.check_fits("attention", "positions", batch, length);
  if (in.context_positions.defined()) {
    if (!setup_.cross) fail("attention", "context_positions without a context");
    in.context_positions.check_fits("attention", "context_positions", batch, keys);
  }
  check_keep("key_keep", in.key_keep, batch, keys);
  check_keep("query_keep", in.query_keep, batch, length);

  if (in.segments.defined()) {
    if (setup_.cross) fail("attention", "segments in cross-attention: two sequences have no segments in common");
    if (in.segments.dtype() != kI64) fail("attention", "segments must be i64, got {}", name_of(in.segments.dtype()));
    if (!(in.segments.shape() == Shape{batch, length})) fail("attention", "segments must be [{}, {}], got {}", batch, length, in.segments.shape());
  }

  const bool needs_causal = causal(in);
  const AttentionFacts facts = facts_of_attention(options(), needs_causal, setup_.cross);
  if (needs_causal && !facts.causal_exact) fail("attention", "{}", causal_refusal(options()));
  if (in.state.defined() && !facts.takes_state) fail("attention", "a state was given, but {} has none", options().short_form());
  for (const Options& o : setup_.encodings)
    if (facts_of(o, needs_causal, setup_.cross).reads_segments && !in.segments.defined())
      fail("attention", "segments are missing: {} reads them", o.short_form());
  if (!in.mask.is_all())
    if (const std::string refusal = mask_refusal(options(), in.mask, facts); !refusal.empty()) fail("attention", "{}", refusal);
  std::string reader = needs_causal            ? "a causal call"
                       : facts.reads_positions ? options().short_form()
                                               : in.mask.position_reader();
  for (const Options& o : setup_.encodings)
    if (reader.empty() && encoding_info(o.name()).facts(o, needs_causal, setup_.cross).reads_positions) reader = o.name();
  if (!reader.empty() && !in.positions.defined()) fail("attention", "positions are missing: {} reads them", reader);
  if (!reader.empty() && setup_.cross && !in.context_positions.defined())
    fail("attention", "context_positions are missing: {} reads them", reader);
}

Tensor Attention::query_keep(const AttentionInput& in) {
  return in.query_keep.defined() ? in.query_keep : in.context.defined() ? Tensor() : in.key_keep;
}

MaskCall Attention::mask_call(const AttentionInput& in, i64 batch, i64 queries, i64 keys) const {
  return {.batch = batch, .heads = setup_.sizes.num_heads, .queries = queries, .keys = keys,
          .query_positions = in.positions, .key_positions = key_positions(in), .query_keep = query_keep(in),
          .key_keep = in.key_keep, .causal = causal(in), .cross = in.context.defined(), .shift = in.shift, .redraw = in.redraw, .arrays = in.arrays};
}

Tensor Attention::allowed_pairs(const AttentionInput& in, i64 batch, i64 queries, i64 keys, QueryRows rows) const {
  const MaskCall call = mask_call(in, batch, queries, keys);
  Tensor pairs = in.mask.pairs(call, rows);
  const auto restrict_to = [&](const Tensor& more) { pairs = pairs.defined() ? logical_and(pairs, more) : more; };
  if (call.causal) {
    if (!in.mask.separates_documents()) check_distinct(call.key_positions, in.key_keep);
    restrict_to(causal_pairs(call.query_positions.of(rows.first, rows.count), call.key_positions));
  }
  if (in.key_keep.defined()) restrict_to(in.key_keep.view({batch, 1, 1, keys}));
  if (call.query_keep.defined())
    restrict_to((rows.count ? narrow(call.query_keep, 1, rows.first, rows.count) : call.query_keep).unsqueeze(1).unsqueeze(-1));
  return pairs;
}

AttentionOutput Attention::forward(const AttentionInput& in) const {
  check(in);
  AttentionOutput out = attend(in);
  for (const auto& [name, loss] : out.auxiliary_losses) publish_auxiliary_loss(path_of(name), loss);
  return out;
}

Tensor Attention::decode(const AttentionInput&, CachedTokens&) const {
  fail("attention", "{} says that it decodes with a cache, and does not", options().short_form());
}

Tensor Attention::implied_weights(const AttentionInput& in) const {
  const NoGrad off;
  const ModuleScope scope(*this);
  check(in);
  const Tensor weights = weights_of(in);
  if (!weights.defined()) fail("attention", "{} has no implied weights; use implied_terms()", options().short_form());
  return weights;
}

std::vector<ImpliedTerm> Attention::implied_terms(const AttentionInput& in) const {
  const NoGrad off;
  const ModuleScope scope(*this);
  check(in);
  return terms_of(in);
}

std::vector<ScorePart> Attention::score_parts(const AttentionInput& in) const {
  const NoGrad off;
  const ModuleScope scope(*this);
  check(in);
  return parts_of(in);
}

Tensor Attention::allowed_pairs(const AttentionInput& in) const {
  const NoGrad off;
  check(in);
  const i64 length = in.x.size(1);
  return allowed_pairs(in, in.x.size(0), length, in.context.defined() ? in.context.size(1) : length);
}

AttentionSetup resolve_attention(const AttentionConfig& c) {
  std::vector<std::string> problems;
  AttentionSetup s;
  if (c.embed_dim < 1 || c.num_heads < 1 || c.head_dim < 0 || c.num_kv_heads < 0)
    problems.push_back(fmt::format("embed_dim = {}, num_heads = {}, head_dim = {}, num_kv_heads = {}: must be at least 1, 1, 0, 0",
                                   c.embed_dim, c.num_heads, c.head_dim, c.num_kv_heads));
  else if (c.head_dim == 0 && c.embed_dim % c.num_heads != 0)
    problems.push_back(fmt::format("embed_dim = {} is not divisible by num_heads = {}; set head_dim", c.embed_dim, c.num_heads));
  else if (c.num_kv_heads && c.num_heads % c.num_kv_heads != 0)
    problems.push_back(fmt::format("num_heads = {} is not divisible by num_kv_heads = {}", c.num_heads, c.num_kv_heads));
  if (i64 width = 0; __builtin_mul_overflow(c.num_heads, c.head_dim, &width))
    problems.push_back(fmt::format("num_heads = {}, head_dim = {}: their product is larger than 2^63-1", c.num_heads, c.head_dim));
  if (c.max_len < 0) problems.push_back(fmt::format("max_len = {}: must be at least 0", c.max_len));
  if (c.scale && !(*c.scale > 0 && std::isfinite(*c.scale)))
    problems.push_back(fmt::format("scale = {}: must be finite, and greater than 0", *c.scale));
  if (!(c.dropout >= 0 && c.dropout < 1))
    problems.push_back(fmt::format("dropout = {}: must be at least 0 and less than 1", c.dropout));
  Defaults defaults;
  if (c.max_len > 0) defaults["model.max_len"] = SpecValue(c.max_len);
  const auto encodings = resolve_encodings(c.position, 1, problems, defaults);
  const auto attentions = resolve_attentions(c.attention, 1, problems, defaults);
  if (!encodings.empty() && !attentions.empty() && problems.empty()) {
    s.sizes = {c.embed_dim, c.num_heads, c.head_dim ? c.head_dim : c.embed_dim / c.num_heads};
    s.kv_heads = c.num_kv_heads ? c.num_kv_heads : c.num_heads;
    s.encodings = encodings[0];
    s.attention = attentions[0];
    s.causal = c.causal;
    s.cross = c.cross;
    s.bias = c.bias;
    s.out_proj = c.out_proj;
    s.scale = c.scale;
    s.dropout = c.dropout;
    judge_model({encodings, attentions, s.sizes, s.kv_heads, c.causal, c.cross}, problems, s.warnings);
  }
  if (!problems.empty()) fail("attention", "{}", fmt::join(problems, "\n  "));
  return s;
}

void check_setup(const AttentionSetup& setup, std::vector<std::string>& problems) {
  const AttentionInfo& info = attention_info(setup.attention.name());
  std::vector<std::string> own;
  if (info.check) info.check(setup, own);
  for (const std::string& text : own) problems.push_back(fmt::format("{}: {}", info.name(), text));
}

std::unique_ptr<Attention> make_attention(ModuleBase* parent, std::string_view name, AttentionSetup setup) {
  const AttentionInfo& info = attention_info(setup.attention.name());
  std::vector<std::string> problems;
  check_setup(setup, problems);
  if (!problems.empty()) fail("attention", "{}", fmt::join(problems, "\n  "));
  return info.make(parent, name, std::move(setup));
}

}  // namespace waymark::nn
