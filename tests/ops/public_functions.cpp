// Every function that core/ops offers is a listed op, or says here which op it is.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "core/ops/registry.h"

namespace waymark::test {

TEST_CASE("every public function of core/ops is in the list of ops") {
  namespace fs = std::filesystem;
  // Functions that are other ops by another name, or no ops: they record nothing of their own.
  const std::map<std::string, std::string> known = {
      {"zeros_like", "zeros"},
      {"ones_like", "ones"},
      {"empty_like", "empty"},
      {"full_like", "full"},
      {"rand_like", "rand"},
      {"randn_like", "randn"},
      {"randint_like", "randint"},
      {"vector_norm", "norm"},
      {"three_way_product_twin", "three_way_product"},
      {"zero_", "fill_"},
      {"tensor", ""},     // from C++ numbers
      {"from_blob", ""},  // from the caller's memory
      {"allclose", ""},   // a bool of C++
      {"equal", ""},
      {"detach_", ""},    // cuts the history
      {"projected", ""},  // clamp, sub and add
      {"custom_pairs", ""},  // functions of a program, which have no names
  };
  std::set<std::string> functions;
  const std::regex pure(R"(\[\[nodiscard\]\] (?:WAYMARK_API|inline) [\w:<>]+ ([a-z]\w*)\()"),
      inplace(R"(WAYMARK_API const Tensor& ([a-z]\w*_)\()");
  for (const fs::directory_entry& file : fs::directory_iterator(std::string(WAYMARK_SOURCE_DIR) + "/core/ops")) {
    if (file.path().extension() != ".h") continue;
    std::ifstream in(file.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    for (const std::regex* head : {&pure, &inplace})
      for (std::sregex_iterator it(text.begin(), text.end(), *head), end; it != end; ++it)
        if ((*it)[1] != "operator") functions.insert((*it)[1]);
  }
  CHECK(functions.size() > 250);
  for (const std::string& name : functions) {
    INFO(name);
    const auto other = known.find(name);
    if (other == known.end()) CHECK(find_op(name) != nullptr);
    else if (!other->second.empty()) CHECK(find_op(other->second) != nullptr);
  }
  for (const auto& entry : known) CHECK_MESSAGE(functions.contains(entry.first), entry.first << " is gone");
}

}  // namespace waymark::test
