#include "nn/attention/registry.h"

#include "nn/spec/catalog.h"

// One line per attention, in the order of the documentation. Each is a function that returns its AttentionInfo, in a file
// of its own; the line declares it, and lists it.
#define WAYMARK_ATTENTIONS(X) \
  X(dense)                    \
  X(local)                    \
  X(strided)                  \
  X(fixed)                    \
  X(longformer)               \
  X(bigbird)                  \
  X(reformer)                 \
  X(routing)

namespace waymark::nn {

namespace attentions {
#define WAYMARK_DECLARE(NAME) AttentionInfo NAME();
WAYMARK_ATTENTIONS(WAYMARK_DECLARE)
#undef WAYMARK_DECLARE
}  // namespace attentions

namespace {

// Behind the list: names that later versions will have.
Catalog<AttentionInfo>& catalog() {
#define WAYMARK_CALL(NAME) attentions::NAME(),
  static Catalog<AttentionInfo> list(
      "attention", {WAYMARK_ATTENTIONS(WAYMARK_CALL)},
      {"hst", "linformer", "sinkhorn", "synthesizer", "linear", "performer", "cosformer", "nystrom", "luna", "fnet"});
#undef WAYMARK_CALL
  return list;
}

}  // namespace

std::vector<const AttentionInfo*> all_attentions() { return catalog().all(); }
const AttentionInfo* find_attention(std::string_view name) { return catalog().find(name); }
const AttentionInfo& attention_info(std::string_view name) { return catalog().at(name); }
const SpecTables& attention_tables() { return catalog().tables(); }
const std::vector<std::string>& planned_attentions() { return catalog().planned(); }

void register_attention(AttentionInfo info) {
  if (!info.facts || !info.make)
    fail("", "the attention {} has no {}", info.name(), info.facts ? "make function" : "facts");
  catalog().add_checked(std::move(info));
}

std::optional<Mask> attention_pattern(const Options& attention, const MaskCall& call, std::string_view stream) {
  const AttentionInfo& info = attention_info(attention.name());
  if (info.pattern) return info.pattern(attention, call, stream);
  if (info.facts(attention, call.causal, call.cross).content_pattern) return std::nullopt;
  return Mask();
}

AttentionFacts facts_of_attention(const Options& attention, bool causal, bool cross) {
  return attention_info(attention.name()).facts(attention, causal, cross);
}

std::vector<Options> resolve_attentions(std::string_view pattern, i64 num_layers, std::vector<std::string>& problems,
                                        const Defaults& defaults) {
  const size_t before = problems.size();
  const SpecPattern items = parse_pattern(pattern, problems);
  if (problems.size() != before) return {};
  std::vector<Options> layers;
  for (const SpecSum& item : items) {
    if (item.size() != 1)
      problems.push_back(fmt::format("{}: a layer has one attention; + joins position encodings", to_string(item)));
    else if (auto options = attention_tables().resolve(item[0], problems, defaults))
      layers.push_back(std::move(*options));
  }
  spread_pattern(layers, pattern, items.size(), num_layers, problems);
  if (problems.size() != before) layers.clear();
  return layers;
}

}  // namespace waymark::nn
