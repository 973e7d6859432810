// Trainer: trains the model of a config on its task, measures it, and keeps everything in the folder of the run.
//
//   train::Trainer trainer(train::make_config({{"task", "char-mlm(source=kjv)"}, {"model.position", "rope"}}));
//   trainer.on_eval([](const train::EvalReport& r) { fmt::print("{}\n", train::plain_eval_line(r)); });
//   const train::RunResult result = trainer.folder("runs/a").run();
//
// * No output unless a sink is set; no signal handlers. request_stop() may be called from a signal handler or another
//   thread: the step at work ends, a checkpoint is saved, and run() returns a result with status interrupted.
// * Errors are exceptions: ConfigError for a request that is wrong (nothing was written), Error otherwise; then
//   result.json says failed, and why. A loss that is not finite is no exception but a result with that status.
// * Everything random is a function of (seed, step), so a run that was interrupted and resumed equals one that was not,
//   bit for bit; so do runs with different numbers of threads.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/config/config.h"
#include "train/report/progress.h"
#include "train/report/result.h"
#include "train/trainer/model.h"

namespace waymark::train {

class WAYMARK_API Trainer {
 public:
  explicit Trainer(Config config);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Where the run is kept; without it nothing is written.
  Trainer& folder(std::filesystem::path folder);
  // Go on from the newest valid checkpoint of the folder, or from the one at `path` (a checkpoint or a run's folder).
  Trainer& resume(std::filesystem::path path = {});
  // Start again in a folder that is in use.
  Trainer& force(bool on = true);
  // For overrides.txt and the command that resumes.
  Trainer& command_line(std::string text);
  // Stop with status interrupted after so many steps in all, as request_stop() would (for tests and time-sharing).
  Trainer& stop_after(i64 steps);

  Trainer& on_step(std::function<void(const StepReport&)> f);
  Trainer& on_eval(std::function<void(const EvalReport&)> f);
  // Sees everything; several may be set. It must outlive run().
  Trainer& sink(RunSink& sink);
  // A model of the program's own instead of the one that the config describes.
  Trainer& model(ModelMaker maker);

  // Trains, evaluates, returns the result. Once. A folder that has this run finished already: its result.
  RunResult run();
  // True after run() found the folder finished and did nothing.
  bool nothing_to_do() const;

  void request_stop() noexcept { stop_.store(true); }
  // The trained model, after run(); Error before.
  TaskModel& trained_model();
  const Task& task() const;

 private:
  friend class Run;
  struct Settings;
  std::unique_ptr<Settings> settings_;
  std::atomic<bool> stop_{false};
};

// What to say to a person whose run was interrupted: the command that goes on, on one line.
WAYMARK_API std::string resume_command(const std::filesystem::path& folder);

}  // namespace waymark::train
