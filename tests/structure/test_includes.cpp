// The house keeps its shape: arrows point down, libraries stay in their rooms, files stay short.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/structure/tree.h"

using namespace waymark::test;

namespace {

const std::string kRoot = WAYMARK_SOURCE_DIR;

// One line for each complaint, so that a failure prints them all.
std::string text_of(const Complaints& complaints) { return fmt::format("{}", fmt::join(complaints, "\n")); }

}  // namespace

TEST_CASE("includes of the tree point down") {
  const Files files = read_sources(kRoot);
  REQUIRE(files.contains("core/tensor/error.h"));
  CHECK(text_of(check_includes(files)) == "");
}

TEST_CASE("a bad include is found") {
  const Files good = {{"core/tensor/tensor.h", ""},     {"core/ops/sum.cpp", "#include \"core/tensor/tensor.h\"\n"},
                      {"core/engine/run.h", ""},        {"core/autograd/node.h", ""},
                      {"core/kernels/add.cpp", ""},     {"core/io/npy.cpp", "#include \"core/tensor/tensor.h\"\n"},
                      {"core/random/stream.h", ""},     {"nn/linear.h", "#include \"core/engine/run.h\"\n"},
                      {"models/bert.h", ""},            {"train/trainer.h", "#include <vector>\n"},
                      {"tests/helper.h", ""},           {"core/inspect/page.h", "#include \"core/io/npy.cpp\"\n"}};
  CHECK(text_of(check_includes(good)) == "");

  struct Case {
    const char *path, *include, *complaint;
  };
  const Case cases[] = {
      {"core/tensor/tensor.h", "core/ops/sum.cpp", "core/ops lies above core/tensor"},
      {"core/autograd/node.h", "core/ops/sum.cpp", "core/ops lies above core/autograd"},
      {"core/ops/sum.cpp", "core/engine/run.h", "core/engine lies above core/ops"},
      {"core/engine/run.h", "core/inspect/page.h", "core/inspect lies above core/engine"},
      {"core/inspect/page.h", "nn/linear.h", "nn lies above core/inspect"},
      {"nn/linear.h", "models/bert.h", "models lies above nn"},
      {"models/bert.h", "train/trainer.h", "train lies above models"},
      {"train/trainer.h", "tests/helper.h", "tests lies above train"},
      {"core/io/npy.cpp", "core/random/stream.h", "core/random lies above core/io"},
      {"core/kernels/add.cpp", "core/tensor/tensor.h", "know neither Tensor nor autograd"},
      {"core/kernels/add.cpp", "core/autograd/node.h", "know neither Tensor nor autograd"},
      {"nn/linear.h", "linear_impl.h", "not a path from the top"},
      {"nn/linear.h", "../core/engine/run.h", "not a path from the top"},
  };
  for (const Case& c : cases) {
    Files bad = good;
    bad[c.path] += fmt::format("  #  include \"{}\"\n", c.include);
    const std::string text = text_of(check_includes(bad));
    CAPTURE(c.path);
    CAPTURE(c.include);
    CAPTURE(text);
    CHECK(text.find(c.complaint) != std::string::npos);
    CHECK(text.find(c.path) == 0);
    CHECK(text.find('\n') == std::string::npos);
  }

  Files circle = good;
  circle["core/random/stream.h"] = "#include \"core/autograd/node.h\"\n";
  CHECK(text_of(check_includes(circle)) == "");
  circle["core/autograd/node.h"] = "#include \"core/random/stream.h\"\n";
  CHECK(text_of(check_includes(circle)).find("include each other") != std::string::npos);
  circle["core/new_room/x.h"] = "";
  CHECK(text_of(check_includes(circle)).find("core/new_room/x.h: is in no room") != std::string::npos);
}

TEST_CASE("libraries stay in their rooms") {
  CHECK(text_of(check_libraries(read_sources(kRoot))) == "");
  CHECK(check_libraries({{"core/io/a.cpp", "#include <nlohmann/json.hpp>\n"}}).empty());
  CHECK(text_of(check_libraries({{"nn/a.cpp", "#include <nlohmann/json.hpp>\n"}})) ==
        "nn/a.cpp:1: <nlohmann/json.hpp> is not at home here");
  CHECK(text_of(check_libraries({{"core/kernels/a.h", "\n#include <cblas.h>\n"}})) ==
        "core/kernels/a.h:2: <cblas.h> belongs in .cpp files");
  CHECK(check_libraries({{"core/ops/a.cpp", "#include <tbb/task_arena.h>\n"}}).size() == 1);
  CHECK(check_libraries({{"core/ops/a.cpp", "#include <doctest/doctest.h>\n"}}).size() == 1);
}

TEST_CASE("files outside tests stay short") {
  CHECK(text_of(check_lengths(read_sources(kRoot))) == "");
  CHECK(check_lengths({{"nn/a.cpp", std::string(600, '\n')}}).empty());
  CHECK(text_of(check_lengths({{"nn/a.cpp", std::string(601, '\n')}})).find("nn/a.cpp: 601 lines") == 0);
  CHECK(check_lengths({{"tests/a.cpp", std::string(601, '\n')}}).empty());
}

TEST_CASE("the top level has the five rooms, third_party and two files") {
  CHECK(text_of(check_top_level(top_level_entries(kRoot))) == "");
  std::vector<std::string> names = {"CMakeLists.txt", "README.md", "core",  "models",
                                    "nn",             "tests",     "train", "third_party"};
  CHECK(check_top_level(names).empty());
  names.push_back("docs");
  CHECK(text_of(check_top_level(names)) == "docs: not an entry of the top level");
  names = {"CMakeLists.txt", "README.md", "core", "models", "nn", "tests", "train"};
  CHECK(text_of(check_top_level(names)) == "third_party: missing");
}

TEST_CASE("every room has a README.md with something in it") {
  namespace fs = std::filesystem;
  for (const std::string& name : top_level_entries(kRoot)) {
    const fs::path room = fs::path(kRoot) / name;
    if (!fs::is_directory(room)) continue;
    CAPTURE(room);
    REQUIRE(fs::is_regular_file(room / "README.md"));
    CHECK(fs::file_size(room / "README.md") > 200);
  }
}

TEST_CASE("README.md ends with the licence") {
  const auto read = [](const char* name) {
    std::ifstream in(kRoot + "/" + name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string licence = read(".license");
  REQUIRE(licence.starts_with("MIT License"));
  CHECK(read("README.md").ends_with("\n## Licence\n\n" + licence));
}
