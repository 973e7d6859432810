#include "nn/attention/judge.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "nn/position/module.h"
#include "nn/spec/catalog.h"

namespace waymark::nn {

namespace {

// What an encoding needs and an attention does not give, in words, most telling first.
const char* missing_text(Capability c) {
  switch (c) {
    case Capability::query_key: return "it has no queries and keys to map";
    case Capability::pair: return "it never forms a score for one (query, key) pair";
    case Capability::token_qk: return "its scores are not of single tokens";
    case Capability::free_qk: return "its queries and keys are one vector";
    case Capability::weight: return "it never forms a weight for one (query, key) pair";
    case Capability::row: return "it never sees a whole row of scores in key order";
    case Capability::any_dim: return "the width of its queries and keys is fixed";
    case Capability::inner_prod: return "its scores are not functions of inner products";
  }
  return "";
}
constexpr Capability kOrder[] = {Capability::query_key, Capability::pair, Capability::token_qk, Capability::free_qk,
                                 Capability::weight,    Capability::row,  Capability::any_dim,  Capability::inner_prod};

constexpr const char* kCommonAxis = "distances between two sequences mean something only on a common time axis";

std::string because(const std::string& why) { return why.empty() ? "" : ": " + why; }

// Pairs that the facts alone do not decide. True if the verdict is final.
bool refine(const Options& encoding, const Options& attention, bool cross, Verdict& v) {
  const auto refused = [&](const char* why) {
    v.ruling = Ruling::refuse;
    v.reasons = {why};
    return true;
  };
  if (attention.name() == "reformer") {
    if (encoding.name() == "xpos" || encoding.name().rfind("spe-", 0) == 0)
      return refused("one shared vector is hashed; a map that differs between query and key breaks \"same bucket = high score\"");
    if (encoding.name() == "deberta" && encoding.has("share_projections") && encoding.boolean("share_projections"))
      return refused("share_projections=true needs k_proj, which it does not have");
  }
  if (encoding.name() == "rope" && encoding.word("apply") == "features" && attention.name() != "linear" &&
      attention.name() != "performer") {
    v.ruling = Ruling::refuse;
    v.reasons = {"apply=features acts behind the feature map of a linear attention; use apply=input"};
    return true;
  }
  if (facts_of(encoding).reads_segments && (cross || attention.name() == "hst")) {
    v.ruling = Ruling::refuse;
    v.reasons = {cross ? "segments belong to one sequence, and cross-attention has two; use segments=false"
                       : "its representatives belong to no segment; use segments=false"};
    return true;
  }
  return false;
}

std::vector<std::string> names_that_work(const std::vector<std::pair<std::string, Ruling>>& list) {
  std::vector<std::string> names;
  for (const auto& [name, ruling] : list)
    if (ruling == Ruling::accept || ruling == Ruling::warn) names.push_back(name);
  return names;
}

std::optional<Options> default_options(const OptionTable& table) {
  std::vector<std::string> problems;
  return table.resolve(Spec{table.name, {}}, problems);
}

// "shaw", or "xpos (causal)" where only a causal call will do.
std::string with_causal(const std::string& name, Ruling now, Ruling causal) {
  const bool works = now == Ruling::accept || now == Ruling::warn;
  return works || causal == Ruling::refuse ? name : name + " (causal)";
}
Ruling better(Ruling now, Ruling causal) { return now == Ruling::refuse ? causal : now; }

void fill_alternatives(Verdict& v, const Options& encoding, const Options& attention, bool causal, bool cross) {
  const auto both = [&](const Options& e, const Options& a) {
    const Ruling now = judge(e, a, causal, cross, false).ruling, later = judge(e, a, true, cross, false).ruling;
    return std::pair(now, better(now, later));
  };
  std::vector<std::pair<std::string, Ruling>> here, there;
  for (const EncodingInfo* info : all_encodings())
    if (const auto o = default_options(info->options)) {
      const auto [now, best] = both(*o, attention);
      here.emplace_back(with_causal(info->name(), now, best), best);
    }
  for (const AttentionInfo* info : all_attentions())
    if (const auto o = default_options(info->options)) {
      const auto [now, best] = both(encoding, *o);
      there.emplace_back(with_causal(info->name(), now, best), best);
    }
  v.works_here = names_that_work(here);
  v.works_there = names_that_work(there);
}

}  // namespace

std::string Verdict::text() const {
  if (ruling == Ruling::accept) return "";
  if (ruling != Ruling::refuse) {
    std::vector<std::string> lines;
    for (const std::string& r : reasons) lines.push_back(fmt::format("{} on {}: {}", encoding, attention, r));
    return fmt::format("{}", fmt::join(lines, "\n"));
  }
  std::string text = fmt::format("{} cannot run on {}: {}", encoding, attention, reasons.empty() ? "" : reasons[0]);
  if (!works_here.empty()) text += fmt::format("\n  works on {}: {}", attention, fmt::join(works_here, ", "));
  if (!works_there.empty()) text += fmt::format("\n  {} works on: {}", encoding, fmt::join(works_there, ", "));
  return text;
}

Verdict judge(const Options& encoding, const Options& attention, bool causal, bool cross, bool with_alternatives) {
  const EncodingFacts e = encoding_info(encoding.name()).facts(encoding, causal, cross);
  const AttentionFacts a = facts_of_attention(attention, causal, cross);
  Verdict v;
  v.encoding = encoding.short_form();
  v.attention = attention.short_form();
  const auto refuse = [&](std::string reason) {
    v.ruling = Ruling::refuse;
    v.reasons = {std::move(reason)};
  };
  if (!refine(encoding, attention, cross, v)) {
    if (causal && !a.causal_exact) {
      refuse("it cannot be causal" + because(a.why_not_causal));
    } else if (cross && !a.cross) {
      refuse("it has no cross-attention" + because(a.why_not_cross));
    } else {
      for (const Capability c : kOrder)
        if (v.ruling != Ruling::refuse && e.needs.has(c) && !a.gives.has(c)) refuse(missing_text(c));
      if (v.ruling != Ruling::refuse && e.needs_causal_call && cross) refuse("it needs a causal call, which cross-attention is not");
      else if (v.ruling != Ruling::refuse && e.needs_causal_call && !causal) refuse("it needs a causal call; set causal");
    }
    if (v.ruling != Ruling::refuse) {
      std::vector<std::string> why;
      for (const Capability c : kOrder)
        if (e.wants.has(c) && !a.gives.has(c))
          why.push_back(c == Capability::inner_prod && !a.why_not_inner_prod.empty() ? a.why_not_inner_prod : missing_text(c));
      if (!why.empty()) v.reasons.push_back(fmt::format("{} ({})", e.lost, fmt::join(why, "; ")));
      if (cross && (e.site == Site::query_key || e.site == Site::score)) v.reasons.emplace_back(kCommonAxis);
      if (!v.reasons.empty()) v.ruling = Ruling::warn;
    }
  }
  if (v.ruling == Ruling::refuse && with_alternatives) fill_alternatives(v, encoding, attention, causal, cross);
  return v;
}

namespace {

// "dense, local": attentions whose facts, with default options, are such.
template <class F> std::string attentions_with(F f) {
  std::vector<std::string> names;
  for (const AttentionInfo* info : all_attentions())
    if (const auto o = default_options(info->options); o && f(*o)) names.push_back(info->name());
  return fmt::format("{}", fmt::join(names, ", "));
}
}  // namespace

std::string causal_refusal(const Options& attention) {
  return fmt::format("{} cannot be causal{}; causal here: {}", attention.short_form(), because(facts_of_attention(attention, true).why_not_causal),
                     attentions_with([](const Options& o) { return facts_of_attention(o, true).causal_exact; }));
}
std::string cross_refusal(const Options& attention) {
  return fmt::format("{} has no cross-attention{}; use {}", attention.short_form(), because(facts_of_attention(attention, false, true).why_not_cross),
                     attentions_with([](const Options& o) { return facts_of_attention(o, false, true).cross; }));
}
std::string shared_heads_refusal(const Options& attention) {
  return fmt::format("{} cannot share key heads{}", attention.short_form(), because(facts_of_attention(attention).why_not_shared_heads));
}
std::string mask_refusal(const Options& attention, const Mask& mask, const AttentionFacts& facts) {
  const auto takes = [&](const AttentionFacts& f) {
    return f.any_mask || mask.is_all() || (f.key_padding && mask.key_only()) || (f.documents && mask.documents_only());
  };
  if (takes(facts)) return "";
  return fmt::format("{} cannot take {}{}; use {}", attention.short_form(), mask.to_string(true), because(facts.why_not_mask),
                     attentions_with([&](const Options& o) { return takes(facts_of_attention(o)); }));
}

void judge_model(const ModelSpecs& model, std::vector<std::string>& problems, std::vector<std::string>& warnings) {
  if (model.encodings.size() != model.attentions.size())
    fail("judge", "{} sums of encodings for {} attentions", model.encodings.size(), model.attentions.size());
  std::vector<std::string> found, warned;
  const bool is_causal = model.causal || model.mask.implies_causal();
  try {
    model.mask.check_heads(model.sizes.num_heads);
  } catch (const Error& e) {
    found.emplace_back(e.what());
  }
  check_layers(model.encodings, found);
  for (size_t i = 0; i < model.encodings.size(); ++i) {
    check_sum(model.encodings[i], found);
    check_sizes(model.encodings[i], model.sizes, found);
    const Options& attention = model.attentions[i];
    const AttentionFacts facts = facts_of_attention(attention, is_causal, model.cross);
    if (is_causal && !facts.causal_exact) found.push_back(causal_refusal(attention));
    if (model.cross && !facts.cross) found.push_back(cross_refusal(attention));
    if (std::string refusal = mask_refusal(attention, model.mask, facts); !refusal.empty()) found.push_back(std::move(refusal));
    if (model.kv_heads && model.kv_heads != model.sizes.num_heads && !facts.shares_key_heads)
      found.push_back(shared_heads_refusal(attention));
    check_setup({.sizes = model.sizes, .kv_heads = model.kv_heads ? model.kv_heads : model.sizes.num_heads, .encodings = model.encodings[i],
                 .attention = attention, .causal = model.causal, .cross = model.cross}, found);
    if (model.cls_has_position && facts.neighbourhood)
      warned.push_back(fmt::format("{}: [CLS] at position 0 sees its own neighbourhood only; model.cls_position=none makes it global, "
                                   "or use model.pooling=mean", attention.short_form()));
    for (const Options& encoding : model.encodings[i]) {
      const Verdict v = judge(encoding, attention, is_causal, model.cross);
      if (v.ruling == Ruling::refuse) found.push_back(v.text());
      else if (v.ruling == Ruling::warn) warned.push_back(v.text());
    }
  }
  add_new(problems, found);
  add_new(warnings, warned);
}

std::string JudgeMatrix::Cell::mark() const {
  const auto letter = [](Ruling r) -> std::string {
    return r == Ruling::accept ? "yes" : r == Ruling::warn ? "w" : r == Ruling::refuse ? "-" : "?";
  };
  if (bidirectional == Ruling::refuse && causal != Ruling::refuse) return letter(causal) + "*";
  return letter(bidirectional);
}

JudgeMatrix judge_matrix(bool cross) {
  JudgeMatrix m;
  std::vector<std::optional<Options>> encodings, attentions;
  for (const EncodingInfo* info : all_encodings()) {
    m.encodings.push_back(info->name());
    encodings.push_back(default_options(info->options));
  }
  for (const std::string& name : planned_encodings()) m.encodings.push_back(name);
  for (const AttentionInfo* info : all_attentions()) {
    m.attentions.push_back(info->name());
    attentions.push_back(default_options(info->options));
  }
  for (const std::string& name : planned_attentions()) m.attentions.push_back(name);
  encodings.resize(m.encodings.size());
  attentions.resize(m.attentions.size());
  for (const auto& e : encodings) {
    auto& row = m.cells.emplace_back();
    for (const auto& a : attentions) {
      JudgeMatrix::Cell& cell = row.emplace_back();
      if (!e || !a) continue;
      const Verdict now = judge(*e, *a, false, cross, false), causal = judge(*e, *a, true, cross, false);
      cell.bidirectional = now.ruling;
      cell.causal = causal.ruling;
      add_new(cell.notes, now.reasons);
      add_new(cell.notes, causal.reasons);
    }
  }
  return m;
}

std::vector<std::string> invariant_parameters(const EncodingSum& encodings, const Options& attention) {
  // Where scores gate other scores, nothing is constant.
  for (const Options& e : encodings)
    if (facts_of(e).needs.has(Capability::row)) return {};
  const bool plain = !attention.has("qk_norm") || attention.word("qk_norm") == "none";
  const Capabilities gives = facts_of_attention(attention).gives;
  bool constant = plain && gives.has(Capability::query_key) && gives.has(Capability::pair);
  for (const Options& e : encodings) constant &= encoding_info(e.name()).facts(e, false, false).key_bias_is_constant;
  std::vector<std::string> names;
  if (constant && gives.has(Capability::free_qk)) {  // one vector for both: its bias is in the queries, too
    names.emplace_back("k_proj.bias");
    if (attention.has("projections") && attention.boolean("projections")) names.emplace_back("attention.global_k_proj.bias");
  }
  // What an encoding adds to all scores of a row; with the name of the encoding where another owns the same path.
  const auto owners = [&](const std::string& parameter) {
    i64 count = 0;
    for (const Options& e : encodings)
      for (const ParameterSpec& p : parameters_of(e, {8, 2, 4})) count += p.name == parameter;
    return count;
  };
  if (gives.has(Capability::pair))
    for (const Options& e : encodings)
      for (const std::string& p : encoding_info(e.name()).facts(e, false, false).invariant_parameters)
        names.push_back(owners(p) > 1 ? fmt::format("position.{}.{}", e.name(), p) : "position." + p);
  return names;
}

}  // namespace waymark::nn
