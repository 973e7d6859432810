// waymark verify: exit codes and lines.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"

using waymark::test::run_program;

TEST_CASE("waymark verify tells pass, failure and an unusable file apart") {
  const std::string good = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/op_add.safetensors";
  const auto pass = run_program({"verify", good});
  CHECK(pass.code == 0);
  CHECK(pass.out.find("  pass  output") != std::string::npos);
  const auto two = run_program({"verify", good, good, "--only", "output"});
  CHECK(two.out.find("2 of 2 files pass\n") != std::string::npos);
  CHECK(two.out.find("grad_input") == std::string::npos);
  const auto json = run_program({"verify", good, "--json"});
  CHECK(json.out.find("\"pass\":true") != std::string::npos);
  // Exact equality with another framework's sums is too much to ask for.
  const std::string hard = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/op_add.safetensors";
  const auto fail = run_program({"verify", hard, "--rtol", "0", "--atol", "0"});
  CHECK(fail.code == 1);
  CHECK(fail.out.find("  FAIL  ") != std::string::npos);
  waymark::test::TemporaryFolder folder;
  std::ofstream(folder / "bad.safetensors") << "nothing";
  CHECK(run_program({"verify", good, (folder / "bad.safetensors").string()}).code == 2);
  CHECK(run_program({"verify", (folder / "missing").string()}).code == 2);
  CHECK(run_program({"verify"}).code == 2);
  CHECK(run_program({"verify", good, "--rtol", "-1"}).code == 2);
  CHECK(run_program({"verify", good, "--rtol", "nan"}).code == 2);
}
