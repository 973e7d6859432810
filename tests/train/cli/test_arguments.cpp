// The arguments of a command: what is a value, what is a file, and all mistakes at once.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "train/cli/command.h"
#include "train/cli/requests.h"
#include "train/cli/text_layout.h"

using namespace waymark;
using namespace waymark::train;
using namespace waymark::train::cli;
using Words = std::vector<std::string>;

namespace {

Command sample() {
  Command c;
  c.name = "sample";
  c.summary = "a test";
  c.positionals = {{"CONFIG", "files", 0, -1}};
  c.options = {{"--set", "KEY=VALUE", "a key", "", ArgumentType::text, {}, true},
               {"-j,--jobs", "N", "jobs", "1", ArgumentType::integer},
               {"--rate", "X", "a number", "", ArgumentType::real},
               {"--format", "NAME", "how", "md", ArgumentType::text, {"md", "csv"}},
               {"--compare", "A B", "two rows", "", ArgumentType::text, {}, false, false, 2},
               {"--resume", "[PATH]", "continue", "", ArgumentType::text, {}, false, true},
               {"--force", "", "again", ""}};
  c.examples = {"waymark sample a.toml"};
  return c;
}
struct Parsed {
  Arguments arguments;
  Problems problems;
  std::string text() const {
    std::string out;
    for (const Problem& p : problems) out += p.origin + "|" + p.text + "\n";
    return out;
  }
};
Parsed parse(const Words& words, const Command& command = sample()) {
  Parsed p;
  p.arguments = parse_arguments(command, words, p.problems);
  return p;
}
Arguments good(const Words& words) {
  const Parsed p = parse(words);
  INFO(p.text());
  REQUIRE(p.problems.empty());
  return p.arguments;
}

}  // namespace

TEST_CASE("options take their own values and leave the files alone") {
  const Arguments a = good({"a.toml", "--set", "x=1", "b.toml", "--set=y=[1,2]", "-j", "3", "--force", "--rate=-0.5"});
  CHECK(a.positionals() == Words{"a.toml", "b.toml"});
  CHECK(a.all("--set") == Words{"x=1", "y=[1,2]"});
  CHECK(a.integer("--jobs") == 3);
  CHECK(a.real("--rate") == -0.5);
  CHECK(a.has("--force"));
  CHECK_FALSE(a.has("--format"));
  CHECK(good({"-j4"}).integer("--jobs") == 4);
  CHECK(good({"--set", "[dense]*2, \"a\""}).all("--set") ==
        Words{"[dense]*2, \"a\""});  // brackets are no list of CLI11's
  CHECK(good({"--set", "[a,b]"}).all("--set") == Words{"[a,b]"});
  CHECK(good({"--set", ""}).all("--set") == Words{""});
  CHECK(good({"--compare", "rope", "huang-m4", "a.toml"}).all("--compare") == Words{"rope", "huang-m4"});
  CHECK(good({"--", "--odd.toml"}).positionals() == Words{"--odd.toml"});
}

TEST_CASE("--resume takes a folder, but neither an option nor a config") {
  CHECK_FALSE(good({"a.toml"}).has("--resume"));
  CHECK(good({"a.toml", "--resume"}).text("--resume").empty());
  CHECK(good({"a.toml", "--resume"}).has("--resume"));
  CHECK(good({"--resume", "runs/a"}).text("--resume") == "runs/a");
  CHECK(good({"--resume=runs/a", "a.toml"}).text("--resume") == "runs/a");
  const Arguments a = good({"--resume", "a.toml", "--force"});
  CHECK(a.text("--resume").empty());
  CHECK(a.positionals() == Words{"a.toml"});
  CHECK(good({"--resume", "--force"}).has("--force"));
}

TEST_CASE("mistakes are told together, with what would be right") {
  CHECK(parse({"--jbos", "3", "--format", "cvs", "--jobs", "x", "--rate", "fast"}).text() ==
        "|unknown option --jbos. Did you mean --jobs? See waymark sample --help.\n"
        "--format|must be md | csv, not cvs. Did you mean csv?\n"
        "--jobs|must be an int, not x\n"
        "--rate|must be a number, not fast\n");
  CHECK(parse({"--set"}).text() == "|--set needs a value: --set KEY=VALUE\n");
  CHECK(parse({"--compare", "a"}).text() == "|--compare needs 2 values: --compare A B\n");
  CHECK(parse({"--jobs", "1", "--jobs", "2"}).text() == "--jobs|given 2 times\n");
  CHECK(parse({"--jobs", "1.5"}).text() == "--jobs|must be an int, not 1.5\n");
  CHECK(parse({"--jobs", "99999999999999999999"}).text() == "--jobs|99999999999999999999 is out of range: an int has at most 63 bits\n");
  CHECK(parse({"--threads", "many"}).text() == "--threads|must be an int or auto, not many\n");
  CHECK(parse({"--threads", "auto"}).text().empty());
  Command strict = sample();
  strict.positionals = {{"RUN", "a folder", 1, 1}};
  CHECK(parse({}, strict).text() == "|RUN is missing: a folder\n");
  CHECK(parse({"a", "b", "c"}, strict).text() == "|unexpected argument b\n|unexpected argument c\n");
  CHECK(parse({"--setx", "b"}, strict).text() ==
        "|unknown option --setx. Did you mean --set? See waymark sample --help.\n");
}

TEST_CASE("the call is kept so that it can be pasted") {
  CHECK(good({"a.toml", "--set", "model.position=t5(buckets=32)", "--set", "name=it's", "--set", ""}).command_line() ==
        "waymark sample a.toml --set 'model.position=t5(buckets=32)' --set 'name=it'\\''s' --set ''");
}

TEST_CASE("help is made from the table") {
  const std::string help = command_help(sample());
  CHECK(help.find("Usage: waymark sample [CONFIG...] [OPTIONS]\n") != std::string::npos);
  CHECK(help.find("  -j, --jobs N     jobs (int) [1]\n") != std::string::npos);
  CHECK(help.find("  --format NAME    how (md | csv) [md]\n") != std::string::npos);
  CHECK(help.find("  --set KEY=VALUE  a key; may be repeated\n") != std::string::npos);
  CHECK(help.find("--threads N") != std::string::npos);
  CHECK(help.find("  waymark sample a.toml\n") != std::string::npos);
  for (const Command& command : commands()) {
    CAPTURE(command.name);
    CHECK_FALSE(command.examples.empty());
    CHECK_FALSE(command.summary.empty());
    for (const OptionInfo& option : command.options) CHECK_FALSE(option.doc.empty());
  }
}

TEST_CASE("two columns") {
  CHECK(columns({{"a", "one two"}, {"longer", "three four five"}}, 20) ==
        "  a       one two\n"
        "  longer  three four\n"
        "          five\n");
  CHECK(columns({{"x", ""}, {std::string(40, 'y'), "z"}}) == "  x\n  " + std::string(40, 'y') + "\n     z\n");
}

TEST_CASE("eval may set data and run keys only") {
  EvalRequest seen;
  const Command command = eval_command([&](const EvalRequest& r) {
    seen = r;
    return 5;
  });
  auto call = [&](const Words& words) {
    Problems problems;
    const Arguments arguments = parse_arguments(command, words, problems);
    REQUIRE(problems.empty());
    return command.run(arguments);
  };
  CHECK(call({"runs/a", "--which", "step-12", "--lengths", "64,256", "--draws", "3", "--seed", "4", "--set",
              "data.seed=3"}) == 5);
  CHECK(seen.target == "runs/a");
  CHECK(seen.which == "step-12");
  CHECK(seen.lengths == std::vector<i64>{64, 256});
  CHECK(seen.draws == 3);
  CHECK(seen.seed == 4);
  REQUIRE(seen.settings.size() == 1);
  try {
    call({"runs/a", "--which", "step-", "--lengths", "64,x", "--draws", "0", "--set", "model.embed_dim=3", "--set",
          "data.sead=3"});
    FAIL("no error");
  } catch (const ConfigError& e) {
    CHECK(std::string(e.what()) ==
          "5 problems, nothing was read or written\n"
          "  --which    must be last, best or step-N, not step-\n"
          "  --lengths  must be lengths >= 1 with commas between, as 64,256, not 64,x\n"
          "  --draws    must be 1..1000, not 0\n"
          "  --set      model.embed_dim belongs to the trained model: only data.*, train.eval_batches and run.* may be "
          "set\n"
          "  --set      data.sead: unknown key. Did you mean data.seed?");
  }
}
