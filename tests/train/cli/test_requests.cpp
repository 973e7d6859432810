// Requests of train, sweep and data: what the program hands to the code that does the work.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "tests/temporary_folder.h"
#include "train/cli/requests.h"

using namespace waymark;
using namespace waymark::train;
using namespace waymark::train::cli;
using Words = std::vector<std::string>;

namespace {

template <class Request> struct Called {
  std::optional<Request> request;
  std::string problems;
  bool has(const std::string& text) const { return problems.find(text) != std::string::npos; }
};

template <class Request> Called<Request> call(Command (*make)(std::function<int(const Request&)>), const Words& words) {
  Called<Request> called;
  const Command command = make([&](const Request& r) {
    called.request = r;
    return 0;
  });
  try {
    Problems problems;
    const Arguments arguments = parse_arguments(command, words, problems);
    if (!problems.empty()) throw ConfigError(std::move(problems));
    command.run(arguments);
  } catch (const ConfigError& e) { called.problems = e.what(); }
  CHECK(called.request.has_value() == called.problems.empty());
  return called;
}

const std::string kTask = "char-mlm(source=kjv, context=32)";

}  // namespace

TEST_CASE("train: files, options and their precedence") {
  test::TemporaryFolder folder;
  const std::string file = (folder / "a.toml").string(), later = (folder / "b.toml").string();
  std::ofstream(file) << "task = '" << kTask << "'\nseed = 4\n[train]\nsteps = 7\n[model]\nembed_dim = 32\n";
  std::ofstream(later) << "[train]\nsteps = 8\n";
  const auto c = call(train_command, {file, later, "--position", "huang-m4 + learned", "--seed", "5", "--set",
                                      "model.num_heads=2", "--threads", "2", "--progress", "none", "--dry-run", "-v"});
  REQUIRE(c.request);
  const Config& config = c.request->config;
  CHECK(config.integer("train.steps") == 8);
  CHECK(config.origin("train.steps") == later + ":2");
  CHECK(config.integer("seed") == 5);
  CHECK(config.origin("seed") == "--seed");
  CHECK(config.integer("model.head_dim") == 16);
  CHECK(config.short_form("model.position") == "learned(max_len=32) + huang-m4");
  CHECK(config.integer("run.threads") == 2);
  CHECK(c.request->out == "runs/" + config.name());
  CHECK(config.name().rfind("char-mlm-learned+huang-m4-dense-", 0) == 0);
  CHECK(c.request->dry_run);
  CHECK(c.request->verbose);
  CHECK_FALSE(c.request->resume.has_value());
  CHECK(c.request->command_line.rfind("waymark train " + file, 0) == 0);

  // A saved config resumes its run.
  std::ofstream(folder / "config.toml") << config.to_toml();
  const auto again = call(train_command, {"--resume", folder.path().string()});
  REQUIRE(again.request);
  CHECK(again.request->resume == folder.path().string());
  CHECK(again.request->config.id() == config.id());
}

TEST_CASE("train: all problems of files and options at once") {
  test::TemporaryFolder folder;
  const std::string file = (folder / "a.toml").string();
  std::ofstream(file) << "taks = 'x'\n[sweep]\nseeds = '0..1'\n";
  const auto c =
      call(train_command, {file, "missing.toml", "--task", "char-mlm(source=kjv, contxt=3)", "--position", "spe-sine",
                           "--set", "model.norm", "--force", "--resume", "--seed", "1", "--set", "seed=2"});
  CHECK(c.has("taks = \"x\": unknown key. Did you mean task?"));
  CHECK(c.has("missing.toml"));
  CHECK(c.has("[sweep] belongs to waymark sweep"));
  CHECK(c.has("unknown option contxt. Did you mean context?"));
  CHECK(c.has("the position encoding spe-sine is not part of this version"));
  CHECK(c.has("model.norm is not KEY=VALUE"));
  CHECK(c.has("--force"));
  CHECK(c.has("seed is given twice, by --seed and by --set"));
  CHECK(c.problems.rfind("8 problems", 0) == 0);
}

TEST_CASE("train: the judge and the sizes speak before anything is read") {
  CHECK(call(train_command, {"--task", kTask, "--position", "rope + huang-m3"}).has("redefines the content product"));
  CHECK(call(train_command, {"--task", kTask, "--position", "rope", "--set", "model.head_dim=5"})
            .has("needs an even number"));
  CHECK(call(train_command, {"--task", kTask, "--position", "learned(max_len=8)"}).has("learned has 8 rows"));
  CHECK(call(train_command, {"--task", kTask, "--position", "sinusoid, none"}).has("the same in every layer"));
  CHECK(call(train_command, {"--task", kTask, "--position", "[shaw]*1, rope"}).problems.empty());
}

TEST_CASE("sweep: several values in any option") {
  const auto c =
      call(sweep_command, {"--task", kTask, "--position", "none,huang-m4(clip=4, beyond=zero),\"[rope]*1, shaw\"",
                           "--set", "model.norm=pre,post", "--seeds", "0..1", "-j", "2", "--rerun", "failed"});
  REQUIRE(c.request);
  CHECK(c.request->cells.cells.size() == 12);
  CHECK(c.request->cells.cells[4].config.short_form("model.position") == "huang-m4(clip=4, beyond=zero)");
  CHECK(c.request->cells.cells[11].config.short_form("model.position") == "rope, shaw");
  CHECK(c.request->jobs == 2);
  CHECK(c.request->out == "sweeps/sweep");
  CHECK(c.request->rerun == "failed");
  const auto last = call(sweep_command, {"--task", kTask, "--position", "none,rope", "--set", "model.embed_dim=64,65"});
  CHECK(last.has("model.embed_dim = 65 is not divisible by model.num_heads = 4"));
  CHECK(call(sweep_command, {"--task", kTask, "--jobs", "0"}).has("--jobs"));
}

TEST_CASE("data: a task and data keys only") {
  const auto c = call(data_command, {"show", kTask, "--split", "val", "--item", "3", "--set", "data.seed=2"});
  REQUIRE(c.request);
  CHECK(c.request->action == "show");
  CHECK(c.request->item == 3);
  REQUIRE(c.request->config.has_value());
  CHECK(c.request->config->spec("task").integer("context") == 32);
  CHECK(c.request->config->integer("data.seed") == 2);
  CHECK_FALSE(call(data_command, {"list"}).request->config.has_value());
  CHECK(call(data_command, {"shwo", kTask}).has("Did you mean show?"));
  CHECK(call(data_command, {"info"}).has("TASK is missing"));
  CHECK(call(data_command, {"list", kTask}).has("takes no task"));
  CHECK(call(data_command, {"info", kTask, "--item", "3"}).has("--item"));
  CHECK(call(data_command, {"info", kTask, "--set", "model.norm=post"}).has("no effect on data"));
  CHECK(call(data_command, {}).has("ACTION is missing"));
}
