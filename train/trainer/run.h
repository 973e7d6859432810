// Internal: one run of a Trainer, from the config to the result.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "core/inspect/counters.h"
#include "core/random/generator.h"
#include "train/optim/registry.h"
#include "train/trainer/checkpoint.h"
#include "train/trainer/evaluate.h"
#include "train/trainer/plan.h"
#include "train/trainer/regularizer.h"
#include "train/trainer/run_folder.h"
#include "train/trainer/trainer.h"

namespace waymark::train {

struct Trainer::Settings {
  Config config;
  std::filesystem::path folder;
  bool resume = false, force = false;
  std::filesystem::path resume_path;
  std::string command_line;
  i64 stop_after = 0;
  std::vector<RunSink*> sinks;
  std::vector<std::unique_ptr<RunSink>> own_sinks;
  ModelMaker maker = make_task_model;
  // After run().
  std::unique_ptr<Task> task;
  std::unique_ptr<TaskModel> model;
  bool nothing_to_do = false, ran = false;
};

class Run {
 public:
  Run(Trainer::Settings& settings, const std::atomic<bool>& stop) : s_(settings), config_(settings.config), stop_(stop) {}
  RunResult run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Outcome : u8 { finished, interrupted, nonfinite };

  // setup.cpp
  void build();
  void open_folder();
  void start_or_resume();
  std::optional<CheckpointContents> find_checkpoint();
  void restore(CheckpointContents contents);
  void check_fits(const CheckpointFacts& facts);
  void open_log();

  // loop.cpp
  Outcome train();
  i64 passes() const { return regularizer_ ? regularizer_->passes() : 1; }
  bool step();  // false: not finite, and the run stops
  void log_step(double loss, double norm, bool updated);
  bool validate();  // false: interrupted
  bool budget_used_up() const;
  void save(CheckpointKind kind);
  void stop_nonfinite(double loss, double norm);

  // finish.cpp
  RunResult describe(RunStatus status) const;
  bool evaluate_end(RunResult& result);  // false: interrupted
  std::optional<Evaluation> evaluate_tests(const std::optional<ScoredSplit>& val);
  RunResult finish(Outcome outcome);
  void fail_with(const std::string& error);

  void warn(const std::string& text);
  void event(MetricsRecord record);
  std::optional<SplitResult> evaluate_split(std::string_view split, i64 max_batches);
  void report_eval(const std::string& split, const SplitResult& result, bool improved);
  bool stopping() const { return stop_.load() || (s_.stop_after > 0 && state_.step >= s_.stop_after); }
  bool on_disk() const { return !s_.folder.empty(); }
  template <class F> void tell(F f) {
    for (RunSink* sink : s_.sinks) f(*sink);
    if (log_file_) f(*log_file_);
  }

  Trainer::Settings& s_;
  const Config& config_;
  const std::atomic<bool>& stop_;
  TrainPlan plan_;
  Generator generator_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Regularizer> regularizer_;  // null: the loss of the task alone
  std::unique_ptr<BatchOrder> order_;
  std::vector<Tensor> parameters_;
  i64 parameter_count_ = 0;
  TrainState state_;
  std::map<std::string, std::string> fingerprints_;

  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<CheckpointStore> store_;
  std::optional<MetricsLog> log_;
  std::unique_ptr<RunSink> log_file_;
  nn::StateDict best_in_memory_;  // without a folder
  std::vector<std::pair<std::string, i64>> warnings_;
  std::string stopped_by_, nonfinite_error_;
  i64 saved_step_ = -1, first_step_ = 0;
  bool improved_ = false;  // this step's validation is the best
  double line_flops_ = 0;
  std::map<std::string, double> line_auxiliary_;  // what the loss of the last step consists of beside the task's, by name
  inspect::GrowthWatch growth_;  // of graphs that are kept from step to step
  double eval_seconds_ = 0;  // measured, for the estimate of what is left
  i64 evals_ = 0;
};

// Clone of parameters and buffers.
nn::StateDict copy_of(const nn::ModuleBase& module);

}  // namespace waymark::train
