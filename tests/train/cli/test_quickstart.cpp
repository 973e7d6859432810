// train/quickstart.sh as a user runs it, with the program that is built already, on a small text, for a few updates.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <fstream>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"
#include "tests/train/tasks/fixture.h"
#include "train/config/config.h"

using namespace waymark;
using namespace waymark::test;
namespace fs = std::filesystem;

namespace {

const std::string kTrain = std::string(WAYMARK_SOURCE_DIR) + "/train";

Outcome quickstart(std::vector<std::string> words, const std::string& directory = "") {
  words.insert(words.begin(), {"bash", kTrain + "/quickstart.sh"});
  return run_command(words, directory, [] { ::setenv("WAYMARK_PROGRAM", WAYMARK_PROGRAM, 1); });
}

}  // namespace

TEST_CASE("quickstart: from a text to the table and the plots; again, only what is missing") {
  const TemporaryFolder folder;
  // A name that a shell and a spec must both get through.
  const std::string text = (folder / "my \"text\".txt").string();
  std::ofstream(text) << sample_text(6000);
  const std::vector<std::string> words = {"--text", text, "--position", "none,learned(max_len=256),rope", "--seeds=0..1",
                                          "--steps", "3", "--out", "runs"};
  const Outcome first = quickstart(words, folder.path().string());
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK(has(first.err, "6 runs planned, 0 done, 6 to do, about "));
  CHECK(has(first.err, "flop of training"));
  const std::string table = read_file(folder / "runs" / "table.md");
  CHECK(has(first.out, table));
  for (const char* part : {"| none ", "learned(max_len=256)", "rope", "test@256.accuracy", "parameters", "untrained", "±"})
    CHECK_MESSAGE(has(table, part), part);
  CHECK(has(table, "nanogpt"));
  size_t plots = 0;
  for (const auto& entry : fs::directory_iterator(folder / "runs" / "plots")) plots += entry.path().extension() == ".svg";
  CHECK(plots >= 3);
  // Nothing asserted about a comparison that is not the default one.
  CHECK(!has(first.err, "quickstart:"));

  const Outcome again = quickstart(words, folder.path().string());
  CHECK(again.code == 0);
  CHECK(has(again.err, "6 done, 0 to do"));
  CHECK(read_file(folder / "runs" / "table.md") == table);
}

TEST_CASE("quickstart: a wrong request is exit code 2 and leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string text = (folder / "text.txt").string(), out = (folder / "runs").string();
  std::ofstream(text) << sample_text(6000);
  const auto refused = [&](std::vector<std::string> words, const char* part) {
    words.insert(words.end(), {"--out", out});
    const Outcome o = quickstart(words);
    INFO(o.err);
    CHECK(o.code == 2);
    CHECK(has(o.err, part));
    CHECK(!fs::exists(out));
  };
  refused({"--txet", text}, "unknown option --txet");
  refused({"--text", (folder / "no").string()}, "cannot read");
  refused({"--text", folder.path().string()}, "cannot read");
  refused({"--text", text, "--steps", ""}, "--steps needs a value");
  refused({"--text", text, "--position", "roep"}, "Did you mean rope");
  refused({"--text", text, "--steps", "0"}, "train.steps");
  const Outcome help = quickstart({"--help"});
  CHECK(help.code == 0);
  for (const char* option : {"--text", "--position", "--attention", "--seeds", "--steps", "--out"})
    CHECK(has(help.out, option));
}

TEST_CASE("quickstart: the recipe") {
  const train::Config config = train::make_config(
      {{"task", "char-mlm(source=kjv, context=64)"}, {"model.position", "huang-m4"}}, {kTrain + "/configs/quickstart.toml"});
  CHECK(config.integer("model.num_layers") == 2);
  CHECK(config.integer("model.embed_dim") == 64);
  CHECK(config.integer("model.num_heads") == 4);
  CHECK(config.integer("train.steps") == 900);
  CHECK(config.integer("train.batch_size") == 16);
  CHECK(config.spec("optim.optimizer").real("lr") == 2e-3);
  CHECK(config.layers("model.position")[0][0].integer("clip") == 16);
  // The last tenth of the text is measured, and nothing is selected on it.
  CHECK(config.text("data.split") == "nanogpt");
  CHECK(config.integer("data.test_size") == 2048);
  CHECK(config.text("train.select") == "last");
}

TEST_CASE("quickstart: what the comparison must show") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& rows) {
    std::ofstream(folder / "table.csv") << "model.position,kind,column,metric,checkpoint,mean,sd\r\n" << rows;
    return run_command({"awk", "-f", kTrain + "/quickstart_check.awk", (folder / "table.csv").string()});
  };
  const auto row = [](const char* name, double loss) { return fmt::format("{},run,,test.loss,last,{},0.1\r\n", name, loss); };
  const std::string absolute = row("none", 2.95) + row("sinusoid", 2.77) + row("\"learned(max_len=256)\"", 2.98),
                    relative = row("shaw", 1.82) + row("huang-m3", 1.9) + row("huang-m4", 1.8) + row("rope", 1.73);
  CHECK(check(absolute + relative + row("huang-m1", 2.08) + row("huang-m2", 1.89)).code == 0);
  const Outcome order = check(absolute + relative + row("huang-m1", 1.88) + row("huang-m2", 1.89));
  CHECK(order.code == 1);
  CHECK(has(order.err, "huang-m1 is not worse than huang-m2"));
  const Outcome worse = check(absolute + relative + row("huang-m1", 2.8) + row("huang-m2", 1.89));
  CHECK(worse.code == 1);
  CHECK(has(worse.err, "an absolute encoding is not worse than every relative one"));
  const Outcome missing = check(absolute + row("huang-m1", 2.08) + row("huang-m2", 1.89));
  CHECK(missing.code == 1);
  CHECK(has(missing.err, "the table has no loss of rope"));
}
