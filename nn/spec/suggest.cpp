// The rules themselves are core/tensor/suggest's; here are ranks of candidates.
#include "nn/spec/suggest.h"

#include <algorithm>

#include "core/tensor/suggest.h"

namespace waymark::nn {

i64 edit_distance(std::string_view a, std::string_view b, i64 limit) { return waymark::edit_distance(a, b, limit); }
i64 suggestion_limit(std::string_view wrong) { return waymark::suggestion_limit(wrong); }

std::vector<std::string> suggest(std::string_view wrong, const std::vector<Candidate>& candidates) {
  struct Hit {
    i64 distance;
    const Candidate* candidate;
  };
  std::vector<Hit> hits;
  const i64 limit = suggestion_limit(wrong);
  for (const Candidate& c : candidates) {
    const i64 distance = edit_distance(wrong, c.name, limit);
    if (distance <= limit) hits.push_back({distance, &c});
  }
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& x, const Hit& y) {
    if ((x.distance == 0) != (y.distance == 0)) return x.distance == 0;
    return x.candidate->rank != y.candidate->rank ? x.candidate->rank < y.candidate->rank : x.distance < y.distance;
  });
  std::vector<std::string> result;
  for (const Hit& hit : hits) {
    const Hit& best = hits.front();
    if (result.size() == 3 || hit.candidate->rank != best.candidate->rank || (best.distance == 0 && hit.distance > 0))
      break;
    if (std::find(result.begin(), result.end(), hit.candidate->shown) == result.end())
      result.push_back(hit.candidate->shown);
  }
  return result;
}

std::vector<std::string> suggest(std::string_view wrong, const std::vector<std::string>& names) {
  return waymark::suggest(wrong, names);
}

std::string did_you_mean(const std::vector<std::string>& suggestions) { return waymark::did_you_mean(suggestions); }
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names) {
  return waymark::did_you_mean(wrong, names);
}

size_t utf8_length(std::string_view text, size_t i) { return waymark::utf8_length(text, i); }
bool is_utf8(std::string_view text) { return waymark::is_utf8(text); }
std::string printable(std::string_view text, i64 limit) { return waymark::printable(text, limit); }
std::string printable_part(std::string_view text, i64 limit) { return waymark::printable_part(text, limit); }

}  // namespace waymark::nn
