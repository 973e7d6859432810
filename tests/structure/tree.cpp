#include "tests/structure/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace waymark::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return text.starts_with(p); });
}

// A room of the layering: a folder of core, or one of the other top-level rooms. Empty if the path is in none.
std::string room_of(std::string_view path) {
  const size_t first = path.find('/');
  if (first == std::string_view::npos) return "";
  if (path.substr(0, first) != "core") return std::string(path.substr(0, first));
  const size_t second = path.find('/', first + 1);
  return std::string(second == std::string_view::npos ? path.substr(0, first) : path.substr(0, second));
}

// Height in the house. An include may not go up; -1: not a room of the library.
int height(const std::string& room) {
  static const std::map<std::string, int> heights = {
      {"core/tensor", 0}, {"core/parallel", 1}, {"core/io", 1},      {"core/kernels", 2}, {"core/random", 2},
      {"core/autograd", 2}, {"core/ops", 3},    {"core/engine", 4},  {"core/inspect", 5}, {"nn", 6},
      {"models", 7},        {"train", 8},       {"tests", 9}};
  const auto it = heights.find(room);
  return it == heights.end() ? -1 : it->second;
}

struct Include {
  std::string file;
  bool quoted;
  int line;
};

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> found;
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    at = line.find_first_of("\"<", at + 7);
    if (at == std::string::npos) continue;
    const bool quoted = line[at] == '"';
    const size_t end = line.find(quoted ? '"' : '>', at + 1);
    if (end == std::string::npos) continue;
    found.push_back({line.substr(at + 1, end - at - 1), quoted, number});
  }
  return found;
}

}  // namespace

Files read_sources(const std::string& root) {
  Files files;
  for (const char* room : {"core", "nn", "models", "train", "tests"}) {
    if (!fs::is_directory(fs::path(root) / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / room)) {
      const std::string extension = entry.path().extension().string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".inc" && extension != ".cpp")) continue;
      files[fs::relative(entry.path(), root).generic_string()] = read_file(entry.path());
    }
  }
  return files;
}

std::vector<std::string> top_level_entries(const std::string& root) {
  std::vector<std::string> ignored;  // "/runs/" and "/build*/" -> "runs", "build*"
  std::istringstream in(read_file(fs::path(root) / ".gitignore"));
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.front() == '/') line.erase(0, 1);
    if (!line.empty() && line.back() == '/') line.pop_back();
    if (!line.empty() && line.find('/') == std::string::npos) ignored.push_back(line);
  }
  const auto is_ignored = [&](const std::string& name) {
    return std::any_of(ignored.begin(), ignored.end(), [&](const std::string& pattern) {
      return pattern.back() == '*' ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
    });
  };
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.front() != '.' && !is_ignored(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Complaints check_includes(const Files& files) {
  Complaints complaints;
  std::map<std::pair<std::string, std::string>, std::string> arrows;  // (from room, to room) -> where
  for (const auto& [path, text] : files) {
    if (path.starts_with("tests/consumer/")) continue;  // sees the installed tree
    const std::string from = room_of(path);
    if (height(from) < 0) complaints.push_back(fmt::format("{}: is in no room", path));
    for (const Include& include : includes_of(text)) {
      if (!include.quoted) continue;
      const std::string where = fmt::format("{}:{}: includes \"{}\"", path, include.line, include.file);
      const std::string to = room_of(include.file);
      if (!files.contains(include.file)) {
        complaints.push_back(where + ", which is not a path from the top of the tree");
      } else if (height(to) > height(from)) {
        complaints.push_back(fmt::format("{}: {} lies above {}", where, to, from));
      } else if (from == "core/io" && to != "core/io" && to != "core/tensor") {
        complaints.push_back(where + ": core/io needs core/tensor only");
      } else if (from == "core/kernels" && (to == "core/autograd" || include.file == "core/tensor/tensor.h")) {
        complaints.push_back(where + ": kernels take raw spans and know neither Tensor nor autograd");
      } else if (from != to) {
        arrows.emplace(std::pair(from, to), where);
      }
    }
  }
  for (const auto& [arrow, where] : arrows) {
    const auto back = arrows.find({arrow.second, arrow.first});
    if (arrow.first < arrow.second && back != arrows.end())
      complaints.push_back(fmt::format("{}, and {}: the rooms include each other", where, back->second));
  }
  return complaints;
}

Complaints check_libraries(const Files& files) {
  struct Home {
    std::vector<std::string_view> headers;
    std::vector<std::string_view> rooms;
  };
  static const std::vector<Home> homes = {
      {{"cblas.h", "openblas"}, {"core/kernels/"}},
      {{"tbb/", "oneapi/tbb"}, {"core/parallel/"}},
      {{"Random123/"}, {"core/random/"}},
      {{"nlohmann/"}, {"core/io/", "core/inspect/", "train/"}},
      {{"zip.h", "zlib.h"}, {"core/io/"}},
      {{"histedit.h", "editline/"}, {"core/inspect/"}},
      {{"toml++/", "CLI/", "xxh"}, {"train/"}},
      {{"doctest/", "benchmark/"}, {}},
  };
  Complaints complaints;
  for (const auto& [path, text] : files) {
    if (path.starts_with("tests/")) continue;
    for (const Include& include : includes_of(text)) {
      for (const Home& home : homes) {
        if (!starts_with_any(include.file, home.headers)) continue;
        if (!starts_with_any(path, home.rooms))
          complaints.push_back(fmt::format("{}:{}: <{}> is not at home here", path, include.line, include.file));
        else if (path.ends_with(".h"))
          complaints.push_back(
              fmt::format("{}:{}: <{}> belongs in .cpp files", path, include.line, include.file));
      }
    }
  }
  return complaints;
}

Complaints check_lengths(const Files& files) {
  Complaints complaints;
  for (const auto& [path, text] : files) {
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (!path.starts_with("tests/") && lines > 600)
      complaints.push_back(fmt::format("{}: {} lines; a file holds one idea and at most 600", path, lines));
  }
  return complaints;
}

Complaints check_top_level(const std::vector<std::string>& names) {
  static const std::set<std::string> allowed = {"CMakeLists.txt", "README.md", "core",  "nn",
                                                "models",         "train",     "tests", "third_party"};
  Complaints complaints;
  for (const std::string& name : names)
    if (!allowed.contains(name)) complaints.push_back(name + ": not an entry of the top level");
  for (const std::string& name : allowed)
    if (std::find(names.begin(), names.end(), name) == names.end()) complaints.push_back(name + ": missing");
  return complaints;
}

}  // namespace waymark::test
