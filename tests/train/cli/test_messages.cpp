// What the program says to a wrong request: all of it, on stderr, with exit code 2, and in words that help.
#include <doctest/doctest.h>

#include <fstream>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"
#include "tests/train/cli/small_run.h"
#include "train/config/resolve.h"

using namespace waymark;
using namespace waymark::test;

using Words = std::vector<std::string>;

namespace {

// stderr of a request that must be refused without a word on stdout.
std::string refused(const Words& words) {
  const Outcome o = run_waymark(words);
  INFO(o.err);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  return o.err;
}
Words dry_run(Words more) {
  more.insert(more.begin(), {"train", "--dry-run", "--task", "char-mlm(source=kjv)"});
  return more;
}
// Texts of all problems of a TOML file, one a line.
std::string file_problems(const std::string& text, const train::Settings& settings = {}) {
  train::Problems problems;
  std::vector<train::Source> sources{train::read_toml_text(text, "a.toml", problems)};
  std::vector<train::Override> overrides;
  for (const auto& [key, value] : settings) overrides.push_back({key, value, "--set", false});
  sources.push_back(train::command_line_source(overrides, problems));
  (void)train::resolve_config(sources, problems);
  std::string out;
  for (const train::Problem& p : problems) out += p.origin + "|" + p.text + "\n";
  return out;
}
const std::string kTaskLine = "task = \"char-mlm(source=kjv)\"\n";

}  // namespace

TEST_CASE("options of every command may stand before it") {
  const std::string help = run_waymark({"help"}).out;
  CHECK(run_waymark({"--threads", "2", "help"}).out == help);
  CHECK(run_waymark({"--color=never", "-q", "help"}).out == help);
  CHECK(has(refused({"--threads", "0", "help"}), "--threads  must be 1..4096 or auto, not 0"));
  CHECK(has(refused({"--threads", "2", "help", "--threads", "3"}), "--threads  given 2 times"));
  CHECK(has(refused({"--thread", "2"}), "unknown option --thread. Did you mean --threads?"));
  CHECK(has(refused({"--quiet"}), "a command is missing"));
  CHECK(has(refused({"--threads"}), "a command is missing"));
}

TEST_CASE("--version takes nothing, --help a topic") {
  CHECK(has(refused({"--version", "x"}), "unexpected argument x"));
  CHECK(run_waymark({"-v", "--version"}).out == run_waymark({"--version"}).out);
  CHECK(run_waymark({"--help", "rope"}).out == run_waymark({"help", "rope"}).out);
  CHECK(has(refused({"--help", "roep"}), "Did you mean rope"));
}

TEST_CASE("a file that verify cannot use is no result") {
  CHECK(has(refused({"verify", "/no/such/file"}), "/no/such/file: cannot be used"));
  CHECK(has(refused({"verify", "/no/such/file", "--rtol", "nan"}), "--rtol  must be a finite number >= 0, not nan"));
}

TEST_CASE("numbers that do not fit are out of range, not of the wrong type") {
  const std::string big = "99999999999999999999";
  CHECK(has(refused(dry_run({"--seed", big})), "--seed  99999999999999999999 is out of range"));
  CHECK(has(refused({"table", ".", "--ci", "--jobs", big}), "unknown option --jobs"));
  CHECK(has(refused({"sweep", "-j", big}), "--jobs  99999999999999999999 is out of range"));
  CHECK(has(refused({"explain", "--lengths", big}), "out of range"));
  CHECK(has(refused({"verify", "x", "--rtol", "1e999"}), "--rtol  1e999 is out of range"));
  CHECK(has(refused(dry_run({"--set", "seed=" + big})), "out of range"));
  CHECK(has(file_problems(kTaskLine + "seed = " + big), "not representable in 64 bits"));
  CHECK(has(refused(dry_run({"--position", "learned(max_len=" + big + ")"})), "does not fit into 64 bits"));
  CHECK(has(refused({"data", "show", "char-mlm(source=kjv)", "--item", big}), "--item  99999999999999999999 is out of range"));
}

TEST_CASE("mistakes of the arguments stand beside those of the config") {
  const std::string text = refused({"train", "--seed", "abc", "--positon", "rope", "--set", "model.num_head=3"});
  CHECK(has(text, "4 problems"));
  CHECK(has(text, "--seed  must be an int, not abc"));
  CHECK(has(text, "unknown option --positon. Did you mean --position?"));
  CHECK(has(text, "Did you mean model.num_heads?"));
  CHECK(has(text, "task must be given"));
  CHECK(has(refused({"sweep", "--seed", "x", "-j", "y"}), "3 problems"));
  CHECK(has(refused({"explain", "--position", "roep", "--threads", "0"}), "2 problems"));
  CHECK(has(refused({"table", "--format", "pdf", "--rows", "modle", "."}), "2 problems"));
  CHECK(has(refused({"eval", ".", "--which", "x", "--draws", "y"}), "2 problems"));
  CHECK(has(refused({"data", "info", "char-mml", "--split", "x"}), "2 problems"));
  // A word behind an unknown option is its value; a config file is a config file.
  CHECK(has(refused(dry_run({"--bogus", "rope"})), "1 problem,"));
  CHECK(has(refused(dry_run({"--bogus", "no.toml"})), "no.toml"));
}

TEST_CASE("what is wrong with the folder stands beside what is wrong with the config") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  std::ofstream(folder / "file.toml") << "";
  const std::string text = refused({"train", "--steps", "0", "--out", (folder / "file").string(), "--check-causal"});
  CHECK(has(text, "4 problems"));
  CHECK(has(text, "is no folder"));
  CHECK(has(text, "--check-causal"));
  CHECK(has(text, "train.steps = 0"));
  CHECK(has(refused({"train", "--out", folder.path().string()}), "is no run's folder"));
  CHECK(has(refused({"train", "--out", (folder / "none").string(), "--resume"}), "no run to resume"));
  CHECK(has(refused({"train", "--resume", (folder / "none").string(), (folder / "file.toml").string()}), "there is no"));
  CHECK(has(refused(dry_run({"--out", ""})), "--out  must name a folder"));
  CHECK(has(refused({"sweep", "--steps", "0", "--out", (folder / "file").string()}), "is no folder"));
}

TEST_CASE("a table where a value belongs, and the other way round") {
  CHECK(file_problems(kTaskLine + "[[train]]\nsteps = 3") ==
        "a.toml:2|[[train]] is an array of tables, but train must be one table: [train]\n");
  CHECK(file_problems(kTaskLine + "train = 5") == "a.toml:2|train must be a table: [train]\n");
  CHECK(file_problems(kTaskLine + "model = [1]") == "a.toml:2|model must be a table: [model]\n");
  CHECK(has(file_problems(kTaskLine + "[[sweep]]\nseeds = 3"), "sweep must be a table: [sweep]"));
  CHECK(has(file_problems(kTaskLine + "[model.embed_dim]\nx = 1"), "model.embed_dim = {...}: must be int"));
  CHECK(has(file_problems("[task]\nname = \"char-mlm\""), "task = {...}: must be text, not a table"));
  CHECK(has(file_problems(kTaskLine + "[optim.groups]\nmatch = \"*\""), "must be a list of tables"));
  CHECK(file_problems(kTaskLine + "[train]\n[model]") == "");
}

TEST_CASE("messages show what was written") {
  CHECK(has(file_problems(kTaskLine + "seed = 1979-05-27"), "seed = 1979-05-27: must be int"));
  CHECK(has(file_problems(kTaskLine + "seed = 07:32:00"), "seed = 07:32:00: must be int"));
  CHECK(has(file_problems(kTaskLine + "seed = 1979-05-27T07:32:00Z"), "seed = 1979-05-27T07:32:00Z: must be int"));
  CHECK(has(refused(dry_run({"--set", "seed=1979-05-27"})), "seed = 1979-05-27: must be int"));
  CHECK(has(file_problems(kTaskLine + "[optim]\nno_decay = [1979-05-27]"), "1979-05-27"));
  CHECK(has(file_problems(kTaskLine + "\"\" = 3"), "\"\" = 3: unknown key"));
  CHECK(has(file_problems(kTaskLine + "[model]\n\"\" = 3"), "model.\"\" = 3: unknown key"));
  CHECK(has(file_problems(kTaskLine + "[optim]\ngroups = [{match = \"*\", \"\" = 3}]"), "unknown option \"\""));
  CHECK(has(refused({"eval", ".", "--which", ""}), "must be last, best or step-N, not \"\""));
  CHECK(has(refused({"help", ""}), "there is no help on \"\""));
  CHECK(has(refused({""}), "unknown command \"\""));
}

TEST_CASE("a mistake counts also where a later source replaces it") {
  const train::Settings later = {{"task", "char-mlm(source=kjv)"}, {"model.embed_dim", "64"}, {"model.position", "rope"},
                                 {"optim.optimizer", "sgd(lr=1)"}, {"train.steps", "10"}};
  CHECK(file_problems("task = 5\n", later) == "a.toml:1|task = 5: must be text, as in task = \"offset-copy\"\n");
  CHECK(has(file_problems("model.embed_dim = \"64\"\n", later), "a.toml:1|model.embed_dim = \"64\": must be int"));
  CHECK(has(file_problems("model.embed_dim = 0\n", later), "must be int 1..1048576"));
  CHECK(has(file_problems("model.position = \"roep\"\n", later), "a.toml:1|model.position: unknown position encoding roep"));
  CHECK(has(file_problems("optim.optimizer = \"adamw(lr=x)\"\n", later), "a.toml:1|optim.optimizer: "));
  CHECK(has(file_problems("train.epochs = \"many\"\n", later), "a.toml:1|train.epochs = \"many\""));
  // What is right by itself is no mistake, even if it would not go with the rest.
  CHECK(file_problems("model.embed_dim = 63\nmodel.position = \"[rope]*7\"\ntrain.epochs = 3\n", later) == "");
}

TEST_CASE("data: one mistake, one message") {
  const std::string list = refused({"data", "list", "x"});
  CHECK(has(list, "1 problem,"));
  CHECK(has(list, "waymark data list takes no task"));
  const std::string bare = refused({"data"});
  CHECK(has(bare, "1 problem,"));
  CHECK(has(bare, "ACTION is missing"));
  CHECK(has(refused({"data", "info"}), "TASK is missing"));
  CHECK(has(refused({"data", "list", "--set", "data.seed=1"}), "--set  has no effect in waymark data list"));
  CHECK(has(refused({"data", "show", "char-mlm(source=kjv)", "--item", "-1"}), "--item  must be >= 0, not -1"));
}

TEST_CASE("data: an item that is not there is a wrong request, also in a stream without end") {
  const waymark::test::SmallRun folder;
  const std::string task = "char-mlm(path=\"" + folder.text() + "\", context=16)";
  CHECK(has(refused({"data", "show", task, "--item", "99999999999"}),
            "--item  99999999999 is out of range: train has the items 0 to 4294967295"));
  CHECK(has(refused({"data", "show", task, "--split", "val", "--item", "30"}), "30 is out of range: val has the items 0 to 2"));
  CHECK(run_waymark({"data", "show", task, "--item", "4294967295"}).code == 0);
  CHECK(has(file_problems("data.train_size = 99999999999\n" + kTaskLine), "must be int 0..4294967296"));
}

TEST_CASE("distances that an encoding refuses are told before anything runs") {
  const std::string task = "task = \"char-mlm(source=kjv, context=16, test_lengths=[32])\"\nmodel.position = ";
  CHECK(file_problems(task + "\"shaw(clip=3, beyond=error)\"") ==
        "a.toml:2|shaw refuses pairs farther apart than clip = 3, but the task has pairs 31 apart: write clip=31, or "
        "beyond=clip or zero\n");
  CHECK(file_problems(task + "\"shaw(clip=31, beyond=error)\"") == "");
  CHECK(file_problems(task + "\"shaw(clip=3, beyond=zero)\"") == "");
}

TEST_CASE("a glob that fits no parameter") {
  const std::string groups = file_problems("optim.groups = [{match = \"*.bais\", lr_scale = 2}, {match = \"*\"}, "
                                           "{match = \"head.*\", freeze = true}]\noptim.no_decay = [\"*.biass\"]\n" + kTaskLine);
  CHECK(has(groups, "a.toml:1|optim.groups[0]: match = *.bais matches no parameter. There are token_embedding.weight, "));
  CHECK(has(groups, "a.toml:1|optim.groups[2]: match = head.* matches only what an earlier group has already\n"));
  CHECK(has(groups, "a.toml:2|optim.no_decay: *.biass matches no parameter"));
  CHECK(file_problems("optim.groups = [{match = \"*.attention.position.*\", lr_scale = 2}]\noptim.no_decay = [\"*.bias\"]\n"
                      "model.position = \"none, huang-m4\"\n" + kTaskLine) == "");
  CHECK(has(file_problems("optim.groups = [{match = \"*.attention.position.*\", lr_scale = 2}]\n" + kTaskLine), "matches no parameter"));
}
