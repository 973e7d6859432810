// The loop of a run: steps, metric lines, validations, checkpoints.
#include <cmath>

#include "core/autograd/node.h"
#include "core/engine/backward.h"
#include "core/kernels/blas.h"
#include "core/kernels/gemm.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/tensor/version.h"
#include "nn/module/auxiliary.h"
#include "train/optim/clip.h"
#include "train/trainer/run.h"

namespace waymark::train {

namespace {

constexpr double kMeanDecay = 0.98;
constexpr i64 kNonfiniteInARow = 10;

}  // namespace

bool Run::budget_used_up() const {
  return (plan_.steps > 0 && state_.step >= plan_.steps) ||
         (plan_.steps == 0 && plan_.token_budget > 0 && state_.tokens >= plan_.token_budget) ||
         (plan_.second_budget > 0 && state_.seconds >= plan_.second_budget);
}

Run::Outcome Run::train() {
  if (state_.step == 0 && state_.resumes == 0) state_.evaluated = !plan_.eval_at_start;
  while (true) {
    bool end = budget_used_up();
    const bool due = plan_.has_validation && (end || state_.step % plan_.eval_every == 0);
    if (!state_.evaluated && due && !validate()) {
      save(CheckpointKind::interrupted);
      return Outcome::interrupted;
    }
    state_.evaluated = true;
    if (!end && plan_.patience > 0 && state_.without_gain >= plan_.patience) {
      end = true;
      stopped_by_ = "patience";
    }
    if (state_.step > 0 && (end || improved_ || state_.step % plan_.save_every == 0)) save(CheckpointKind::step);
    improved_ = false;
    if (end) break;
    if (stopping()) {
      save(CheckpointKind::interrupted);
      return Outcome::interrupted;
    }
    if (!step()) return Outcome::nonfinite;
  }
  if (stopped_by_.empty()) stopped_by_ = plan_.budget;
  return Outcome::finished;
}

bool Run::step() {
  const auto begin = Clock::now();
  const i64 flops_before = kernels::gemm_flops();
  const std::vector<i64> items = order_->next();
  const Batch batch = s_.task->training_batch(items, state_.step);
  double loss_sum = 0, norm = 0;
  bool updated = false;
  line_auxiliary_.clear();
  optimizer_->zero_grad();
  if (batch.scored > 0) {
    // The loss of a step is a sum over all its targets divided once, however it is cut: never a mean of means.
    const double targets = static_cast<double>(batch.scored);
    for (i64 first = 0; first < batch.items; first += plan_.micro_batch) {
      const i64 count = std::min(plan_.micro_batch, batch.items - first);
      const Batch part = count == batch.items ? batch : slice(batch, first, count);
      if (part.scored == 0) continue;
      const DrawScope draws(static_cast<u64>(state_.step), static_cast<u64>(first));
      const nn::AuxiliaryLosses collected;
      const Tensor output = s_.model->output(part);
      Tensor sum;
      if (regularizer_) {
        const Regularizer::Losses l = regularizer_->losses(*s_.model, *s_.task, part, output, state_.step, first);
        sum = l.sum;
        line_auxiliary_["loss_ce"] += l.ce / targets;
        if (l.sar) line_auxiliary_["loss_sar"] += *l.sar / targets;
        if (l.r_drop) line_auxiliary_["loss_rdrop"] += *l.r_drop / targets;
      } else {
        sum = s_.task->loss_sum(output, part);
      }
      loss_sum += sum.item<double>();
      Tensor loss = sum / targets;
      // Each is a mean over the tokens of its part, so that parts count by their tokens; and over the passes.
      const double share = static_cast<double>(part.kept) / static_cast<double>(std::max<i64>(1, batch.kept) * passes());
      for (const auto& [name, term] : collected.auxiliary_losses()) {
        loss = loss + term * share;
        line_auxiliary_[name] += term.item<double>() * share;
      }
      loss.backward();
    }
    if (plan_.clip_value > 0) clip_grad_value_(parameters_, plan_.clip_value);
    norm = grad_norm(parameters_);
    updated = std::isfinite(loss_sum) && std::isfinite(norm);
    if (updated) {
      optimizer_->step(plan_.clip_norm > 0 ? clip_factor(norm, plan_.clip_norm) : 1);
      state_.nonfinite_in_a_row = 0;
    } else {
      const bool too_many = ++state_.nonfinite_in_a_row > kNonfiniteInARow;
      if (!plan_.skip_nonfinite || too_many) {
        stop_nonfinite(loss_sum / targets, norm);
        return false;
      }
      ++state_.nonfinite_skipped;
      warn(fmt::format("an update was skipped: {} is not finite", std::isfinite(loss_sum) ? "the gradient norm" : "the loss"));
    }
  } else {
    ++state_.empty_steps;
    warn("a step had no target to score, and changed nothing");
  }
  const double loss = batch.scored > 0 ? loss_sum / static_cast<double>(batch.scored) : std::nan("");
  if (updated) {
    state_.line_loss += loss_sum;
    state_.line_targets += batch.scored;
    state_.mean_loss = kMeanDecay * state_.mean_loss + (1 - kMeanDecay) * loss;
    state_.mean_weight = kMeanDecay * state_.mean_weight + (1 - kMeanDecay);
  }
  optimizer_->zero_grad();
  ++state_.step;
  state_.evaluated = false;
  state_.cursor = order_->cursor();
  state_.tokens += batch.kept;
  state_.line_tokens += batch.kept;
  state_.targets += batch.scored;

  const double flops = static_cast<double>(kernels::gemm_flops() - flops_before);
  line_flops_ += flops;
  if (!state_.flops_per_step && batch.scored > 0) state_.flops_per_step = flops;
  if (const auto growth = growth_.after_step()) warn(*growth);
  state_.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  log_step(loss, norm, updated);
  schedule_->set_updates(state_.step);
  return true;
}

void Run::log_step(double loss, double norm, bool updated) {
  const bool line = state_.step % plan_.log_every == 0 || budget_used_up();
  StepReport r;
  r.step = state_.step;
  r.steps = plan_.steps;
  const i64 size = order_->items();
  r.epoch = size > 0 ? static_cast<double>(state_.cursor.epoch) +
                           static_cast<double>(state_.cursor.batch) / static_cast<double>(order_->batches())
                     : 0;
  r.loss = loss;
  r.mean_loss = state_.mean_weight > 0 ? state_.mean_loss / state_.mean_weight : std::nan("");
  r.lr = schedule_->lr();
  r.grad_norm = norm;
  r.updated = updated;
  r.tokens = state_.tokens;
  r.time = state_.seconds;
  const double spent = state_.seconds - state_.line_time;
  r.tokens_per_s = spent > 0 ? static_cast<double>(state_.line_tokens) / spent : 0;
  r.gflops = spent > 0 ? line_flops_ / spent / 1e9 : 0;
  r.seconds_left = -1;
  if (plan_.second_budget > 0) {
    r.seconds_left = std::max(0.0, plan_.second_budget - state_.seconds);
  } else if (plan_.steps > 0) {
    const i64 left = plan_.steps - state_.step;
    const double each = evals_ > 0 ? eval_seconds_ / static_cast<double>(evals_) : 0;
    r.seconds_left = static_cast<double>(left) * state_.seconds / static_cast<double>(state_.step) +
                     each * static_cast<double>(left / plan_.eval_every);
  }
  MetricsRecord record;
  if (line) {
    record = train_record({.step = r.step, .epoch = r.epoch,
                           .loss = state_.line_targets > 0 ? state_.line_loss / static_cast<double>(state_.line_targets)
                                                           : std::nan(""),
                           .lr = r.lr, .grad_norm = norm, .tokens = r.tokens, .time = r.time,
                           .tokens_per_s = r.tokens_per_s, .gflops = r.gflops});
    for (const auto& [name, value] : line_auxiliary_) record.set(name, value);
    if (regularizer_) record.set("passes", passes());
    if (log_) log_->write(record);
    r.record = &record;
    state_.line_loss = 0;
    state_.line_targets = state_.line_tokens = 0;
    state_.line_time = state_.seconds;
    line_flops_ = 0;
  }
  tell([&](RunSink& sink) { sink.on_step(r); });
}

std::optional<SplitResult> Run::evaluate_split(std::string_view split, i64 max_batches) {
  const auto begin = Clock::now();
  EvaluateOptions options{.batch_size = plan_.batch_size, .max_batches = max_batches, .stop = &stop_};
  options.progress = [&](i64 done, i64 total) {
    const EvalProgress p{state_.step, split, done, total};
    tell([&](RunSink& sink) { sink.on_eval_progress(p); });
  };
  auto result = evaluate(*s_.model, *s_.task, split, options);
  eval_seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
  ++evals_;
  return result;
}

void Run::report_eval(const std::string& split, const SplitResult& result, bool improved) {
  std::vector<std::pair<std::string, double>> values;
  i64 n = 0;
  bool approximate = false;
  for (const auto& [name, value] : result.metrics) {
    values.emplace_back(name, value.value);
    n = value.n;
    approximate |= value.approximate;
  }
  const MetricsRecord record = eval_record(state_.step, split, n, values, state_.seconds, approximate);
  if (log_) log_->write(record);
  EvalReport r{.step = state_.step, .split = split, .result = result, .improved = improved,
               .select_metric = plan_.select_metric, .best = {}, .best_step = 0, .record = &record};
  if (state_.best_val)
    if (const MetricValue* best = state_.best_val->result.find(plan_.select_metric)) {
      r.best = best->value;
      r.best_step = state_.best_val->step;
    }
  tell([&](RunSink& sink) { sink.on_eval(r); });
}

bool Run::validate() {
  const auto result = evaluate_split("val", plan_.eval_batches);
  if (!result) return false;
  state_.last_val = ScoredSplit{state_.step, *result};
  improved_ = false;
  // What was measured before the first step is no checkpoint, so it neither becomes the best nor counts for patience.
  if (!plan_.select_metric.empty() && state_.step > 0) {
    const MetricValue* now = result->find(plan_.select_metric);
    if (!now) fail("trainer", "the task does not measure {}", plan_.select_metric);
    const MetricValue* best = state_.best_val ? state_.best_val->result.find(plan_.select_metric) : nullptr;
    // On a tie the earlier one stays; NaN is never the best.
    improved_ = !std::isnan(now->value) &&
                (!best || (lower_is_better(plan_.select_metric) ? now->value < best->value : now->value > best->value));
    if (improved_) {
      state_.best_val = state_.last_val;
      state_.without_gain = 0;
      if (!on_disk()) best_in_memory_ = copy_of(s_.model->module());
    } else {
      ++state_.without_gain;
    }
  }
  report_eval("val", *result, improved_);
  return true;
}

void Run::save(CheckpointKind kind) {
  if (!on_disk()) return;
  if (kind == CheckpointKind::interrupted && saved_step_ == state_.step && state_.evaluated) return;
  state_.random = generator_.state();
  state_.cursor = order_->cursor();
  CheckpointContents contents;
  contents.model = s_.model->module().state_dict();
  contents.optimizer = optimizer_->state_dict();
  contents.state = state_;
  contents.facts = {.id = config_.id(), .config = config_.id_lines(), .fingerprints = fingerprints_,
                    .version = version(), .blas_core = kernels::blas_core_name(), .files = {}};
  contents.config = config_.to_toml();
  std::optional<i64> best;
  if (state_.best_val) best = state_.best_val->step;
  const std::string name = store_->save(kind, contents, best, plan_.keep);
  saved_step_ = state_.step;
  MetricsRecord record = event_record(state_.step, kind == CheckpointKind::step          ? "checkpoint"
                                                   : kind == CheckpointKind::interrupted ? "interrupted"
                                                                                         : "nonfinite");
  record.set("path", "checkpoints/" + name);
  event(std::move(record));
}

void Run::stop_nonfinite(double loss, double norm) {
  std::string first;
  for (const nn::NamedParameter& p : s_.model->module().named_parameters()) {
    const NoGrad no_grad;
    const Tensor g = p.tensor.grad();
    const bool bad_value = sum(logical_not(isfinite(p.tensor))).item<i64>() > 0;
    const bool bad_grad = g.defined() && sum(logical_not(isfinite(g))).item<i64>() > 0;
    if (!bad_value && !bad_grad) continue;
    first = fmt::format("; the first parameter that is not finite is {} ({})", p.name, bad_value ? "its values" : "its gradient");
    break;
  }
  // The sign of a NaN says nothing.
  nonfinite_error_ = fmt::format("step {}: loss {}, gradient norm {}{}", state_.step + 1, std::isnan(loss) ? std::nan("") : loss,
                                 std::isnan(norm) ? std::nan("") : norm, first);
  if (plan_.skip_nonfinite)
    nonfinite_error_ += fmt::format("; {} updates in a row could not be made", state_.nonfinite_in_a_row);
  optimizer_->zero_grad();
  // The state before the step, so that it can be run again and looked at.
  order_->set_cursor(state_.cursor);
  save(CheckpointKind::nonfinite);
}

}  // namespace waymark::train
