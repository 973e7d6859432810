// The attentions by name: an explicit list (registry.cpp), and what programs add to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/attention/attention.h"

namespace waymark::nn {

WAYMARK_API std::vector<const AttentionInfo*> all_attentions();
// Null if there is none.
WAYMARK_API const AttentionInfo* find_attention(std::string_view name);
// Error for an unknown name, with suggestions.
WAYMARK_API const AttentionInfo& attention_info(std::string_view name);
WAYMARK_API const SpecTables& attention_tables();
// Attentions of the design that later versions will have, in its order.
WAYMARK_API const std::vector<std::string>& planned_attentions();
// Error for a taken or malformed name, and for functions that are missing.
WAYMARK_API void register_attention(AttentionInfo info);

WAYMARK_API AttentionFacts facts_of_attention(const Options& attention, bool causal = false, bool cross = false);

// The pattern of AttentionInfo, all() without one; nothing if the pairs depend on what the tokens are.
WAYMARK_API std::optional<Mask> attention_pattern(const Options& attention, const MaskCall& call, std::string_view stream);

// "[local(window=8)]*3, dense" -> one per layer. Appends every problem, and is then empty.
WAYMARK_API std::vector<Options> resolve_attentions(std::string_view pattern, i64 num_layers,
                                                    std::vector<std::string>& problems, const Defaults& defaults = {});

}  // namespace waymark::nn
