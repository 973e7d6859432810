// Every case file in tests/golden passes: values that other frameworks computed (formats: train/verify/verify.h).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "train/verify/verify.h"

using namespace waymark;
using namespace waymark::train;

TEST_CASE("golden case files of other frameworks") {
  VerifySummary summary;
  for (const auto& file : case_files(WAYMARK_SOURCE_DIR "/tests/golden")) {
    const CaseReport report = verify_file(file);
    INFO(file.filename().string());
    for (const std::string& p : report.problems) FAIL_CHECK(file.filename().string() << ": " << p);
    for (const TensorCheck& c : report.checks)
      CHECK_MESSAGE(c.pass, file.filename().string() << ": " << c.name << " at " << c.where);
    CHECK(report.pass());
    summary.add(report);
  }
  std::map<std::string, i64> files;
  std::string table;
  for (const VerifySummary::Line& l : summary.kinds) {
    files[l.kind] = l.files;
    table += fmt::format(
        "\n  {:<20} {:>4} files, {:>4} pass, {:>5} tensors, largest error {:.2e}, relative {:.2e}, of what is allowed "
        "{:.2e}",
        l.kind, l.files, l.passed, l.tensors, l.max_abs, l.max_rel, l.of_tolerance);
  }
  MESSAGE(table);
  // None may get lost.
  CHECK(files["op"] >= 388);
  CHECK(files["loss"] >= 30);
  CHECK(files["optimizer"] >= 17);
  CHECK(files["training"] >= 8);
  CHECK(files["encoder_layer"] >= 5);
  CHECK(files["attention"] + files["attention_core"] >= 32);
}
