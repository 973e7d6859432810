// waymark data list | info TASK | stats TASK | show TASK | check TASK
#include <algorithm>

#include "nn/spec/suggest.h"
#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/config/resolve.h"

namespace waymark::train::cli {

namespace {

const std::vector<std::string> kActions = {"list", "info", "stats", "show", "check"};

DataRequest data_request(const Arguments& arguments) {
  Problems problems = arguments.problems;
  DataRequest request;
  const auto& words = arguments.positionals();
  if (words.empty()) throw ConfigError(std::move(problems));  // that the action is missing is among them
  request.action = words[0];
  if (std::find(kActions.begin(), kActions.end(), request.action) == kActions.end()) {
    problems.push_back({"", fmt::format("unknown action {}.{} See waymark data --help.", nn::printable(request.action),
                                        nn::did_you_mean(request.action, kActions))});
    throw ConfigError(std::move(problems));
  }
  const bool list = request.action == "list";
  if (!list && words.size() < 2)
    problems.push_back({"", fmt::format("TASK is missing: waymark data {} TASK", request.action)});
  if (list && words.size() > 1) problems.push_back({"", "waymark data list takes no task"});
  auto only = [&](const char* option, std::initializer_list<const char*> actions) {
    if (arguments.has(option) && std::find(actions.begin(), actions.end(), request.action) == actions.end())
      problems.push_back({option, fmt::format("has no effect in waymark data {}", request.action)});
  };
  only("--split", {"show"});
  only("--item", {"show"});
  for (const char* option : {"--data-dir", "--set"}) only(option, {"info", "stats", "show", "check"});
  if (arguments.has("--split")) request.split = arguments.text("--split");
  request.item = arguments.integer("--item");
  if (request.item < 0) problems.push_back({"--item", fmt::format("must be >= 0, not {}", request.item)});
  if (!list && words.size() > 1) {
    std::vector<Override> overrides = config_overrides(arguments, problems);
    overrides.insert(overrides.begin(), {"task", words[1], "TASK", true});
    for (const Override& o : overrides)
      if (o.key != "task" && o.key.rfind("data.", 0) != 0 && o.key != "run.threads")
        problems.push_back({o.origin, fmt::format("{} has no effect on data", nn::printable(o.key))});
    const Source source = command_line_source(overrides, problems);
    request.config = resolve_config({source}, problems);
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return request;
}

}  // namespace

Command data_command(std::function<int(const DataRequest&)> run) {
  Command command;
  command.name = "data";
  command.summary = "look at the data of a task and check it";
  command.positionals = {{"ACTION", "list, info, stats, show or check", 1, 1},
                         {"TASK", "spec of a task: help tasks", 0, 1}};
  command.options = {
      {"--split", "NAME", "of the item to show: train, val, test or an extra test set", "train"},
      {"--item", "N", "which item to show", "0", ArgumentType::integer},
      {"--data-dir", "DIR", "where data files are looked for first", ""},
      {"--set", "KEY=VALUE", "data.* only", "", ArgumentType::text, {}, true},
  };
  command.examples = {"waymark data list", "waymark data stats 'char-mlm(source=kjv, context=64)'",
                      "waymark data show 'char-mlm(source=kjv, context=64)' --split val --item 3"};
  command.joins_problems = true;
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(data_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
