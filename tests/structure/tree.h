// The rules of the house as functions from file texts to complaints, so that a test can feed them a bad tree.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::test {

using Files = std::map<std::string, std::string>;  // path from the top, with '/' -> text
using Complaints = std::vector<std::string>;

// All .h, .inc and .cpp files below the rooms of `root`.
Files read_sources(const std::string& root);
// Names at the top level of `root`, without dot files and without what its .gitignore names.
std::vector<std::string> top_level_entries(const std::string& root);

// Includes point down: train -> models -> nn -> core, and inside core as DESIGN says; they name existing files by
// their path from the top; no two folders of core include each other; kernels see neither Tensor nor autograd.
Complaints check_includes(const Files& files);
// A library is included only in the rooms where it is at home, and only by .cpp files: installed headers need fmt alone.
Complaints check_libraries(const Files& files);
// Files outside tests have at most 600 lines.
Complaints check_lengths(const Files& files);
// Exactly the rooms, CMakeLists.txt and README.md.
Complaints check_top_level(const std::vector<std::string>& names);

}  // namespace waymark::test
