// Every case file in tests/golden passes: values that other frameworks computed (formats: train/verify/verify.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "train/verify/verify.h"

using namespace waymark;
using namespace waymark::train;

TEST_CASE("golden case files of other frameworks") {
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(WAYMARK_SOURCE_DIR "/tests/golden"))
    if (e.path().extension() == ".safetensors") files.push_back(e.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 40);
  for (const auto& file : files) {
    const CaseReport report = verify_file(file);
    INFO(file.filename().string());
    for (const std::string& p : report.problems) FAIL_CHECK(file.filename().string() << ": " << p);
    for (const TensorCheck& c : report.checks)
      CHECK_MESSAGE(c.pass, file.filename().string() << ": " << c.name << " at " << c.where);
    CHECK(report.pass());
  }
}
