#include "nn/spec/text_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/tensor/error.h"
#include "nn/spec/suggest.h"

namespace waymark::nn {

namespace {

i64 characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
}

}  // namespace

void fail_at(std::string_view op, std::string_view text, size_t at, const std::string& what) {
  // A window of the text around the place, so that a long text does not flood the terminal.
  constexpr size_t kBefore = 60, kAfter = 40;
  at = std::min(at, text.size());
  const size_t from = at > kBefore ? at - kBefore : 0, to = std::min(text.size(), at + kAfter);
  std::string before = printable_part(text.substr(from, at - from), 4 * kBefore);
  std::string after = printable_part(text.substr(at, to - at), 4 * kAfter);
  if (from > 0) before.insert(0, "...");
  if (to < text.size()) after += "...";
  fail(op, "{} at column {}\n  {}{}\n  {}^", what, characters_of(text.substr(0, at)) + 1, before, after,
       std::string(static_cast<size_t>(characters_of(before)), ' '));
}

}  // namespace waymark::nn
