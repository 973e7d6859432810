// How much the tests do: WAYMARK_TEST_LEVEL=quick|normal|full (default normal).
//   quick   for the sanitizers: one seed, two layouts, few runs
//   normal  what tests/run.sh does, within its ten minutes
//   full    by hand: many seeds, long fuzzing
#pragma once

#include <cstdlib>
#include <string_view>

namespace waymark::test {

enum class Level { quick, normal, full };

inline std::string_view level_name() {
  const char* text = std::getenv("WAYMARK_TEST_LEVEL");
  return text && *text ? std::string_view(text) : std::string_view("normal");
}
inline bool level_is_valid() {
  return level_name() == "quick" || level_name() == "normal" || level_name() == "full";
}
inline Level level() {
  return level_name() == "quick" ? Level::quick : level_name() == "full" ? Level::full : Level::normal;
}
// The value for this level: by_level(1, 3, 20) seeds.
template <class T> T by_level(T quick, T normal, T full) {
  return level() == Level::quick ? quick : level() == Level::normal ? normal : full;
}

}  // namespace waymark::test
