// Task: what is trained and how it is measured. A value of the registry (registry.h), made from a spec:
// char-mlm(source=kjv). It gives splits, batches, targets, metrics, baselines and fingerprints; the kind says which
// model and which loss belong to it.
//
// * Item i of a split is a pure function of (data.seed, the spec, the split, i); only the items and masks of training
//   may depend on the run's seed, too. Threads, batch size and the number of items asked for change nothing.
// * A task is immutable: every method is const and may be called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/softmax.h"
#include "nn/loss/loss.h"
#include "nn/spec/options.h"
#include "train/config/config.h"
#include "train/config/registries.h"
#include "train/tasks/metrics.h"

namespace waymark::train {

// What a task is made from.
struct TaskRequest {
  const nn::Options* spec = nullptr;
  u64 seed = 0, data_seed = 0;
  std::string data_dir, split = "own";
  i64 train_size = 0, val_size = 0, test_size = 0;  // 0 = all, or unlimited
};
WAYMARK_API TaskRequest task_request(const Config& config);

struct SplitFacts {
  std::string name = {};   // train, val, test, test@128, ...
  i64 size = 0;       // items; 0 = without end (train only)
  i64 length = 0;     // tokens of an item; 0 = they vary
};

class WAYMARK_API Task {
 public:
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const TaskFacts& facts() const { return facts_; }
  const nn::Options& spec() const { return spec_; }

  // train first, then val and test if there are, then the extra test sets.
  virtual const std::vector<SplitFacts>& splits() const = 0;
  // Ids of the input, padding among them, and of the output: rows of the token table, classes of the head.
  virtual i64 inputs() const = 0;
  virtual i64 outputs() const = 0;
  virtual i64 pad_id() const = 0;
  // val and test are the same data: nothing may be selected on them.
  virtual bool test_is_validation() const { return false; }

  // Items of the training split, for update number `step` (from 0). The batch is that of the whole step: what is drawn
  // anew in every step is keyed by (seed, step, place in the batch).
  virtual Batch training_batch(std::span<const i64> items, i64 step) const = 0;
  // Items of any split, the same in every run, whatever its seed, step or batch.
  virtual Batch evaluation_batch(std::string_view split, std::span<const i64> items) const = 0;

  virtual std::string item_id(std::string_view split, i64 item) const = 0;
  // Readable text of one item.
  virtual std::string describe(std::string_view split, i64 item) const = 0;
  // A batch of one item from a user's text, of which nothing is scored. Error for a text that is none of this task.
  virtual Batch batch_of_text(std::string_view text) const;
  // XXH3-128 over ids, tokens and targets of the split in order.
  virtual std::string fingerprint(std::string_view split) const = 0;
  // Shortcuts, computed on the very split that is reported.
  virtual std::vector<Baseline> baselines(std::string_view split) const = 0;
  // "15 % of the positions, always [MASK]"; empty: nothing is masked.
  virtual std::string masking() const { return ""; }

  // Σ loss over the scored targets, 0-d; `output` of the model for this batch. By default cross-entropy.
  virtual Tensor loss_sum(const Tensor& output, const Batch& batch) const;
  // Σ divergence of the model's outputs in two passes over the scored targets, 0-d: what regularizers add. By default
  // Kullback–Leibler, as `options` say (their mask and reduction are set here).
  virtual Tensor divergence_sum(const Tensor& first, const Tensor& second, const Batch& batch, nn::loss::KlOptions options) const;
  virtual std::unique_ptr<Metrics> metrics() const { return std::make_unique<ScoredMetrics>(); }

  // The facts of a split by name; Error with the names there are.
  const SplitFacts& split(std::string_view name) const;
  bool has_split(std::string_view name) const;

 protected:
  Task(const nn::Options& spec, TaskFacts facts) : spec_(spec), facts_(std::move(facts)) {}

 private:
  nn::Options spec_;
  TaskFacts facts_;
};

}  // namespace waymark::train
