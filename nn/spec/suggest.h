// Suggestions for misspelt names: every "unknown ..." error of Waymark ends with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::nn {

// Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours, also with edits between
// the swapped letters ("ca" -> "abc" is 2). Bytes are compared. Returns limit + 1 as soon as it must exceed `limit`.
WAYMARK_API i64 edit_distance(std::string_view a, std::string_view b, i64 limit);

// How far a name may be from what was written: max(2, length / 3), and never all of its letters.
WAYMARK_API i64 suggestion_limit(std::string_view wrong);

// A name to compare with and what to print for it: {"lr", "optim.optimizer(lr=)"}. Only candidates of the smallest rank
// at which something is near are suggested; a name that fits exactly is suggested whatever its rank.
struct Candidate {
  std::string name = {}, shown = {};
  int rank = 0;
};

// At most three texts to suggest for `wrong`, nearest first, without repetition; a name that fits exactly stands alone.
WAYMARK_API std::vector<std::string> suggest(std::string_view wrong, const std::vector<Candidate>& candidates);
WAYMARK_API std::vector<std::string> suggest(std::string_view wrong, const std::vector<std::string>& names);

// " Did you mean a, b or c?", or nothing.
WAYMARK_API std::string did_you_mean(const std::vector<std::string>& suggestions);
WAYMARK_API std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names);

// Text of a stranger for a message: control characters escaped, invalid UTF-8 replaced, at most `limit` characters.
// Nothing is "".
WAYMARK_API std::string printable(std::string_view text, i64 limit = 60);
// The same for a part of a text, or between quotes: nothing stays nothing.
WAYMARK_API std::string printable_part(std::string_view text, i64 limit = 60);

WAYMARK_API bool is_utf8(std::string_view text);
// Bytes of the well-formed UTF-8 sequence at text[i]; 0 if there is none.
WAYMARK_API size_t utf8_length(std::string_view text, size_t i);

}  // namespace waymark::nn
