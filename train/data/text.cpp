#include "train/data/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/tensor/error.h"
#include "nn/spec/suggest.h"

namespace waymark::train {

std::u32string decode_utf8(std::string_view bytes, const std::string& origin) {
  std::u32string out;
  out.reserve(bytes.size());
  size_t i = bytes.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  while (i < bytes.size()) {
    const size_t n = nn::utf8_length(bytes, i);
    if (n == 0) {
      const auto line = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i), '\n') + 1;
      fail("text", "{}: line {}, byte {}: no UTF-8 (0x{:02X}); convert the file, or use level=byte", origin, line, i,
           static_cast<unsigned char>(bytes[i]));
    }
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(bytes[i + k]); };
    char32_t c = n == 1 ? byte(0) : byte(0) & (0xFFu >> (n + 1));
    for (size_t k = 1; k < n; ++k) c = (c << 6) | (byte(k) & 0x3Fu);
    out.push_back(c);
    i += n;
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  const auto put = [&](char32_t v) { out.push_back(static_cast<char>(static_cast<unsigned char>(v))); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | (c >> 6));
      put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | (c >> 12));
      put(0x80 | ((c >> 6) & 0x3F));
      put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3F));
      put(0x80 | ((c >> 6) & 0x3F));
      put(0x80 | (c & 0x3F));
    }
  }
  return out;
}

char32_t lower_case(char32_t c) {
  const auto in = [&](char32_t first, char32_t last) { return c >= first && c <= last; };
  const bool even = c % 2 == 0;
  if (in('A', 'Z')) return c + 32;
  if (c < 0xC0) return c;
  if (in(0xC0, 0xDE)) return c == 0xD7 ? c : c + 32;
  // Latin Extended-A and Additional: pairs of neighbours.
  if (c == 0x130) return 'i';
  if (in(0x100, 0x137) || in(0x14A, 0x177) || in(0x1E00, 0x1E95) || in(0x1EA0, 0x1EFF)) return even ? c + 1 : c;
  if (in(0x139, 0x148) || in(0x179, 0x17E)) return even ? c : c + 1;
  if (c == 0x178) return 0xFF;
  if (c == 0x1E9E) return 0xDF;
  // Greek
  if (c == 0x386) return 0x3AC;
  if (in(0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (c == 0x38E || c == 0x38F) return c + 63;
  if (in(0x391, 0x3AB)) return c == 0x3A2 ? c : c + 32;
  // Cyrillic and Armenian
  if (in(0x400, 0x40F)) return c + 80;
  if (in(0x410, 0x42F)) return c + 32;
  if (in(0x460, 0x481) || in(0x48A, 0x4BF) || in(0x4D0, 0x52F)) return even ? c + 1 : c;
  if (c == 0x4C0) return 0x4CF;
  if (in(0x4C1, 0x4CE)) return even ? c : c + 1;
  if (in(0x531, 0x556)) return c + 48;
  return c;
}

bool is_white_space(char32_t c) {
  return c == ' ' || (c >= 0x9 && c <= 0xD) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::u32string prepare_text(std::u32string text, const TextOptions& options) {
  if (options.lower)
    for (char32_t& c : text) c = lower_case(c);
  if (!options.collapse) return text;
  size_t kept = 0;
  bool gap = false;
  for (const char32_t c : text) {
    if (is_white_space(c)) {
      gap = true;
      continue;
    }
    if (gap && kept > 0) text[kept++] = ' ';  // never beyond the place that is read
    gap = false;
    text[kept++] = c;
  }
  text.resize(kept);
  return text;
}

Vocabulary Vocabulary::of_text(std::u32string_view text) {
  Vocabulary v;
  std::vector<bool> small(0x10000, false);
  for (const char32_t c : text) {
    if (c < small.size()) small[c] = true;
    else if (v.code_points_.find(c) == std::u32string::npos) v.code_points_.push_back(c);
  }
  for (char32_t c = 0; c < small.size(); ++c)
    if (small[c]) v.code_points_.push_back(c);
  std::sort(v.code_points_.begin(), v.code_points_.end());
  v.symbols_ = static_cast<i64>(v.code_points_.size());
  return v;
}

Vocabulary Vocabulary::of_bytes() {
  Vocabulary v;
  v.bytes_ = true;
  for (char32_t c = 0; c < 256; ++c) v.code_points_.push_back(c);
  v.symbols_ = 256;
  return v;
}

i64 Vocabulary::add_special(std::string name) {
  special_.push_back(std::move(name));
  return size() - 1;
}

std::vector<i32> Vocabulary::encode(std::u32string_view text) const {
  // A table for the plane in which nearly all text lies; the rest by search.
  std::vector<i32> table(0x10000, -1);
  for (size_t i = 0; i < code_points_.size(); ++i)
    if (code_points_[i] < table.size()) table[code_points_[i]] = static_cast<i32>(i);
  std::vector<i32> ids(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    i32 id = -1;
    if (c < table.size()) {
      id = table[c];
    } else {
      const auto at = std::lower_bound(code_points_.begin(), code_points_.end(), c);
      if (at != code_points_.end() && *at == c) id = static_cast<i32>(at - code_points_.begin());
    }
    if (id < 0)
      fail("vocabulary", "symbol {} (U+{:04X} \"{}\") is not among the {} of the vocabulary", i,
           static_cast<u32>(c), nn::printable(encode_utf8(std::u32string_view(&c, 1))), symbols_);
    ids[i] = id;
  }
  return ids;
}

void Vocabulary::check(i64 id) const {
  if (id < 0 || id >= size()) fail("vocabulary", "there is no symbol {}: the vocabulary has {}", id, size());
}

std::string Vocabulary::name_of(i64 id) const {
  check(id);
  if (id >= symbols_) return special_[static_cast<size_t>(id - symbols_)];
  const char32_t c = code_points_[static_cast<size_t>(id)];
  if (bytes_ && (c < 0x20 || c >= 0x7F)) return fmt::format("0x{:02X}", static_cast<u32>(c));
  return nn::printable(encode_utf8(std::u32string_view(&c, 1)));
}

std::string Vocabulary::decode(std::span<const i64> ids) const {
  std::string out;
  for (const i64 id : ids) {
    check(id);
    if (id >= symbols_) {
      out += special_[static_cast<size_t>(id - symbols_)];
      continue;
    }
    const char32_t c = code_points_[static_cast<size_t>(id)];
    if (bytes_) out.push_back(static_cast<char>(static_cast<unsigned char>(c)));
    else out += encode_utf8(std::u32string_view(&c, 1));
  }
  return out;
}

}  // namespace waymark::train
