#include "train/cli/text_layout.h"

#include <algorithm>
#include <string_view>

namespace waymark::train::cli {

namespace {

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

// Words of `text` in lines that start at column `start` and end before `width`.
std::string wrapped(std::string_view text, size_t start, size_t width) {
  std::string out;
  size_t at = start;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    const size_t length = characters(word);
    if (at > start && at + 1 + length > width) {
      out += '\n';
      out.append(start, ' ');
      at = start;
    } else if (at > start) {
      out += ' ';
      ++at;
    }
    out += word;
    at += length;
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string paragraph(const std::string& text, size_t width) { return wrapped(text, 0, width) + "\n"; }

std::string columns(const std::vector<Row>& rows, size_t width, size_t indent) {
  constexpr size_t kWidest = 32;
  size_t left = 0;
  for (const Row& row : rows)
    if (characters(row.left) <= kWidest) left = std::max(left, characters(row.left));
  std::string out;
  for (const Row& row : rows) {
    const size_t start = indent + left + 2, length = characters(row.left);
    out.append(indent, ' ');
    out += row.left;
    if (!row.right.empty()) {
      if (length > left) {
        out += '\n';
        out.append(start, ' ');
      } else {
        out.append(left - length + 2, ' ');
      }
      out += wrapped(row.right, start, width);
    }
    out += '\n';
  }
  return out;
}

}  // namespace waymark::train::cli
