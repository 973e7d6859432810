// waymark step CONFIG
#include <fmt/format.h>

#include <filesystem>

#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/config/resolve.h"

namespace waymark::train::cli {

namespace {

StepRequest step_request(const Arguments& arguments) {
  namespace fs = std::filesystem;
  Problems problems;
  std::vector<std::string> files = arguments.positionals();
  StepRequest request;
  if (arguments.has("--from")) {
    request.from = checkpoint_folder(arguments.text("--from"), "last", "--from");
    // A checkpoint says all there is to know.
    if (files.empty()) files.push_back((fs::path(request.from) / "config.toml").string());
  }
  if (arguments.has("--batch")) {
    request.batch = arguments.integer("--batch");
    constexpr i64 kMost = (i64{1} << 32) - 1;  // as many draws as a random stream has
    if (*request.batch < 0 || *request.batch > kMost)
      problems.push_back({"--batch", fmt::format("must be 0 to {}, not {}: the number of a training step", kMost, *request.batch)});
  }
  request.script = arguments.text("--script");
  if (!request.script.empty() && !fs::is_regular_file(request.script)) problems.push_back({"--script", request.script + ": no such file"});
  std::vector<Source> sources = read_files(files, problems);
  for (size_t i = 0; i < sources.size(); ++i)
    if (sources[i].sweep.present) problems.push_back({files[i], "[sweep] belongs to waymark sweep, not to waymark step"});
  sources.push_back(command_line_source(config_overrides(arguments, problems), problems));
  request.config = resolve_or_throw(sources, std::move(problems));
  request.quiet = arguments.has("--quiet");
  return request;
}

}  // namespace

Command step_command(std::function<int(const StepRequest&)> run) {
  Command command;
  command.name = "step";
  command.summary = "walk the backward pass of one training batch, node by node";
  command.positionals = {{"CONFIG", "TOML files; a later one wins", 0, -1}};
  command.options = config_options();
  std::erase_if(command.options, [](const OptionInfo& o) { return o.name == "--progress"; });
  const std::vector<OptionInfo> own = {
      {"--from", "CHECKPOINT", "weights from the folder of a checkpoint, or of a run (its last one)", "initial weights"},
      {"--batch", "N", "the batch of training step N, counted from 0", "0, or the checkpoint's step", ArgumentType::integer},
      {"--script", "FILE", "run the commands of a file; exit with 1 at the first that fails", ""},
  };
  command.options.insert(command.options.end(), own.begin(), own.end());
  command.examples = {"waymark step --task 'char-mlm(source=kjv, context=64)' --position huang-m4",
                      "waymark step runs/a/config.toml --from runs/a --batch 300",
                      "printf 'until masked_softmax\\nstep\\ncheck\\n' | waymark step tiny.toml"};
  command.details =
      "Commands, from a terminal, a pipe or a script (help in it lists all):\n"
      "  step, or Enter    one node               back          one node back, by replay\n"
      "  next, finish      a whole module         until X       an op, scope, tensor, #seq, norm>X\n"
      "  card, in, out     the current node       print T       values: head.weight, grad(head.weight)\n"
      "  why T             where a gradient comes from\n"
      "  check             finite differences against the rule of this node; check all\n"
      "  tree, bytes       modules; what is kept for backward\n"
      "  expect A < B      fail unless it holds   quit\n";
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(step_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
