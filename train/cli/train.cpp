// waymark train CONFIG...
#include <filesystem>

#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/config/resolve.h"

namespace waymark::train::cli {

namespace {

TrainRequest request_of(const Arguments& arguments) {
  Problems problems;
  std::vector<std::string> files = arguments.positionals();
  TrainRequest request;
  if (arguments.has("--resume")) {
    request.resume = arguments.text("--resume");
    // A folder says all there is to know.
    if (files.empty() && !request.resume->empty())
      files.push_back((std::filesystem::path(*request.resume) / "config.toml").string());
  }
  if (request.resume && arguments.has("--force"))
    problems.push_back({"--force", "starts again, but --resume continues: give one of them"});
  std::vector<Source> sources = read_files(files, problems);
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].sweep.present)
      problems.push_back({files[i], "[sweep] belongs to waymark sweep, not to waymark train"});
  sources.push_back(command_line_source(config_overrides(arguments, problems), problems));
  request.config = resolve_or_throw(sources, std::move(problems));
  request.out = arguments.has("--out") ? arguments.text("--out") : "runs/" + request.config.name();
  request.force = arguments.has("--force");
  request.dry_run = arguments.has("--dry-run");
  request.check_causal = arguments.has("--check-causal");
  request.quiet = arguments.has("--quiet");
  request.verbose = arguments.has("--verbose");
  request.command_line = arguments.command_line();
  return request;
}

}  // namespace

Command train_command(std::function<int(const TrainRequest&)> run) {
  Command command;
  command.name = "train";
  command.summary = "train one model and measure it";
  command.positionals = {{"CONFIG", "TOML files; a later one wins", 0, -1}};
  command.options = config_options();
  const std::vector<OptionInfo> own = {
      {"--out", "DIR", "folder of the run", "runs/<name>"},
      {"--resume",
       "[PATH]",
       "continue from the newest checkpoint of the run, or from this folder",
       "",
       ArgumentType::text,
       {},
       false,
       true},
      {"--force", "", "start again in a folder that is in use", ""},
      {"--dry-run", "", "check the request, print the resolved config, stop", ""},
      {"--check-causal", "", "a causal model on random tokens must not get below ln V - 0.01", ""},
  };
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {"waymark train --task 'char-mlm(source=kjv, context=64)' --position rope --steps 900",
                      "waymark train tiny.toml --position 'learned + huang-m4' --set model.embed_dim=128 --out runs/a",
                      "waymark train runs/a/config.toml --out runs/a --resume"};
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(request_of(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
