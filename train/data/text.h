// Text as code points: reading with validation, lower case, collapsed white space, and vocabularies of symbols.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

// A byte order mark at the start is dropped. Error naming origin, line and byte where the text is no UTF-8.
WAYMARK_API std::u32string decode_utf8(std::string_view bytes, const std::string& origin);
WAYMARK_API std::string encode_utf8(std::u32string_view text);

// Simple lower case of one code point (no change of length) in Latin, Greek, Cyrillic and Armenian; others unchanged.
// Does not depend on the locale.
WAYMARK_API char32_t lower_case(char32_t c);
// Unicode's White_Space.
WAYMARK_API bool is_white_space(char32_t c);

struct TextOptions {
  bool lower = false;     // lower case
  bool collapse = false;  // every run of white space becomes one space, none at the ends
};
WAYMARK_API std::u32string prepare_text(std::u32string text, const TextOptions& options);

// Symbols and their ids. A code point's id depends on the set of code points alone: they are numbered in their order,
// then come the special symbols in the order in which they were added.
class WAYMARK_API Vocabulary {
 public:
  // The code points that occur.
  static Vocabulary of_text(std::u32string_view text);
  // 256 symbols, id = value of the byte.
  static Vocabulary of_bytes();

  // Adds "[MASK]", ...; returns its id.
  i64 add_special(std::string name);
  i64 size() const { return symbols_ + static_cast<i64>(special_.size()); }
  i64 symbols() const { return symbols_; }  // without the special ones

  // Ids; Error naming the symbol that is not in the vocabulary and its place.
  std::vector<i32> encode(std::u32string_view text) const;
  // The text of one id as it is printed: a letter, "\n", "0xE4" for a byte that is no ASCII, or the special name.
  std::string name_of(i64 id) const;
  // Back to UTF-8 (bytes: as they are); special symbols by name.
  std::string decode(std::span<const i64> ids) const;

 private:
  void check(i64 id) const;
  i64 symbols_ = 0;
  bool bytes_ = false;
  std::u32string code_points_;  // sorted
  std::vector<std::string> special_;
};

}  // namespace waymark::train
