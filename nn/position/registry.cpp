#include "nn/position/registry.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "nn/spec/catalog.h"

// One line per encoding, in the order of the documentation. Each is a function that returns its EncodingInfo, in a file of
// its own; the line declares it, and lists it.
#define WAYMARK_ENCODINGS(X) \
  X(none)                    \
  X(sinusoid)                \
  X(learned)                 \
  X(fourier)                 \
  X(shaw)                    \
  X(transformer_xl)          \
  X(huang_m1)                \
  X(huang_m2)                \
  X(huang_m3)                \
  X(huang_m4)                \
  X(t5)                      \
  X(alibi)                   \
  X(kerple_log)              \
  X(kerple_power)            \
  X(sandwich)                \
  X(fire)                    \
  X(cope)                    \
  X(deberta)                 \
  X(tupe)                    \
  X(rope)                    \
  X(xpos)

namespace waymark::nn {

namespace encodings {
#define WAYMARK_DECLARE(NAME) EncodingInfo NAME();
WAYMARK_ENCODINGS(WAYMARK_DECLARE)
#undef WAYMARK_DECLARE
}  // namespace encodings

namespace {

// Behind the list: names that later versions will have.
Catalog<EncodingInfo>& catalog() {
#define WAYMARK_CALL(NAME) encodings::NAME(),
  static Catalog<EncodingInfo> list("position encoding", {WAYMARK_ENCODINGS(WAYMARK_CALL)},
                                    {"spe-sine", "spe-conv"});
#undef WAYMARK_CALL
  return list;
}

}  // namespace

std::vector<const EncodingInfo*> all_encodings() { return catalog().all(); }
const EncodingInfo* find_encoding(std::string_view name) { return catalog().find(name); }
const EncodingInfo& encoding_info(std::string_view name) { return catalog().at(name); }
const SpecTables& encoding_tables() { return catalog().tables(); }
const std::vector<std::string>& planned_encodings() { return catalog().planned(); }

void register_encoding(EncodingInfo info) {
  if (!info.facts || !info.make)
    fail("", "the position encoding {} has no {}", info.name(), info.facts ? "make function" : "facts");
  catalog().add_checked(std::move(info));
}

EncodingFacts facts_of(const Options& encoding, bool causal, bool cross) {
  return encoding_info(encoding.name()).facts(encoding, causal, cross);
}

EncodingSum at_input(const EncodingSum& sum) {
  EncodingSum part;
  for (const Options& o : sum)
    if (facts_of(o).site == Site::input) part.push_back(o);
  return part;
}

EncodingSum not_at_input(const EncodingSum& sum) {
  EncodingSum part;
  for (const Options& o : sum)
    if (facts_of(o).site != Site::input) part.push_back(o);
  return part;
}

void check_sum(const EncodingSum& sum, std::vector<std::string>& problems) {
  std::vector<std::string> maps, contents;
  for (const Options& o : sum) {
    const EncodingFacts f = facts_of(o);
    if (f.site == Site::query_key) maps.push_back(o.name());
    if (f.redefines_content) contents.push_back(o.name());
  }
  if (maps.size() > 1)
    problems.push_back(fmt::format("{}: only one of them may map queries and keys", fmt::join(maps, " + ")));
  if (contents.size() > 1)
    problems.push_back(fmt::format("{}: only one of them may redefine the content product", fmt::join(contents, " + ")));
  if (!maps.empty() && !contents.empty())
    problems.push_back(fmt::format("{} + {}: {} redefines the content product, which {} would map; use huang-m4 or shaw beside {}",
                                   contents[0], maps[0], contents[0], maps[0], maps[0]));
}

void check_sizes(const EncodingSum& sum, const EncodingSizes& sizes, std::vector<std::string>& problems) {
  for (const Options& o : sum) {
    std::vector<std::string> own;
    if (const auto& check = encoding_info(o.name()).check) check(o, sizes, own);
    for (const std::string& p : own) problems.push_back(o.name() + ": " + p);
  }
}

void check_layers(const std::vector<EncodingSum>& layers, std::vector<std::string>& problems) {
  for (const EncodingSum& sum : layers) {
    const std::string first = sum_text(at_input(layers[0]), true), other = sum_text(at_input(sum), true);
    if (other == first) continue;
    problems.push_back(fmt::format("the input-site part must be the same in every layer, it is {} and {}",
                                   first.empty() ? "nothing" : first, other.empty() ? "nothing" : other));
    return;
  }
}

std::vector<EncodingSum> resolve_encodings(std::string_view pattern, i64 num_layers, std::vector<std::string>& problems,
                                           const Defaults& defaults) {
  std::vector<std::string> found;
  const SpecPattern items = parse_pattern(pattern, found);
  std::vector<EncodingSum> layers;
  for (const SpecSum& item : items)
    if (auto sum = encoding_tables().resolve_sum(item, found, defaults)) {
      check_sum(*sum, found);
      layers.push_back(std::move(*sum));
    }
  if (!items.empty()) spread_pattern(layers, pattern, items.size(), num_layers, found);
  if (found.empty()) check_layers(layers, found);
  if (!found.empty()) layers.clear();
  add_new(problems, found);
  return layers;
}

std::vector<EncodingSum> resolve_encodings(std::string_view pattern, i64 num_layers, const Defaults& defaults) {
  std::vector<std::string> problems;
  auto layers = resolve_encodings(pattern, num_layers, problems, defaults);
  if (!problems.empty()) fail("position", "{}", fmt::join(problems, "\n  "));
  return layers;
}

}  // namespace waymark::nn
