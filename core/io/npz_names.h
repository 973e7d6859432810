// Internal. Names of the arrays of an npz archive, for its reader and its writer.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/elements.h"
#include "core/io/files.h"

namespace waymark {

inline constexpr std::string_view kNpySuffix = ".npy";

// Member "x.npy" is array "x".
inline std::string npz_label(const std::string& member) {
  return member.ends_with(kNpySuffix) ? member.substr(0, member.size() - kNpySuffix.size()) : member;
}

inline ArrayPlace npz_place(const std::string& origin, std::string_view name) {
  return {"npz", fmt::format("{}: array {}", origin, quoted_name(name))};
}

// A name that appears twice, or null.
inline const std::string* repeated_name(const std::vector<std::string>& names) {
  std::vector<const std::string*> sorted;
  for (const std::string& name : names) sorted.push_back(&name);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto same = [](const auto* a, const auto* b) { return *a == *b; };
  const auto at = std::adjacent_find(sorted.begin(), sorted.end(), same);
  return at == sorted.end() ? nullptr : *at;
}

}  // namespace waymark
