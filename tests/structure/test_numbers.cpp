// Every numbered case (C), convention (K) and verified value (V) that the tests speak of is there under its number.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

namespace {

// letter + number of every test name: "K63_K64_..." counts for both. heads: those at the start of a name.
struct Numbers {
  std::set<std::string> all, heads;
};
Numbers numbers_of_tests() {
  namespace fs = std::filesystem;
  Numbers out;
  const std::regex name("TEST_CASE\\(\"([^\"]*)\""), number("\\b([CKV])0*([0-9]+)[a-e]?(?=[_ :)]|$)");
  for (const fs::directory_entry& file : fs::recursive_directory_iterator(std::string(WAYMARK_SOURCE_DIR) + "/tests")) {
    if (file.path().extension() != ".cpp") continue;
    std::ifstream in(file.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
      // Underscores are word characters: "K63_K64" has no boundary between them.
      const std::string title = std::regex_replace((*it)[1].str(), std::regex("_"), " ");
      for (std::sregex_iterator n(title.begin(), title.end(), number); n != end; ++n) {
        const std::string key = (*n)[1].str() + (*n)[2].str();
        out.all.insert(key);
        if (n->position() == 0) out.heads.insert(key);
      }
      // "V80 to V84" stands for the five.
      std::smatch range;
      if (std::regex_search(title, range, std::regex("\\bV([0-9]+) to V([0-9]+)")))
        for (int i = std::stoi(range[1]); i <= std::stoi(range[2]); ++i) out.all.insert("V" + std::to_string(i));
    }
  }
  return out;
}

std::string missing(const std::set<std::string>& have, char letter, const std::vector<std::pair<int, int>>& ranges) {
  std::string out;
  for (const auto& r : ranges)
    for (int i = r.first; i <= r.second; ++i)
      if (!have.contains(letter + std::to_string(i))) out += fmt::format(" {}{}", letter, i);
  return out;
}

}  // namespace

TEST_CASE("every numbered row and case is a test") {
  const Numbers n = numbers_of_tests();
  CHECK(missing(n.heads, 'K', {{1, 66}}) == "");
  CHECK(missing(n.all, 'V', {{1, 11}, {20, 37}, {40, 53}, {60, 74}, {80, 94}, {100, 109}}) == "");
  CHECK(missing(n.heads, 'C', {{1, 37}, {39, 43}, {45, 66}, {68, 76}}) == "");
  // The sanitizers are another build: the case of their faults is a test of ctest.
  std::ifstream in(std::string(WAYMARK_SOURCE_DIR) + "/third_party/cmake/tests.cmake");
  const std::string cmake(std::istreambuf_iterator<char>(in), {});
  CHECK(cmake.find("C67") != std::string::npos);
  CHECK(missing(n.all, 'K', {{66, 67}}) == " K67");
}
