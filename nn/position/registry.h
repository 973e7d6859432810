// The position encodings by name: an explicit list (registry.cpp), and what programs add to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/position/encoding.h"

namespace waymark::nn {

// All that are built, in the order of the documentation; those of programs behind them.
WAYMARK_API std::vector<const EncodingInfo*> all_encodings();
// Null if there is none.
WAYMARK_API const EncodingInfo* find_encoding(std::string_view name);
// Error for an unknown name, with suggestions.
WAYMARK_API const EncodingInfo& encoding_info(std::string_view name);
// Their options, for specs and help.
WAYMARK_API const SpecTables& encoding_tables();
// Encodings of the design that later versions will have, in its order.
WAYMARK_API const std::vector<std::string>& planned_encodings();

// Adds an encoding of a program; it is judged, listed and checked like ours. Error for a taken or malformed name, and
// for functions that are missing. Not for use while another thread builds models.
WAYMARK_API void register_encoding(EncodingInfo info);

// Encodings of one layer, in registry order.
using EncodingSum = std::vector<Options>;
// "[rope + huang-m4]*3, none" -> one sum per layer; a pattern of one item serves every layer. Appends every problem
// (unknown names and options, a length that is not num_layers, sums that the rules of combination refuse, input-site
// parts that differ between layers) and is then empty.
WAYMARK_API std::vector<EncodingSum> resolve_encodings(std::string_view pattern, i64 num_layers,
                                                       std::vector<std::string>& problems, const Defaults& defaults = {});
// Throws one Error with all of them.
WAYMARK_API std::vector<EncodingSum> resolve_encodings(std::string_view pattern, i64 num_layers,
                                                       const Defaults& defaults = {});
// The rules of combination: at most one query-key encoding, and none beside one that redefines the content product.
WAYMARK_API void check_sum(const EncodingSum& sum, std::vector<std::string>& problems);
// The input-site part lives once in the stack: it must be the same in every layer.
WAYMARK_API void check_layers(const std::vector<EncodingSum>& layers, std::vector<std::string>& problems);
// Problems of the options with these sizes: "rope: ...".
WAYMARK_API void check_sizes(const EncodingSum& sum, const EncodingSizes& sizes, std::vector<std::string>& problems);

// Facts of a resolved encoding.
WAYMARK_API EncodingFacts facts_of(const Options& encoding, bool causal = false, bool cross = false);
// Parts of a sum by site.
WAYMARK_API EncodingSum at_input(const EncodingSum& sum);
WAYMARK_API EncodingSum not_at_input(const EncodingSum& sum);

}  // namespace waymark::nn
