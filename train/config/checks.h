// Rules between config keys, asked after every key has its value.
#pragma once

#include <set>
#include <string>

#include "train/config/config.h"
#include "train/config/registries.h"

namespace waymark::train {

struct CheckContext {
  const Config& config;
  const Registries& registries;
  const TaskFacts& facts;
  const std::set<std::string, std::less<>>& bad;  // keys that have a problem already
  Problems& problems;

  // Are these keys usable? A rule that needs a bad key is skipped: its problem is known.
  template <class... Keys> bool fine(Keys... keys) const { return (!bad.count(keys) && ...); }
  void add(std::string_view key, std::string text) { problems.push_back({config.origin(key), std::move(text)}); }
};

void check_config(CheckContext& context);
// Settings of things that this version does not have, and settings that have no effect in this combination: nothing is
// silently ignored. limits.cpp is the list; who builds a thing removes its line.
void check_limits(CheckContext& context);
// What help says about a key that is limited in this version: "this version: only encoder"; empty: nothing.
WAYMARK_API std::string limit_note(std::string_view key, const Registries& registries = train::registries());
// Settings without effect that may be meant for other cells of a sweep: warnings, not problems.
WAYMARK_API std::vector<std::string> unused_settings(const Config& config);

}  // namespace waymark::train
