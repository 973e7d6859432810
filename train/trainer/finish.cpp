// The end of a run: test sets for last and best, result.json.
#include <algorithm>

#include "core/parallel/parallel.h"
#include "core/tensor/allocator.h"
#include "core/tensor/version.h"
#include "train/config/keys.h"
#include "train/trainer/analysis.h"
#include "train/trainer/machine.h"
#include "train/trainer/run.h"

namespace waymark::train {

nn::StateDict copy_of(const nn::ModuleBase& module) {
  const NoGrad no_grad;
  nn::StateDict copy;
  for (const auto& [name, tensor] : module.state_dict()) copy.emplace_back(name, tensor.clone());
  return copy;
}

RunResult Run::describe(RunStatus status) const {
  RunResult r;
  r.id = config_.id();
  r.name = config_.name();
  r.status = status;
  for (const KeyInfo& key : config_keys()) {
    if (!config_.has(key.name)) continue;
    r.config[key.name] = config_.canonical(key.name);
    if (config_.short_form(key.name) != config_.canonical(key.name)) r.config_short[key.name] = config_.short_form(key.name);
  }
  r.seed = config_.integer("seed");
  const Task& task = *s_.task;
  for (const SplitFacts& split : task.splits()) {
    if (split.size > 0) r.data.sizes[split.name] = split.size;
    const auto print = fingerprints_.find(split.name);
    if (print != fingerprints_.end()) r.data.fingerprints[split.name] = print->second;
  }
  r.data.masking = task.masking();
  r.trained_length = task.split("train").length;
  r.steps = state_.step;
  r.tokens = state_.tokens;
  if (status == RunStatus::finished) r.stopped_by = stopped_by_;
  r.parameters = parameter_count_;
  r.flops_per_step = state_.flops_per_step;
  r.seconds = state_.seconds;
  r.cpu_seconds = process_cpu_seconds();
  r.peak_memory = memory_counters().bytes_peak;
  r.denormal_guard = true;
  r.cpu = cpu_facts();
  if (config_.text("run.precision") == "f64") r.cpu.peak_flops /= 2;
  r.version = version();
  r.main_metric = task.facts().metric;
  r.selection = plan_.select_metric.empty() ? "last" : "val." + plan_.select_metric;
  for (const auto& [text, count] : warnings_)
    r.warnings.push_back(count > 1 ? fmt::format("{} ({} times)", text, count) : text);
  r.nonfinite_skipped = state_.nonfinite_skipped;
  r.resumes = state_.resumes;
  r.continued_from = state_.continued_from;
  return r;
}

// All test sets with the parameters that are in the model now, and the validation, measured before or now.
std::optional<Evaluation> Run::evaluate_tests(const std::optional<ScoredSplit>& val) {
  Evaluation out;
  for (const SplitFacts& split : s_.task->splits()) {
    const bool is_val = split.name == "val";
    if (!is_val && split.name.rfind("test", 0) != 0) continue;
    if (is_val && val) {
      const bool exact = std::none_of(val->result.metrics.begin(), val->result.metrics.end(),
                                      [](const auto& metric) { return metric.second.approximate; });
      if (exact) {
        out.splits.emplace_back("val", val->result);
        continue;
      }
    }
    auto result = evaluate_split(split.name, 0);
    if (!result) return std::nullopt;
    out.splits.emplace_back(split.name, std::move(*result));
  }
  return out;
}

bool Run::evaluate_end(RunResult& result) {
  std::optional<ScoredSplit> last_val;
  if (state_.last_val && state_.last_val->step == state_.step) last_val = state_.last_val;
  result.last = evaluate_tests(last_val);
  if (!result.last) return false;
  result.last->step = state_.step;
  for (const auto& [split, values] : result.last->splits)
    if (split != "val") report_eval(split, values, false);
  if (!state_.best_val) return true;
  if (state_.best_val->step == state_.step) {
    result.best = result.last;
    return true;
  }
  nn::ModuleBase& module = s_.model->module();
  const nn::StateDict last = copy_of(module);
  module.load_state_dict(on_disk() ? load_checkpoint(store_->path_of(state_.best_val->step), CheckpointPart::weights).model : best_in_memory_);
  result.best = evaluate_tests(state_.best_val);
  module.load_state_dict(last);
  if (!result.best) return false;
  result.best->step = state_.best_val->step;
  return true;
}

RunResult Run::finish(Outcome outcome) {
  RunResult result;
  if (outcome == Outcome::finished) {
    RunResult measured;
    if (!evaluate_end(measured)) outcome = Outcome::interrupted;
    result = describe(outcome == Outcome::finished ? RunStatus::finished : RunStatus::interrupted);
    if (outcome == Outcome::finished) {
      result.last = std::move(measured.last);
      result.best = std::move(measured.best);
      for (const SplitFacts& split : s_.task->splits())
        if (split.name != "train")
          for (Baseline& b : s_.task->baselines(split.name)) result.baselines.push_back(std::move(b));
    }
  } else {
    result = describe(outcome == Outcome::nonfinite ? RunStatus::nonfinite : RunStatus::interrupted);
    result.error = nonfinite_error_;
  }
  if (result.status == RunStatus::interrupted)
    result.error = fmt::format("interrupted after step {}", state_.step);
  if (on_disk()) {
    if (result.status == RunStatus::finished) write_analysis(s_.folder, *s_.model, *s_.task);
    save_result(s_.folder, result);
  }
  tell([&](RunSink& sink) { sink.on_end(result); });
  return result;
}

void Run::fail_with(const std::string& error) {
  RunResult result = describe(RunStatus::failed);
  result.error = error;
  tell([&](RunSink& sink) { sink.on_end(result); });
  if (on_disk()) save_result(s_.folder, result);
}

void Run::warn(const std::string& text) {
  for (auto& [known, count] : warnings_)
    if (known == text) {
      ++count;
      return;
    }
  warnings_.emplace_back(text, 1);
  tell([&](RunSink& sink) { sink.on_warning(text); });
}

void Run::event(MetricsRecord record) {
  if (log_) log_->write(record);
  tell([&](RunSink& sink) { sink.on_event(record); });
}

}  // namespace waymark::train
