#include "train/report/escape.h"

#include <fmt/format.h>

#include <cstddef>

#include "core/tensor/error.h"

namespace waymark::train {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// The code point at `at`, which moves behind it. A byte that starts no valid sequence (overlong, surrogate, above
// U+10FFFF, cut off) gives U+FFFD and is passed alone.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || at + static_cast<std::size_t>(more) > text.size()) return kReplacement;
  char32_t code = first & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    const unsigned next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return kReplacement;
    code = (code << 6) | (next & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return kReplacement;
  at += static_cast<std::size_t>(more);
  return code;
}

void append(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

bool is_ascii_word(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// FNV-1a: only tells cut-off names apart.
u64 hash_of(std::string_view text) {
  u64 h = 14695981039346656037ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

}  // namespace

std::string clean_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    append(out, is_control(c) ? U' ' : c);
  }
  return out;
}

std::string shorten(std::string_view text, i64 limit) {
  if (limit < 1) fail("shorten", "limit must be at least 1, got {}", limit);
  // Four bytes hold one code point, so nothing behind them can be among the first limit + 1.
  const std::string clean = clean_line(text.substr(0, 4 * static_cast<std::size_t>(limit) + 4));
  std::string out;
  i64 count = 0;
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t start = at;
    next_code_point(clean, at);
    if (++count == limit && (at < clean.size() || text.size() > 4 * static_cast<std::size_t>(limit) + 4))
      return out + "…";
    out.append(clean, start, at - start);
  }
  return out;
}

i64 display_width(std::string_view text) {
  i64 width = 0;
  for (std::size_t at = 0; at < text.size(); ++width) next_code_point(text, at);
  return width;
}

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (c == '\t' || c == '\n') {
          append(out, c);
        } else {
          append(out, is_control(c) || c == 0xFFFE || c == 0xFFFF ? kReplacement : c);
        }
    }
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  const std::string clean = clean_line(text);
  // Brackets alone are no link, and specs are full of them.
  bool links = false;
  for (std::string_view form : {"](", "][", "]:"}) links = links || clean.find(form) != std::string::npos;
  std::string out;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    const auto word = [&](std::size_t at) {
      return at < clean.size() && is_ascii_word(static_cast<unsigned char>(clean[at]));
    };
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '_' && i > 0 && word(i - 1) && word(i + 1)) {
      out += c;  // an underscore inside a word starts no emphasis: model.embed_dim stays readable
    } else if (std::string_view(links ? "\\`*_|~[]" : "\\`*_|~").find(c) != std::string_view::npos) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string escape_latex(std::string_view text) {
  std::string out;
  for (char c : clean_line(text)) {
    switch (c) {
      case '&': case '%': case '$': case '#': case '_': case '{': case '}': (out += '\\') += c; break;
      case '~': out += "\\textasciitilde{}"; break;
      case '^': out += "\\textasciicircum{}"; break;
      case '\\': out += "\\textbackslash{}"; break;
      // Written plainly, T1 fonts would join them to dashes and other quotes, and OT1 shows other letters.
      case '<': out += "\\textless{}"; break;
      case '>': out += "\\textgreater{}"; break;
      case '|': out += "\\textbar{}"; break;
      case '"': out += "\\textquotedbl{}"; break;
      default: out += c;
    }
  }
  return out;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (c < 0x20 || c == 0x7F) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          append(out, c);
        }
    }
  }
  return out + '"';
}

std::string file_name(std::string_view text, i64 limit) {
  if (limit < 24) fail("file_name", "limit must be at least 24, got {}", limit);
  std::string out;
  for (char c : text) {
    const bool keep = is_ascii_word(static_cast<unsigned char>(c)) ||
                      std::string_view("-_.=+").find(c) != std::string_view::npos;
    const bool leading = out.empty() && (c == '.' || c == '-');
    if (leading) continue;
    if (keep) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  if (out.empty()) return "unnamed";
  if (out.size() > static_cast<std::size_t>(limit)) {
    out.resize(static_cast<std::size_t>(limit) - 17);
    out += fmt::format("-{:016x}", hash_of(text));
  }
  return out;
}

std::string shell_quoted(std::string_view word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

}  // namespace waymark::train
