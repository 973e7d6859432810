// What waymark inspect does once its request is checked.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "core/io/files.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "nn/spec/suggest.h"
#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/config/resolve.h"
#include "train/inspect/page.h"
#include "train/report/escape.h"
#include "train/tasks/registry.h"
#include "train/trainer/checkpoint.h"
#include "train/trainer/process_settings.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {
namespace {

namespace fs = std::filesystem;

constexpr i64 kWeightsUpTo = 256;  // tokens of an item whose weights are kept unasked

// What an earlier call has written, to be removed before a new one writes.
void remove_inspection(const fs::path& out) {
  std::error_code ignored;
  fs::remove(out / "index.html", ignored);
  for (const auto& [folder, suffix] : {std::pair("position", ".npz"), {"svg", ".svg"}}) {
    std::vector<fs::path> files;
    for (fs::directory_iterator it(out / folder, ignored), end; !ignored && it != end; it.increment(ignored))
      if (it->path().extension() == suffix) files.push_back(it->path());
    for (const fs::path& file : files) fs::remove(file, ignored);
  }
}

// The items to look at: the split and numbers of the request, or its text.
struct Looked {
  std::function<Batch(i64)> batch;
  i64 count = 1;
  std::string what, item;  // in words; the item as text
};
Looked looked_at(const InspectRequest& request, const Task& task) {
  if (request.input) {
    try {
      const Batch batch = task.batch_of_text(*request.input);
      return {[batch](i64) { return batch; }, 1, "the text of --input", *request.input};
    } catch (const Error& e) {
      refuse("--input", e.what());
    }
  }
  if (!task.has_split(request.split)) {
    std::vector<std::string> known;
    for (const SplitFacts& s : task.splits()) known.push_back(s.name);
    refuse("--split", fmt::format("there is no split {}; the task has {}.{}", nn::printable(request.split), fmt::join(known, ", "),
                                  nn::did_you_mean(request.split, known)));
  }
  const SplitFacts& split = task.split(request.split);
  if (split.size > 0 && request.item >= split.size)
    refuse("--item", fmt::format("{} is out of range: {} has the items 0 to {}", request.item, split.name, split.size - 1));
  Looked out;
  out.count = split.size > 0 ? std::min(request.items, split.size - request.item) : request.items;
  out.batch = [&task, &request](i64 i) {
    const i64 one[] = {request.item + i};
    return task.evaluation_batch(request.split, one);
  };
  out.what = out.count == 1 ? fmt::format("item {} of {}", request.item, request.split)
                            : fmt::format("items {} to {} of {}", request.item, request.item + out.count - 1, request.split);
  out.item = task.describe(request.split, request.item);
  return out;
}

}  // namespace

int run_inspect(const InspectRequest& request) {
  const fs::path checkpoint = checkpoint_folder(request.target, request.which, "--which");
  const fs::path run = run_of(checkpoint);
  const fs::path out = request.out.empty() ? run / "inspect" : fs::path(request.out);
  if (const auto refusal = place_refusal(out)) refuse("--out", *refusal);
  std::error_code ignored;
  if (!request.force && fs::exists(out, ignored) && !fs::is_empty(out, ignored))
    refuse("--out", fmt::format("{} is not empty; --force writes into it", out.string()));

  const CheckpointContents contents = load_checkpoint(checkpoint, CheckpointPart::weights);
  Problems problems;
  std::vector<Source> sources{read_toml_text(contents.config, (checkpoint / "config.toml").string(), problems)};
  sources.push_back(command_line_source(request.settings, problems));
  const Config config = resolve_or_throw(sources, std::move(problems));
  const std::unique_ptr<Task> task = make_task(task_request(config));
  const Looked looked = looked_at(request, *task);
  const ProcessSettings process(config);
  const DenormalGuard denormals;
  const RandomScope random(static_cast<u64>(config.integer("seed")));
  const std::unique_ptr<TaskModel> model = make_task_model(config, *task);
  model->module().load_state_dict(contents.model);

  LookOptions options;
  const Batch first = looked.batch(0);
  options.maps = true;
  options.weights = request.weights || first.tokens.size(1) <= kWeightsUpTo;
  const bool terminal = isatty(STDERR_FILENO) != 0 && !request.quiet;
  if (terminal) options.progress = [](i64 done, i64 all) { note("\ritem {}/{}{}", done, all, done == all ? "\n" : ""); };
  ModelReport report;
  try {
    report = look_at_model(*model, looked.count, looked.batch, options);
  } catch (const Error& e) {
    // A text can be longer than a table of positions.
    if (request.input) refuse("--input", e.what());
    throw;
  }
  if (report.layers.empty()) fail("inspect", "this model has no attention to look at");

  fs::create_directories(out);
  remove_inspection(out);
  std::vector<fs::path> files = write_arrays(out, report);
  const std::vector<Figure> figures = figures_of(report);
  fs::create_directories(out / "svg");
  for (const Figure& f : figures) {
    files.push_back(out / "svg" / fmt::format("{}-{}.svg", f.layer < 0 ? "input" : fmt::to_string(f.layer), file_name(f.name)));
    write_file_atomic(files.back(), f.svg);
  }
  PageFacts facts;
  facts.title = config.name();
  facts.summary = {{"task", config.short_form("task")},
                   {"checkpoint", fmt::format("step {} of run {}", contents.state.step, contents.facts.id)},
                   {"position", config.short_form("model.position")},
                   {"attention", config.short_form("model.attention")},
                   {"maps", request.input ? looked.what : fmt::format("item {} of {}", request.item, request.split)},
                   {"statistics", fmt::format("{}, {} tokens each", looked.what, report.length)},
                   {"trained at", fmt::format("{} tokens", task->split("train").length)}};
  facts.item = looked.item;
  facts.warnings = model->warnings();
  if (model->trained_rows() > 0 && report.length > model->trained_rows())
    facts.warnings.push_back(fmt::format("The item is longer than the training ones: rows of a learned table beyond {} are as they were made.", model->trained_rows()));
  facts.command = request.command_line;
  files.push_back(out / "index.html");
  write_file_atomic(files.back(), inspection_page(facts, report, figures));
  if (!request.quiet) note("{} files, {} drawings\n", files.size(), figures.size());
  fmt::print("{}\n", (out / "index.html").string());
  return 0;
}

}  // namespace waymark::train::cli
