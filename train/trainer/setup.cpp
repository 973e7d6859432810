// A run until its first step: data, model, folder, checkpoint.
#include <algorithm>

#include "core/io/files.h"
#include "core/kernels/blas.h"
#include "core/tensor/version.h"
#include "nn/module/summary.h"
#include "train/config/checks.h"
#include "train/tasks/registry.h"
#include "train/trainer/machine.h"
#include "train/trainer/run.h"

namespace waymark::train {

namespace fs = std::filesystem;

void Run::build() {
  s_.task = make_task(task_request(config_));
  const Task& task = *s_.task;
  plan_ = make_plan(config_, task);
  if (task.test_is_validation() && config_.text("train.select") != "last")
    warn("the test set is the validation set: only the last checkpoint is evaluated, nothing is selected");
  generator_.manual_seed(static_cast<u64>(config_.integer("seed")));
  s_.model = s_.maker(config_, task);
  for (const std::string& text : s_.model->warnings()) warn(text);
  for (const std::string& text : unused_settings(config_)) warn(text);
  if (const std::string text = idle_regularizer(config_); !text.empty()) warn(text);
  if (config_.canonical("train.regularizer") != "none") regularizer_ = std::make_unique<Regularizer>(config_);
  nn::ModuleBase& module = s_.model->module();
  module.train();
  optimizer_ = make_optimizer(make_param_groups(config_, module), config_.spec("optim.optimizer"));
  parameters_ = optimizer_->parameters();
  parameter_count_ = nn::count_parameters(module);
  try {
    schedule_ = make_schedule(*optimizer_, config_.spec("optim.schedule"), plan_.steps);
  } catch (const Error& e) {
    throw ConfigError(Problems{{config_.origin("optim.schedule"), e.what()}});
  }
  order_ = std::make_unique<BatchOrder>(
      task.split("train").size, LoaderOptions{.batch_size = plan_.batch_size, .shuffle = plan_.shuffle,
                                              .drop_last = plan_.drop_last,
                                              .seed = static_cast<u64>(config_.integer("seed"))});
  for (const SplitFacts& split : task.splits()) fingerprints_[split.name] = task.fingerprint(split.name);
}

void Run::open_folder() {
  std::error_code error;
  fs::create_directories(s_.folder, error);
  if (error) fail("", "cannot make {}: {}", s_.folder.string(), error.message());
  lock_ = std::make_unique<RunLock>(s_.folder);
  remove_temporary_files(s_.folder);
  store_ = std::make_unique<CheckpointStore>(s_.folder / "checkpoints");
  store_->remove_temporary();
}

void Run::check_fits(const CheckpointFacts& facts) {
  const auto mine = config_.id_lines();
  Problems problems;
  bool extended = false;
  const auto differ = [&](const std::string& key, const std::string& then, const std::string& now) {
    if (key == "train.steps" && !then.empty() && !now.empty() && config_.integer("train.steps") > state_.step) {
      extended = true;
      return;
    }
    if (key == "train.eval_every" && config_.is_default(key)) return;  // a tenth of the steps
    problems.push_back({config_.origin(key), fmt::format("{} is {} in the checkpoint and {} now", key,
                                                         then.empty() ? "not set" : then, now.empty() ? "not set" : now)});
  };
  for (const auto& [key, value] : mine) {
    const auto found = facts.config.find(key);
    const std::string then = found == facts.config.end() ? "" : found->second;
    if (then != value) differ(key, then, value);
  }
  for (const auto& [key, value] : facts.config)
    if (!mine.count(key)) problems.push_back({"", fmt::format("{} = {} of the checkpoint is no key of this version", key, value)});
  if (!problems.empty()) {
    problems.insert(problems.begin(), {"--resume", fmt::format("the checkpoint belongs to run {}, this is {}:", facts.id, config_.id())});
    throw ConfigError(std::move(problems));
  }
  for (const auto& [split, print] : fingerprints_) {
    const auto found = facts.fingerprints.find(split);
    if (found != facts.fingerprints.end() && found->second == print) continue;
    throw ConfigError(Problems{{"--resume", fmt::format("the data of split {} is not what the checkpoint was trained on", split)}});
  }
  if (extended) {
    state_.continued_from = facts.id;
    if (config_.spec("optim.schedule").name() != "constant" && schedule_needs_total(config_.spec("optim.schedule")))
      warn("train.steps was extended, and the schedule depends on it: the learning rate jumps");
  }
  if (facts.blas_core != kernels::blas_core_name())
    warn(fmt::format("the checkpoint was made with the BLAS core {}, this one is {}: the bits may differ",
                     facts.blas_core, kernels::blas_core_name()));
}

std::optional<CheckpointContents> Run::find_checkpoint() {
  std::error_code ignored;
  fs::path from = store_->folder();
  if (!s_.resume_path.empty()) {
    if (fs::exists(s_.resume_path / "state.json", ignored)) return load_checkpoint(s_.resume_path);
    from = s_.resume_path / "checkpoints";
    if (const auto refusal = resume_refusal(s_.resume_path)) throw ConfigError(Problems{{"--resume", *refusal}});
  }
  for (const CheckpointName& name : CheckpointStore(from).list()) {
    try {
      return load_checkpoint(from / name.name);
    } catch (const Error& e) {
      warn(fmt::format("{} is skipped: {}", name.name, e.what()));
    }
  }
  warn("there is no usable checkpoint: the run starts again at step 0");
  return std::nullopt;
}

void Run::restore(CheckpointContents contents) {
  state_ = std::move(contents.state);
  check_fits(contents.facts);
  s_.model->module().load_state_dict(contents.model);
  optimizer_->load_state_dict(contents.optimizer);
  generator_.set_state(state_.random);
  order_->set_cursor(state_.cursor);
  schedule_->set_updates(state_.step);
  ++state_.resumes;
  if (state_.best_val) {
    // At the end it is loaded and measured: better to know now that it cannot be.
    try {
      (void)load_checkpoint(store_->path_of(state_.best_val->step), CheckpointPart::weights);
    } catch (const Error& e) {
      warn(fmt::format("the best checkpoint so far, of step {}, cannot be used, the best is sought from here on: {}",
                       state_.best_val->step, e.what()));
      state_.best_val.reset();
    }
  }
  store_->remove_after(state_.step);
  saved_step_ = state_.step;
}

void Run::open_log() {
  log_file_ = make_log_file(s_.folder / "log.txt");
  if (!config_.boolean("log.jsonl")) return;
  const fs::path path = s_.folder / "metrics.jsonl";
  const MetricsHeader header{config_.id(), config_.integer("seed"), utc_now()};
  if (state_.resumes == 0) {
    log_ = MetricsLog::create(path, header);
    return;
  }
  try {
    // A run that was extended keeps the header it began with.
    MetricsHeader first = header;
    std::error_code ignored;
    if (fs::exists(path, ignored)) first.id = read_metrics(path).header.id;
    log_ = MetricsLog::resume(path, first, {state_.step, state_.evaluated});
  } catch (const Error& e) {  // damaged: the checkpoint is good, so the run goes on
    warn(fmt::format("{}; the log begins again here", e.what()));
    log_ = MetricsLog::create(path, header);
  }
}

void Run::start_or_resume() {
  if (s_.resume) {
    if (auto contents = find_checkpoint()) restore(std::move(*contents));
  }
  if (state_.resumes == 0) clear_run_folder(s_.folder);
  std::error_code ignored;
  fs::remove(s_.folder / "result.json", ignored);
  write_file_atomic(s_.folder / "config.toml", config_.to_toml());
  if (!s_.command_line.empty()) write_file_atomic(s_.folder / "overrides.txt", s_.command_line + "\n");
  open_log();
  if (state_.resumes > 0) event(event_record(state_.step, "resume"));
  first_step_ = state_.step;
}

}  // namespace waymark::train
