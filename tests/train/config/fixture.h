// Reading a config in a test.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "tests/train/config/small_registries.h"
#include "train/config/keys.h"
#include "train/config/resolve.h"

namespace waymark::test {

struct Attempt {
  train::Problems problems;
  std::optional<train::Config> config;
  // "origin|text" of each problem, one per line.
  std::string text() const {
    std::string out;
    for (const auto& p : problems) out += fmt::format("{}|{}\n", p.origin, p.text);
    return out;
  }
};

// A file "a.toml" with this text, then --set KEY=VALUE for each setting.
inline Attempt attempt(const std::string& toml, const std::vector<std::string>& settings = {}) {
  Attempt a;
  std::vector<train::Source> sources{train::read_toml_text(toml, "a.toml", a.problems)};
  std::vector<train::Override> overrides;
  for (const std::string& setting : settings) {
    train::Override o;
    if (train::split_setting(setting, "--set", o, a.problems)) overrides.push_back(o);
  }
  sources.push_back(train::command_line_source(overrides, a.problems));
  a.config = train::resolve_config(sources, a.problems, small_registries());
  return a;
}
inline train::Config config_of(const std::string& toml, const std::vector<std::string>& settings = {}) {
  Attempt a = attempt(toml, settings);
  INFO(a.text());
  REQUIRE(a.problems.empty());
  REQUIRE(a.config.has_value());
  return *a.config;
}
inline std::string problems_of(const std::string& toml, const std::vector<std::string>& settings = {}) {
  Attempt a = attempt(toml, settings);
  CHECK(a.config.has_value() == a.problems.empty());
  return a.text();
}

}  // namespace waymark::test
