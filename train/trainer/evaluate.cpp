#include "train/trainer/evaluate.h"

#include <algorithm>

#include "core/autograd/state.h"
#include "core/random/generator.h"

namespace waymark::train {

namespace {

class EvalMode {
 public:
  explicit EvalMode(nn::ModuleBase& module) : module_(module), training_(module.training()) { module_.eval(); }
  ~EvalMode() { module_.train(training_); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  nn::ModuleBase& module_;
  bool training_;
};

}  // namespace

std::optional<SplitResult> evaluate(TaskModel& model, const Task& task, std::string_view split,
                                    const EvaluateOptions& options) {
  const SplitFacts& facts = task.split(split);
  if (facts.size == 0) fail("evaluate", "{} of {} has no end: it cannot be evaluated", facts.name, task.spec().name());
  if (options.batch_size < 1) fail("evaluate", "batch_size = {}: must be at least 1", options.batch_size);
  const NoGrad no_grad;
  const ReplayScope no_stream_advances{RandomSnapshot()};
  const EvalMode mode(model.module());
  const i64 all = (facts.size + options.batch_size - 1) / options.batch_size;
  const i64 batches = options.max_batches > 0 ? std::min(all, options.max_batches) : all;
  const std::unique_ptr<Metrics> metrics = task.metrics();
  for (i64 b = 0; b < batches; ++b) {
    if (options.stop && options.stop->load()) return std::nullopt;
    std::vector<i64> items;
    for (i64 i = b * options.batch_size; i < std::min(facts.size, (b + 1) * options.batch_size); ++i) items.push_back(i);
    const Batch batch = task.evaluation_batch(split, items);
    if (batch.scored > 0) metrics->add(model.output(batch), batch);
    if (options.progress) options.progress(b + 1, batches);
  }
  SplitResult result;
  if (facts.length != task.split("train").length) result.length = facts.length;
  result.untrained = model.trained_rows() > 0 && facts.length > model.trained_rows();
  result.metrics = metrics->values();
  for (auto& [name, value] : result.metrics) value.approximate = batches < all;
  return result;
}

}  // namespace waymark::train
