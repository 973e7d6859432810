// waymark train CONFIG...
#include <filesystem>

#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/config/resolve.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {

namespace {

TrainRequest train_request(const Arguments& arguments) {
  Problems problems = arguments.problems;
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
  std::optional<Config> config = resolve_config(sources, problems);
  // A run that goes on from a folder goes on in it, unless another one is named.
  const bool from_folder = request.resume && !request.resume->empty();
  if (arguments.has("--out"))
    request.out = arguments.text("--out");
  else if (from_folder)
    request.out = run_of(*request.resume).string();
  else if (config)
    request.out = "runs/" + config->name();
  request.force = arguments.has("--force");
  request.dry_run = arguments.has("--dry-run");
  // The folder is looked at now, so that its problems stand beside those of the config. Without a config the id of the
  // run is not known, and what depends on it is not asked.
  const bool forks = from_folder && run_of(*request.resume) != std::filesystem::path(request.out);
  if (arguments.has("--out") || from_folder || config) {
    const FolderUse use = request.force ? FolderUse::force : request.resume && !forks ? FolderUse::resume : FolderUse::fresh;
    if (const auto refusal = folder_refusal(request.out, look_at_run_folder(request.out), config ? config->id() : "", use))
      problems.push_back({"--out", *refusal});
  }
  if (from_folder)
    if (const auto refusal = resume_refusal(*request.resume)) problems.push_back({"--resume", *refusal});
  if (arguments.has("--check-causal"))
    problems.push_back({"--check-causal", "is for models that predict the next token; no task of this version trains one"});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  request.config = std::move(*config);
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
       "continue: from the newest checkpoint, of the run in this folder, or from this checkpoint",
       "",
       ArgumentType::text,
       {},
       false,
       true},
      {"--force", "", "start again in a folder that is in use", ""},
      {"--dry-run", "", "check the request without reading data, print what differs from the defaults, stop", ""},
      {"--check-causal", "", "a causal model on random tokens must not get below ln V - 0.01", "", ArgumentType::text, {}, false,
       false, 1, true},
  };
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {"waymark train --task 'char-mlm(source=kjv, context=64)' --position rope --steps 900",
                      "waymark train tiny.toml --position 'learned + huang-m4' --set model.embed_dim=128 --out runs/a",
                      "waymark train --resume runs/a"};
  command.joins_problems = true;
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(train_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
