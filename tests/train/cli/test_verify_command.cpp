// waymark verify: exit codes and lines.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/io/safetensors.h"
#include "core/ops/create.h"
#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"

using waymark::test::run_waymark;

TEST_CASE("waymark verify tells pass, failure and an unusable file apart") {
  const std::string good = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/op_add.safetensors";
  const auto pass = run_waymark({"verify", good});
  CHECK(pass.code == 0);
  CHECK(pass.out.find("  pass  output") != std::string::npos);
  const auto two = run_waymark({"verify", good, good, "--only", "output"});
  CHECK(two.out.find("2 of 2 files pass\n") != std::string::npos);
  CHECK(two.out.find("grad_input") == std::string::npos);
  const auto json = run_waymark({"verify", good, "--json"});
  CHECK(json.out.find("\"pass\":true") != std::string::npos);
  // Exact equality with another framework's sums is too much to ask for.
  const std::string hard = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/op_add.safetensors";
  const auto fail = run_waymark({"verify", hard, "--rtol", "0", "--atol", "0"});
  CHECK(fail.code == 1);
  CHECK(fail.out.find("  FAIL  ") != std::string::npos);
  waymark::test::TemporaryFolder folder;
  std::ofstream(folder / "bad.safetensors") << "nothing";
  CHECK(run_waymark({"verify", good, (folder / "bad.safetensors").string()}).code == 2);
  CHECK(run_waymark({"verify", (folder / "missing").string()}).code == 2);
  CHECK(run_waymark({"verify"}).code == 2);
  CHECK(run_waymark({"verify", good, "--rtol", "-1"}).code == 2);
  for (const char* bad : {"nan", "inf", "-inf"})
    for (const char* option : {"--rtol", "--atol"}) {
      const auto refused = run_waymark({"verify", good, option, bad});
      CHECK(refused.code == 2);
      CHECK(refused.err.find("must be a finite number >= 0") != std::string::npos);
    }
}

TEST_CASE("waymark verify takes a folder, and sums up") {
  waymark::test::TemporaryFolder folder;
  const std::string golden = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/";
  for (const char* name : {"op_add.safetensors", "loss_sar.safetensors", "loss_kl_div.safetensors"})
    std::filesystem::copy_file(golden + name, folder / name);
  std::ofstream(folder / "notes.txt") << "no case file";
  const auto all = run_waymark({"verify", folder.path().string()});
  CHECK(all.code == 0);
  CHECK(all.out.find("3 of 3 files pass\n") != std::string::npos);
  CHECK(all.out.find("\nloss                     2     2     0         0") != std::string::npos);
  // Quiet: what fails, and the summary.
  std::ofstream(folder / "broken.safetensors") << "nothing";
  const auto quiet = run_waymark({"verify", folder.path().string(), "--quiet"});
  CHECK(quiet.code == 2);
  CHECK(quiet.err.find("broken.safetensors: cannot be used") != std::string::npos);
  CHECK(quiet.out.find("loss_sar") == std::string::npos);
  CHECK(quiet.out.find("3 of 4 files pass\n") != std::string::npos);
  const auto json = run_waymark({"verify", folder.path().string(), "--json"});
  CHECK(json.out.find("{\"summary\":{\"kind\":\"\",\"files\":4,\"passed\":3,\"failed\":0,\"unusable\":1") !=
        std::string::npos);
  // A failure counts less than a file that cannot be used.
  std::filesystem::remove(folder / "broken.safetensors");
  CHECK(run_waymark({"verify", folder.path().string(), "--rtol", "0", "--atol", "0"}).code == 1);
  std::filesystem::create_directory(folder / "empty");
  const auto empty = run_waymark({"verify", (folder / "empty").string()});
  CHECK(empty.code == 2);
  CHECK(empty.err.find("has no case files") != std::string::npos);
}

TEST_CASE("waymark verify: a file that means harm takes none of the others with it") {
  waymark::test::TemporaryFolder folder;
  const std::string golden = std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/";
  for (const char* name : {"op_add.safetensors", "loss_sar.safetensors"}) std::filesystem::copy_file(golden + name, folder / name);
  int bad = 0;
  for (const char* place : {"-1", "18446744073709551615", "4611686018427387904", "x", ""}) {
    const waymark::Tensor t = waymark::ones({2}, waymark::kF64);
    waymark::save_safetensors(folder / ("m" + std::to_string(bad++) + ".safetensors"),
                              {{"input.tensors.0", t}, {std::string("input.tensors.") + place, t}, {"output", t}},
                              {{"format", "waymark-case-1"}, {"module", "op"}, {"rtol", "0"}, {"atol", "0"},
                               {"config", "{\"op\":\"cat\",\"args\":{\"dim\":0}}"}});
  }
  const auto all = run_waymark({"verify", folder.path().string()});
  CHECK(all.code == 2);
  CHECK(all.out.find("2 of 7 files pass\n") != std::string::npos);
  CHECK(all.out.find("op_add.safetensors  op: pass") != std::string::npos);
  for (int i = 0; i < bad; ++i) CHECK(all.err.find("m" + std::to_string(i) + ".safetensors  op: cannot be used") != std::string::npos);
}

TEST_CASE("waymark verify --write writes files that verify, or nothing") {
  waymark::test::TemporaryFolder folder;
  const std::string to = (folder / "cases").string();
  const auto two = run_waymark({"verify", "--write", to, "huang-m4(clip=3)", "loss(loss=sar)"});
  CHECK(two.code == 0);
  CHECK(two.out.find("2 of 2 files pass\n") != std::string::npos);
  CHECK(run_waymark({"verify", to}).code == 0);
  const auto wrong = run_waymark({"verify", "--write", (folder / "none").string(), "rope", "huang-m5", "loss(loss=x)"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("2 problems") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "none"));
  CHECK(run_waymark({"verify", "--write", to, "rope", "--rtol", "1"}).code == 2);
  // What only the computation finds is a wrong spec as well, and named.
  const auto late = run_waymark({"verify", "--write", (folder / "none").string(), "rope", "matmul(input=[2,3], other=[4,5])"});
  CHECK(late.code == 2);
  CHECK(late.err.find("matmul(input=[2,3], other=[4,5])") != std::string::npos);
  CHECK(late.err.find("matmul: ") != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "none"));
  const auto twice = run_waymark({"verify", "--write", (folder / "none").string(), "rope", "rope"});
  CHECK(twice.code == 2);
  CHECK(twice.err.find("is given twice") != std::string::npos);
  // Specs that differ only where a file name cannot.
  const auto alike = run_waymark({"verify", "--write", (folder / "alike").string(), "relu(input=values(of=[[1,2]]))", "relu(input=values(of=[1,2]))"});
  CHECK(alike.code == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "alike"), {}) == 2);
  const auto help = run_waymark({"help", "case-files"});
  CHECK(help.out.find("save_file(") != std::string::npos);
  CHECK(help.out.find("score_bias: ") != std::string::npos);
}
