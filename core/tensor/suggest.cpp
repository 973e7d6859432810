#include "core/tensor/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace waymark {

i64 edit_distance(std::string_view a, std::string_view b, i64 limit) {
  const i64 n = static_cast<i64>(a.size()), m = static_cast<i64>(b.size());
  if (std::abs(n - m) > limit) return limit + 1;
  // Lowrance and Wagner 1975. d has a border row and column of "infinity" at index 0.
  const i64 far = n + m + 1;
  const size_t width = static_cast<size_t>(m) + 2;
  std::vector<i64> d((static_cast<size_t>(n) + 2) * width, far);
  auto at = [&](i64 i, i64 j) -> i64& { return d[static_cast<size_t>(i + 1) * width + static_cast<size_t>(j + 1)]; };
  for (i64 i = 0; i <= n; ++i) at(i, 0) = i;
  for (i64 j = 0; j <= m; ++j) at(0, j) = j;
  std::array<i64, 256> last_row{};  // last row in which a byte of b was met in a
  for (i64 i = 1; i <= n; ++i) {
    i64 last_match = 0;
    const auto x = static_cast<unsigned char>(a[static_cast<size_t>(i - 1)]);
    for (i64 j = 1; j <= m; ++j) {
      const auto y = static_cast<unsigned char>(b[static_cast<size_t>(j - 1)]);
      const i64 k = last_row[y], l = last_match;
      const i64 cost = x == y ? 0 : 1;
      if (x == y) last_match = j;
      const i64 swap = k > 0 && l > 0 ? at(k - 1, l - 1) + (i - k - 1) + 1 + (j - l - 1) : far;
      at(i, j) = std::min({at(i - 1, j - 1) + cost, at(i, j - 1) + 1, at(i - 1, j) + 1, swap});
    }
    last_row[x] = i;
  }
  return std::min(at(n, m), limit + 1);
}

i64 suggestion_limit(std::string_view wrong) {
  const i64 n = static_cast<i64>(wrong.size());
  return std::min(std::max<i64>(2, n / 3), n - 1);
}

std::vector<std::string> suggest(std::string_view wrong, const std::vector<std::string>& names) {
  const i64 limit = suggestion_limit(wrong);
  std::vector<std::pair<i64, const std::string*>> hits;
  for (const std::string& name : names)
    if (const i64 distance = edit_distance(wrong, name, limit); distance <= limit) hits.emplace_back(distance, &name);
  std::stable_sort(hits.begin(), hits.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> result;
  for (const auto& [distance, name] : hits) {
    if (result.size() == 3 || (hits.front().first == 0 && distance > 0)) break;
    if (std::find(result.begin(), result.end(), *name) == result.end()) result.push_back(*name);
  }
  return result;
}

std::string did_you_mean(const std::vector<std::string>& suggestions) {
  if (suggestions.empty()) return "";
  std::string text = suggestions.front();
  for (size_t i = 1; i < suggestions.size(); ++i) {
    text += i + 1 == suggestions.size() ? " or " : ", ";
    text += suggestions[i];
  }
  return fmt::format(" Did you mean {}?", text);
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names) {
  return did_you_mean(suggest(wrong, names));
}

size_t utf8_length(std::string_view text, size_t i) {
  auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  const unsigned lead = byte(i);
  const size_t n = lead < 0x80                   ? 1
                   : lead >= 0xC2 && lead < 0xE0 ? 2
                   : lead >= 0xE0 && lead < 0xF0 ? 3
                   : lead >= 0xF0 && lead < 0xF5 ? 4
                                                 : 0;
  for (size_t k = 1; k < n; ++k)
    if ((byte(i + k) & 0xC0u) != 0x80u) return 0;
  const unsigned second = byte(i + 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
      (lead == 0xF4 && second > 0x8F))
    return 0;  // overlong, surrogate, beyond U+10FFFF
  return n;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0, n = 0; i < text.size(); i += n)
    if ((n = utf8_length(text, i)) == 0) return false;
  return true;
}

std::string printable(std::string_view text, i64 limit) { return text.empty() ? "\"\"" : printable_part(text, limit); }

std::string printable_part(std::string_view text, i64 limit) {
  std::string out;
  i64 count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    if (count == limit) return out + fmt::format("... ({} bytes)", text.size());
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t n = utf8_length(text, i);
    const bool control =
        c < 0x20 || c == 0x7F || (n == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0);
    if (n == 0 || control) {
      if (c == '\n')
        out += "\\n";
      else if (c == '\t')
        out += "\\t";
      else
        out += fmt::format("\\x{:02x}", c);
      ++i;
      continue;
    }
    out.append(text.substr(i, n));
    i += n;
  }
  return out;
}

}  // namespace waymark
