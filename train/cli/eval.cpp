// waymark eval RUN|CHECKPOINT
#include "nn/spec/suggest.h"
#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/config/keys.h"

namespace waymark::train::cli {

namespace {

EvalRequest eval_request(const Arguments& arguments) {
  Problems problems = arguments.problems;
  EvalRequest request;
  if (!arguments.positionals().empty()) request.target = arguments.positionals().front();
  if (arguments.has("--which")) request.which = arguments.text("--which");
  if (!names_checkpoint(request.which))
    problems.push_back({"--which", fmt::format("must be last, best or step-N, not {}", nn::printable(request.which))});
  if (arguments.has("--split")) request.split = arguments.text("--split");
  if (arguments.has("--lengths")) request.lengths = parse_lengths(arguments.text("--lengths"), "--lengths", problems);
  request.draws = arguments.integer("--draws", 1);
  if (request.draws < 1 || request.draws > 1000) problems.push_back({"--draws", fmt::format("must be 1..1000, not {}", request.draws)});
  if (arguments.has("--seed")) {
    request.seed = arguments.integer("--seed");
    if (*request.seed < 0) problems.push_back({"--seed", fmt::format("must be >= 0, not {}", *request.seed)});
  }
  for (const std::string& setting : arguments.all("--set")) {
    Override o;
    if (!split_setting(setting, "--set", o, problems)) continue;
    const bool allowed = o.key.rfind("data.", 0) == 0 || o.key.rfind("run.", 0) == 0 || o.key == "train.eval_batches";
    if (!find_key(o.key))
      problems.push_back({"--set", fmt::format("{}: unknown key.{}", nn::printable(o.key), suggest_key(o.key))});
    else if (!allowed)
      problems.push_back(
          {"--set", fmt::format("{} belongs to the trained model: only data.*, train.eval_batches and run.* "
                                "may be set",
                                o.key)});
    request.settings.push_back(std::move(o));
  }
  if (arguments.has("--data-dir"))
    request.settings.push_back({"data.dir", arguments.text("--data-dir"), "--data-dir", true});
  if (arguments.has("--threads") && !arguments.is_bad("--threads"))
    request.settings.push_back({"run.threads", arguments.text("--threads"), "--threads", false});
  request.quiet = arguments.has("--quiet");
  request.verbose = arguments.has("--verbose");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return request;
}

}  // namespace

Command eval_command(std::function<int(const EvalRequest&)> run) {
  Command command;
  command.name = "eval";
  command.summary = "measure a trained model again, on other data or lengths";
  command.positionals = {{"RUN", "folder of a run or of a checkpoint", 1, 1}};
  command.options = {
      {"--which", "NAME", "checkpoint of the run: last, best or step-N", "last"},
      {"--split", "NAME", "test, val, or an extra test set of the task", "test"},
      {"--lengths", "LIST", "further test lengths: 64,256", ""},
      {"--draws", "K", "repeat with K seeds of frozen noise", "1", ArgumentType::integer},
      {"--seed", "N", "seed of frozen noise", "that of the run", ArgumentType::integer},
      {"--data-dir", "DIR", "where data files are looked for first", ""},
      {"--set", "KEY=VALUE", "data.*, train.eval_batches and run.* only", "", ArgumentType::text, {}, true},
  };
  command.examples = {"waymark eval runs/a --which best --lengths 128,256",
                      "waymark eval runs/a/checkpoints/step-00001200 --split val"};
  command.joins_problems = true;
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(eval_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
