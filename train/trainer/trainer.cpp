#include "train/trainer/trainer.h"

#include "core/parallel/parallel.h"
#include "core/tensor/allocator.h"
#include "train/trainer/process_settings.h"
#include "train/report/escape.h"
#include "train/trainer/run.h"

namespace waymark::train {

namespace {

struct Callbacks final : RunSink {
  std::function<void(const StepReport&)> step;
  std::function<void(const EvalReport&)> eval;
  void on_step(const StepReport& r) override {
    if (step) step(r);
  }
  void on_eval(const EvalReport& r) override {
    if (eval) eval(r);
  }
};

}  // namespace

Trainer::Trainer(Config config) : settings_(std::make_unique<Settings>()) { settings_->config = std::move(config); }
Trainer::~Trainer() = default;

Trainer& Trainer::folder(std::filesystem::path folder) {
  settings_->folder = std::move(folder);
  return *this;
}
Trainer& Trainer::resume(std::filesystem::path path) {
  settings_->resume = true;
  settings_->resume_path = std::move(path);
  return *this;
}
Trainer& Trainer::force(bool on) {
  settings_->force = on;
  return *this;
}
Trainer& Trainer::command_line(std::string text) {
  settings_->command_line = std::move(text);
  return *this;
}
Trainer& Trainer::stop_after(i64 steps) {
  settings_->stop_after = steps;
  return *this;
}
Trainer& Trainer::on_step(std::function<void(const StepReport&)> f) {
  auto own = std::make_unique<Callbacks>();
  own->step = std::move(f);
  settings_->sinks.push_back(own.get());
  settings_->own_sinks.push_back(std::move(own));
  return *this;
}
Trainer& Trainer::on_eval(std::function<void(const EvalReport&)> f) {
  auto own = std::make_unique<Callbacks>();
  own->eval = std::move(f);
  settings_->sinks.push_back(own.get());
  settings_->own_sinks.push_back(std::move(own));
  return *this;
}
Trainer& Trainer::sink(RunSink& sink) {
  settings_->sinks.push_back(&sink);
  return *this;
}
Trainer& Trainer::model(ModelMaker maker) {
  settings_->maker = std::move(maker);
  return *this;
}

RunResult Trainer::run() {
  if (settings_->ran) fail("Trainer", "run() was called before; make another Trainer");
  settings_->ran = true;
  const ProcessSettings process(settings_->config);
  const DenormalGuard denormals;
  Run run(*settings_, stop_);
  return run.run();
}

bool Trainer::nothing_to_do() const { return settings_->nothing_to_do; }
TaskModel& Trainer::trained_model() {
  if (!settings_->model) fail("Trainer", "there is no model before run()");
  return *settings_->model;
}
const Task& Trainer::task() const {
  if (!settings_->task) fail("Trainer", "there is no task before run()");
  return *settings_->task;
}

RunResult Run::run() {
  if (s_.resume && !on_disk()) throw ConfigError(Problems{{"--resume", "there is no folder to resume from"}});
  if (on_disk()) {
    const RunFolderState state = look_at_run_folder(s_.folder);
    // From another folder a new one is begun.
    const bool forks = !s_.resume_path.empty() && run_of(s_.resume_path) != s_.folder;
    const FolderUse use = s_.force ? FolderUse::force : s_.resume && !forks ? FolderUse::resume : FolderUse::fresh;
    if (!check_folder_use(s_.folder, state, config_.id(), use)) {
      s_.nothing_to_do = true;
      return *state.result;
    }
  }
  const RandomScope random(generator_);
  build();
  if (on_disk()) {
    open_folder();
    start_or_resume();
  }
  try {
    reset_peak();
    const RunStart start{config_.id(), config_.name(), s_.folder.string(), plan_.steps, first_step_, parameter_count_,
                         s_.model->attention_report()};
    tell([&](RunSink& sink) { sink.on_start(start); });
    return finish(train());
  } catch (const std::exception& e) {
    try {
      fail_with(e.what());
    } catch (const std::exception&) {  // the disk may be the reason of both; the first error is the one to tell
    }
    throw;
  }
}

std::string resume_command(const std::filesystem::path& folder) {
  const std::string name = shell_quoted(folder.string());
  return fmt::format("waymark train {} --out {} --resume", shell_quoted((folder / "config.toml").string()), name);
}

}  // namespace waymark::train
