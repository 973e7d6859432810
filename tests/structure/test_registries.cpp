// A new encoding, attention, optimizer or task is one new file and one line of a list: nothing else declares it.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/structure/tree.h"

using namespace waymark::test;

namespace {

struct List {
  const char *file, *macro, *type;  // the registry, the list in it, and what each function of the list returns
  const char* folder;               // where those functions live
};
constexpr List kLists[] = {
    {"nn/position/registry.cpp", "WAYMARK_ENCODINGS", "EncodingInfo", "nn/position/"},
    {"nn/attention/registry.cpp", "WAYMARK_ATTENTIONS", "AttentionInfo", "nn/attention/"},
    {"train/optim/registry.cpp", "WAYMARK_OPTIMIZERS", "OptimizerKind", "train/optim/"},
    {"train/tasks/registry.cpp", "WAYMARK_TASKS", "TaskKind", "train/tasks/"},
};

// The names in "#define MACRO(X) X(a) X(b)".
std::set<std::string> listed(const std::string& text, const std::string& macro) {
  std::set<std::string> names;
  const size_t begin = text.find("#define " + macro + "(X)");
  if (begin == std::string::npos) return names;
  size_t end = text.find('\n', begin);
  while (end != std::string::npos && text[end - 1] == '\\') end = text.find('\n', end + 1);
  const std::string body = text.substr(begin, end - begin);
  static const std::regex item(R"(\bX\((\w+)\))");
  for (std::sregex_iterator it(body.begin(), body.end(), item), last; it != last; ++it) names.insert((*it)[1]);
  return names;
}

// Complaints about one list: a name whose function is defined nowhere or in two files, or that a header declares.
Complaints check_list(const Files& files, const List& list) {
  Complaints complaints;
  const std::set<std::string> names = listed(files.at(list.file), list.macro);
  if (names.empty()) return {std::string(list.file) + " has no list " + list.macro};
  for (const std::string& name : names) {
    const std::string function = std::string(list.type) + " " + name + "()";
    int defined = 0;
    for (const auto& [path, text] : files) {
      if (path.rfind(list.folder, 0) == 0 && text.find("\n" + function + " {") != std::string::npos) ++defined;
      if (path.rfind("tests/", 0) != 0 && text.find(function + ";") != std::string::npos)
        complaints.push_back(path + " declares " + name);
    }
    if (defined != 1) complaints.push_back(name + " is defined in " + std::to_string(defined) + " files");
  }
  return complaints;
}

std::string joined(const Complaints& complaints) {
  std::string out;
  for (const std::string& c : complaints) out += c + "\n";
  return out;
}

}  // namespace

TEST_CASE("what reads configs asks for the registries by argument, so that it links without the rest of the house") {
  // The fuzz targets compile train/config without registries.cpp.
  const auto complaints = [](const Files& files) {
    Complaints out;
    for (const auto& [path, text] : files)
      if (path.rfind("train/config/", 0) == 0 && path.ends_with(".cpp") && path != "train/config/registries.cpp" &&
          text.find("registries()") != std::string::npos)
        out.push_back(path + " calls registries()");
    return joined(out);
  };
  Files files = read_sources(WAYMARK_SOURCE_DIR);
  CHECK(complaints(files) == "");
  files["train/config/extra.cpp"] = "const Registries& r = registries();\n";
  CHECK(complaints(files) == "train/config/extra.cpp calls registries()\n");
}

TEST_CASE("one file and one line of a list add an encoding, an attention, an optimizer or a task") {
  const Files files = read_sources(WAYMARK_SOURCE_DIR);
  for (const List& list : kLists) CHECK(joined(check_list(files, list)) == "");
  // The rule sees what it must see.
  Files bad = files;
  bad["nn/position/extra.h"] = "EncodingInfo rope();\n";
  CHECK(joined(check_list(bad, kLists[0])) == "nn/position/extra.h declares rope\n");
  bad = files;
  bad.erase("nn/position/rope.cpp");
  CHECK(joined(check_list(bad, kLists[0])) == "rope is defined in 0 files\n");
}
