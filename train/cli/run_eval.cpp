// What waymark eval does: a trained model is measured again. Never changes the run's result.json.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "core/io/files.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/config/hash.h"
#include "train/config/resolve.h"
#include "train/report/json.h"
#include "train/tasks/registry.h"
#include "train/trainer/checkpoint.h"
#include "train/trainer/evaluate.h"
#include "train/trainer/process_settings.h"

namespace waymark::train::cli {
namespace {

namespace fs = std::filesystem;

// The config of the checkpoint with what may be changed, and further test lengths in its task.
Config config_of(const fs::path& checkpoint, const CheckpointContents& contents, const EvalRequest& request) {
  Problems problems;
  std::vector<Source> sources{read_toml_text(contents.config, (checkpoint / "config.toml").string(), problems)};
  Config config = resolve_or_throw(sources, problems);
  std::vector<Override> overrides = request.settings;
  if (!request.lengths.empty()) {
    const nn::Options& task = config.spec("task");
    if (!task.has("test_lengths")) refuse("--lengths", fmt::format("the task {} has no further test lengths", task.name()));
    const nn::Spec spec = nn::parse_spec(task.canonical());
    std::vector<i64> lengths = task.integers("test_lengths");
    for (i64 n : request.lengths)
      if (std::find(lengths.begin(), lengths.end(), n) == lengths.end()) lengths.push_back(n);
    const std::string text = fmt::format("[{}]", fmt::join(lengths, ","));
    std::string written = spec.name + "(";
    for (const nn::SpecArg& a : spec.args)
      written += fmt::format("{}{}={}", written.back() == '(' ? "" : ", ", a.key, a.key == "test_lengths" ? text : nn::value_text(a.value));
    overrides.push_back({"task", written + ")", "--lengths", true});
    // The width of learned tables belongs to the trained model, not to the longest test.
    overrides.push_back({"model.max_len", config.canonical("model.max_len"), "--lengths", false});
  }
  sources.push_back(command_line_source(overrides, problems));
  return resolve_or_throw(sources, std::move(problems));
}

}  // namespace

int run_eval(const EvalRequest& request) {
  if (request.draws > 1) refuse("--draws", "nothing in these models draws frozen noise, so draws would all be equal");
  if (request.seed) refuse("--seed", "nothing in these models draws frozen noise, so a seed has no effect");
  const fs::path checkpoint = checkpoint_folder(request.target, request.which, "--which");
  const CheckpointContents contents = load_checkpoint(checkpoint, CheckpointPart::weights);
  const Config config = config_of(checkpoint, contents, request);
  const std::unique_ptr<Task> task = make_task(task_request(config));

  std::vector<std::string> splits{request.split};
  for (i64 n : request.lengths) {
    std::string name = fmt::format("test@{}", n);
    // Some tasks have no second set of the length of `test`.
    if (!task->has_split(name) && task->has_split("test") && task->split("test").length == n) name = "test";
    if (std::find(splits.begin(), splits.end(), name) == splits.end()) splits.push_back(std::move(name));
  }
  for (const std::string& split : splits)
    if (!task->has_split(split)) {
      std::vector<std::string> known;
      for (const SplitFacts& s : task->splits()) known.push_back(s.name);
      refuse("--split", fmt::format("there is no split {}; the task has {}", split, fmt::join(known, ", ")));
    }

  const bool limited = std::any_of(request.settings.begin(), request.settings.end(),
                                   [](const Override& o) { return o.key == "train.eval_batches"; });
  const i64 max_batches = limited ? config.integer("train.eval_batches") : 0;
  const ProcessSettings process(config);
  const RandomScope random(static_cast<u64>(config.integer("seed")));
  const std::unique_ptr<TaskModel> model = make_task_model(config, *task);
  model->module().load_state_dict(contents.model);
  const DenormalGuard guard;
  Json report = Json(Json::Object{});
  report.set("format", "waymark-eval-1").set("checkpoint", checkpoint.string()).set("id", contents.facts.id);
  Evaluation measured;
  measured.step = contents.state.step;
  std::string key = contents.facts.id + "\n" + fmt::to_string(contents.state.step);
  for (const std::string& split : splits) {
    EvaluateOptions options{.batch_size = std::max<i64>(1, config.integer("train.batch_size")),
                            .max_batches = max_batches};
    const auto result = evaluate(*model, *task, split, options);
    std::string line = fmt::format("{:<12}", split);
    for (const auto& [name, value] : result->metrics) {
      const double unit = is_share(name) ? 100 : 1;
      line += fmt::format("  {} {}{:.4g}", name, value.approximate ? "~" : "", unit * value.value);
      if (value.error) line += fmt::format(" ± {:.2g}", unit * *value.error);
      if (is_share(name)) line += " %";
    }
    if (!result->metrics.empty()) line += fmt::format("  n = {}", result->metrics.front().second.n);
    if (result->untrained) line += "  (rows of a learned table that no step has changed)";
    fmt::print("{}\n", line);
    measured.splits.emplace_back(split, *result);
    key += "\n" + split;
  }
  report.set("measured", evaluation_json(measured));
  for (const Override& o : request.settings) key += "\n" + o.key + "=" + o.text;
  const fs::path run = checkpoint.parent_path().filename() == "checkpoints" ? checkpoint.parent_path().parent_path() : checkpoint;
  const fs::path file = run / fmt::format("eval-{}.json", xxh128_hex(key).substr(0, 12));
  write_file_atomic(file, write_json(report, 2) + "\n");
  if (!request.quiet) note("{}\n", file.string());
  return 0;
}

}  // namespace waymark::train::cli
