// waymark sweep CONFIG... --set KEY=A,B --seeds 0..4
#include <fmt/ranges.h>

#include <filesystem>

#include "nn/spec/suggest.h"
#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/plans/plan.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {

namespace {

SweepRequest sweep_request(const Arguments& arguments) {
  Problems problems = arguments.problems;
  const std::vector<std::string>& files = arguments.positionals();
  std::vector<Source> sources;
  SweepRequest request;
  request.plan = arguments.text("--plan");
  if (request.plan == "list") {
    // Only the plans are listed: a run that somebody hopes for would not come.
    if (!files.empty()) problems.push_back({"", fmt::format("unexpected argument {}: --plan list prints the plans", nn::printable(files.front()))});
    for (const char* option : {"--set", "--task", "--seeds", "--jobs", "--out", "--rerun", "--list", "--dry-run"})
      if (arguments.has(option)) problems.push_back({option, "has no effect: --plan list prints the plans"});
    if (!problems.empty()) throw ConfigError(std::move(problems));
    return request;
  }
  if (arguments.has("--seeds") && arguments.text("--seeds").empty())
    problems.push_back({"--seeds", "must be like 0..4 or 0,3,7, and is empty"});
  if (arguments.has("--plan")) {
    std::vector<std::string> names;
    for (const Plan& plan : all_plans()) names.push_back(plan.name);
    if (const Plan* plan = find_plan(request.plan))
      sources.push_back(read_toml_text(plan_toml(*plan), "plan " + plan->name, problems));
    else
      problems.push_back({"--plan", fmt::format("there is no plan {}; there are {}.{}", nn::printable(request.plan),
                                                fmt::join(names, ", "), nn::did_you_mean(request.plan, names))});
    if (sources.empty()) throw ConfigError(std::move(problems));
  }
  for (Source& source : read_files(files, problems)) sources.push_back(std::move(source));
  std::vector<Override> overrides = config_overrides(arguments, problems);
  // Every option may list several values here; paths and words of the program itself are one.
  for (Override& o : overrides) o.is_text = o.key == "data.dir" || o.key == "log.progress";
  request.cells = expand_sweep(sources, overrides, arguments.text("--seeds"), arguments.has("--strict"), problems);
  request.jobs = arguments.integer("--jobs", 1);
  if (request.jobs < 1 || request.jobs > 1024)
    problems.push_back({"--jobs", fmt::format("must be 1..1024, not {}", request.jobs)});
  const std::string stem = files.empty() ? request.plan.empty() ? "sweep" : request.plan : std::filesystem::path(files.front()).stem().string();
  request.out = arguments.has("--out") ? arguments.text("--out") : "sweeps/" + stem;
  if (const auto refusal = place_refusal(request.out)) problems.push_back({"--out", *refusal});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  request.rerun = arguments.text("--rerun");
  request.fail_fast = arguments.has("--fail-fast");
  request.list = arguments.has("--list") || arguments.has("--dry-run");
  request.quiet = arguments.has("--quiet");
  request.verbose = arguments.has("--verbose");
  request.command_line = arguments.command_line();
  return request;
}

}  // namespace

Command sweep_command(std::function<int(const SweepRequest&)> run) {
  Command command;
  command.name = "sweep";
  command.summary = "train every combination of values and seeds; run again, it does what is missing";
  command.positionals = {{"CONFIG", "TOML files; [sweep] in them says axes, cases and seeds", 0, -1}};
  command.options = config_options();
  const std::vector<OptionInfo> own = {
      {"--plan", "NAME", "an experiment of the program, or list; --set and files change it", ""},
      {"--seeds", "LIST", "seeds of every combination: 0..4, or 0,3,7", "those of the file"},
      {"-j,--jobs", "N", "runs at the same time; the threads are shared out", "1", ArgumentType::integer},
      {"--out", "DIR", "folder of the sweep", "sweeps/<file>"},
      {"--rerun", "WHICH", "runs to do again", "", ArgumentType::text, {"failed", "all"}},
      {"--fail-fast", "", "a failed run stops the others", ""},
      {"--strict", "", "pairs that the judge refuses are problems", ""},
      {"--list", "", "print the plan and stop; so does --dry-run", ""},
      {"--dry-run", "", "print the plan and stop", ""},
  };
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {
      "waymark sweep base.toml --set model.position=none,rope,'huang-m4(clip=8)' --seeds 0..2 -j 2 --out sweeps/a",
      "waymark sweep base.toml --list",
      "waymark sweep --plan signed-neighbour --set model.position=none,rope,'huang-m4(clip=8)' --seeds 0"};
  command.details =
      "Commas at top level separate values; commas inside brackets and quotes do not: a pattern of layers\n"
      "is written in quotes, --set 'model.position=\"[rope]*3, none\",rope'.\n"
      "A plan prints its table at the end, with what was measured before in brackets.\n";
  command.joins_problems = true;
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(sweep_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
