// What waymark step does: forward on one batch of the run's own data, then the stepper on its backward pass.
#include <fmt/format.h>

#include "core/engine/layout.h"
#include "core/inspect/recorder.h"
#include "core/inspect/repl.h"
#include "core/ops/arithmetic.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/config/checks.h"
#include "train/data/loader.h"
#include "train/tasks/registry.h"
#include "train/trainer/checkpoint.h"
#include "train/trainer/plan.h"
#include "train/trainer/process_settings.h"

namespace waymark::train::cli {

namespace {

// The items of training step `step`.
std::vector<i64> items_of_step(const Config& config, const Task& task, const TrainPlan& plan, i64 step) {
  BatchOrder order(task.split("train").size, LoaderOptions{.batch_size = plan.batch_size, .shuffle = plan.shuffle,
                                                           .drop_last = plan.drop_last,
                                                           .seed = static_cast<u64>(config.integer("seed"))});
  if (order.items() > 0) order.set_cursor({step / order.batches(), step % order.batches()});
  else order.set_cursor({0, step});
  return order.next();
}

}  // namespace

int run_step(const StepRequest& request) {
  const Config& config = request.config;
  const ProcessSettings process(config);
  const DenormalGuard denormals;
  const RandomScope random(static_cast<u64>(config.integer("seed")));
  const std::unique_ptr<Task> task = make_task(task_request(config));
  const TrainPlan plan = make_plan(config, *task);
  const std::unique_ptr<TaskModel> model = make_task_model(config, *task);
  if (!request.quiet) {
    for (const std::string& text : model->warnings()) print_warning(text);
    for (const std::string& text : unused_settings(config)) print_warning(text);
  }
  model->module().train();
  (void)make_param_groups(config, model->module());  // freezes what the config freezes
  i64 step = 0;
  if (!request.from.empty()) {
    const CheckpointContents contents = load_checkpoint(request.from);
    model->module().load_state_dict(contents.model);
    step = contents.state.step;
  }
  if (request.batch) step = *request.batch;

  const Batch batch = [&] {
    try {
      return task->training_batch(items_of_step(config, *task, plan, step), step);
    } catch (const Error& e) {
      if (!request.batch) throw;
      throw ConfigError(Problems{{"--batch", fmt::format("there is no batch of step {}: {}", step, e.what())}});
    }
  }();
  if (batch.scored == 0) throw ConfigError(Problems{{"--batch", fmt::format("step {} has no target to score, so there is no loss; try another", step)}});
  const inspect::Recorder recorder({.keep = inspect::Keep::values, .max_elements = INT64_MAX});
  const DrawScope draws(static_cast<u64>(step), 0);
  const Tensor loss = task->loss_sum(model->output(batch), batch) / static_cast<double>(batch.scored);
  BackwardRun run(loss, {.rewindable = true});

  inspect::ReplIo io = request.script.empty() ? inspect::terminal_io() : inspect::script_io(request.script);
  if (!request.quiet) {
    const auto line = [&](const std::string& text) { io.write(hanging("", text, io.width) + "\n"); };
    line(config.name());
    line(fmt::format("step {}: {} items, {} tokens, {} targets", step, batch.items, batch.kept, batch.scored));
    line(inspect::run_summary(run));
    if (const Node* next = run.next()) line(fmt::format("next: {}{}", next->label(), next->where().empty() ? "" : "   " + next->where()));
    if (io.person) io.write("Enter runs it; help lists the commands.\n");
  }
  return inspect::repl(run, std::move(io));
}

}  // namespace waymark::train::cli
