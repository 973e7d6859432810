// GeneratedTask: a task whose items are drawn, not read. What those tasks share: splits, batches, ids, fingerprints.
//
// Item i of a split is a pure function of (data.seed, stream data.generate.<spec>.<split>, i); without data.train_size
// the training items have no end, and their stream has the run's seed behind it. `test_lengths` is no part of the
// stream: asking for one more length changes no item.
#pragma once

#include <functional>

#include "core/random/draws.h"
#include "train/tasks/registry.h"

namespace waymark::train {

class GeneratedTask : public Task {
 public:
  const std::vector<SplitFacts>& splits() const override { return splits_; }
  Batch training_batch(std::span<const i64> items, i64 step) const override;
  Batch evaluation_batch(std::string_view split, std::span<const i64> items) const override;
  std::string item_id(std::string_view split, i64 item) const override;
  // The names of the tokens; of scored ones with their target: R+2>5.
  std::string describe(std::string_view split, i64 item) const override;
  // Names of tokens with blanks between, as describe() shows them; a target behind a token is passed over.
  Batch batch_of_text(std::string_view text) const override;
  std::string fingerprint(std::string_view split) const override;

 protected:
  // Items of `length` tokens; val and test have `size_of(length)` of them, test@N of the other `test_lengths` `size_of(N)`.
  GeneratedTask(const TaskRequest& request, TaskFacts facts, const std::function<i64(i64 items, i64 length)>& size_of);

  // One item: `length` tokens and targets, the latter kNotScored before.
  virtual void generate(DrawSequence& draws, i64 length, i64* tokens, i64* targets) const = 0;
  virtual std::string name_of_token(i64 token) const = 0;

  // f(tokens, targets, length) for each item of a split that ends.
  void each_item(std::string_view split, const std::function<void(const i64*, const i64*, i64)>& f) const;
  // Chance and the most frequent target of the split, as baselines of `accuracy`.
  std::vector<Baseline> label_baselines(std::string_view split) const;

 private:
  void check_item(const SplitFacts& split, i64 item) const;
  const std::string& stream_of(const SplitFacts& split) const;
  Batch batch_of(const SplitFacts& split, std::span<const i64> items) const;

  u64 data_seed_;
  std::vector<SplitFacts> splits_;
  std::vector<std::string> streams_;  // of the splits
};

// Options that all of them have, and the facts that follow from them.
std::vector<nn::OptionDef> generated_options(i64 length, i64 least, std::vector<i64> test_lengths);
void check_generated_options(const nn::Options& spec, std::vector<std::string>& problems);
TaskFacts generated_facts(const nn::Options& spec, i64 val_size, i64 test_size);

}  // namespace waymark::train
