// A well-formedness check for the XML that Waymark writes (XML 1.0 without document types, processing instructions or
// comments, which it never writes).
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::test {

// Empty if `text` is well-formed, else what is wrong and where.
inline std::string xml_problem(std::string_view text) {
  std::size_t at = 0;
  const auto problem = [&](const std::string& what) { return what + " at byte " + std::to_string(at); };
  const auto name = [&] {
    const std::size_t start = at;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '-' ||
                                text[at] == '_' || text[at] == ':' || text[at] == '.'))
      ++at;
    return std::string(text.substr(start, at - start));
  };
  const auto space = [&] {
    const std::size_t start = at;
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) ++at;
    return at > start;
  };
  // Checks the characters up to `stop`, which is passed.
  const auto content_until = [&](char stop) -> std::string {
    for (; at < text.size() && text[at] != stop; ++at) {
      const unsigned char c = static_cast<unsigned char>(text[at]);
      if ((c < 0x20 && c != '\n' && c != '\t') || c == '<') return problem("forbidden character");
      if (c != '&') continue;
      const std::size_t end = text.find(';', at);
      const std::string entity(text.substr(at, end == std::string_view::npos ? 1 : end - at + 1));
      if (!std::set<std::string>{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}.count(entity))
        return problem("unknown entity");
    }
    return {};
  };
  constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (text.substr(0, kDeclaration.size()) != kDeclaration) return problem("no declaration");
  at = kDeclaration.size();
  std::vector<std::string> open;
  bool root_seen = false;
  while (at < text.size()) {
    if (text[at] != '<') {
      const std::size_t start = at;
      if (const std::string p = content_until('<'); !p.empty()) return p;
      if (open.empty() && text.substr(start, at - start).find_first_not_of(" \n") != std::string_view::npos)
        return problem("text outside the root");
      continue;
    }
    ++at;
    const bool end_tag = at < text.size() && text[at] == '/';
    at += end_tag;
    const std::string element = name();
    if (element.empty()) return problem("no element name");
    if (end_tag) {
      if (open.empty() || open.back() != element) return problem("</" + element + "> closes nothing");
      open.pop_back();
      if (at >= text.size() || text[at] != '>') return problem("end tag not closed");
      ++at;
      continue;
    }
    if (open.empty() && root_seen) return problem("second root");
    root_seen = true;
    std::set<std::string> attributes;
    while (space() && at < text.size() && text[at] != '>' && text[at] != '/') {
      const std::string attribute = name();
      if (attribute.empty()) return problem("no attribute name");
      if (!attributes.insert(attribute).second) return problem("attribute " + attribute + " twice");
      if (*attributes.rbegin() != attribute) return problem("attribute " + attribute + " out of order");
      if (text.substr(at, 2) != "=\"") return problem("attribute without value");
      at += 2;
      if (const std::string p = content_until('"'); !p.empty()) return p;
      ++at;
    }
    const bool empty_tag = at < text.size() && text[at] == '/';
    at += empty_tag;
    if (at >= text.size() || text[at] != '>') return problem("tag not closed");
    ++at;
    if (!empty_tag) open.push_back(element);
  }
  if (!open.empty()) return problem("<" + open.back() + "> is open");
  return root_seen ? std::string() : problem("no element");
}

}  // namespace waymark::test
