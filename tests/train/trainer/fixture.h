// Small runs: a text of 3,000 symbols, a model of a few thousand parameters, twelve steps.
#pragma once

#include <fstream>

#include "core/io/files.h"
#include "core/ops/arithmetic.h"
#include "tests/tensors.h"
#include "tests/train/tasks/fixture.h"
#include "train/report/metrics_log.h"
#include "train/trainer/checkpoint.h"
#include "train/trainer/trainer.h"

namespace waymark::test {

inline std::string small_text(const TemporaryFolder& folder) { return write_text(folder, sample_text(3000)); }

// Epochs of 5 steps (30 items in batches of 6), three micro-batches a step, dropout, validation every 4 steps.
inline train::Settings small_settings(const std::string& text) {
  return {{"task", "char-mlm(path=\"" + text + "\", context=16, mask_rate=0.3, test_lengths=[32])"},
          {"data.train_size", "30"},
          {"model.embed_dim", "8"},
          {"model.num_heads", "2"},
          {"model.num_layers", "1"},
          {"model.position", "huang-m4(clip=4)"},
          {"model.dropout", "0.1"},
          {"model.attention_dropout", "0.1"},
          {"optim.optimizer", "adamw(lr=1e-2)"},
          {"optim.schedule", "cosine(warmup=3)"},
          {"train.steps", "12"},
          {"train.batch_size", "6"},
          {"optim.accumulate", "3"},
          {"train.eval_every", "4"},
          {"train.save_every", "5"},
          {"train.log_every", "3"},
          {"train.keep", "100"}};
}
inline train::Config small_config(const std::string& text, const train::Settings& more = {}) {
  train::Settings settings = small_settings(text);
  for (const auto& [key, value] : more) {
    bool replaced = false;
    for (auto& [k, v] : settings)
      if (k == key) {
        v = value;
        replaced = true;
      }
    if (!replaced) settings.emplace_back(key, value);
  }
  // A budget replaces the usual one; micro_batch the accumulation.
  const auto given = [&](const char* key) {
    for (const auto& [k, v] : more)
      if (k == key) return true;
    return false;
  };
  std::erase_if(settings, [&](const auto& s) {
    return (s.first == "train.steps" && (given("train.epochs") || given("train.tokens") || given("train.minutes"))) ||
           (s.first == "optim.accumulate" && given("train.micro_batch"));
  });
  return train::make_config(settings);
}

inline nn::StateDict state_of(train::Trainer& trainer) { return trainer.trained_model().module().state_dict(); }
// Bits; empty if equal, else the first name that differs.
inline std::string difference(const nn::StateDict& a, const nn::StateDict& b) {
  if (a.size() != b.size()) return fmt::format("{} and {} tensors", a.size(), b.size());
  const std::map<std::string, Tensor> other(b.begin(), b.end());
  for (const auto& [name, tensor] : a) {
    const auto found = other.find(name);
    if (found == other.end()) return name + ": only in the first";
    if (const std::string d = difference(tensor, found->second); !d.empty()) return name + ": " + d;
  }
  return "";
}
inline double largest_difference(const nn::StateDict& a, const nn::StateDict& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i].second.to_vector<double>(), y = b[i].second.to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k) most = std::max(most, std::abs(x[k] - y[k]));
  }
  return most;
}

// metrics.jsonl without events and without what depends on time.
inline std::string metrics_of(const std::filesystem::path& folder) {
  std::string out;
  for (train::MetricsRecord r : train::read_metrics(folder / "metrics.jsonl").records) {
    if (r.kind == train::MetricsKind::event) continue;
    std::erase_if(r.fields, [](const auto& f) {
      return f.first == "time" || f.first == "tokens_per_s" || f.first == "gflops";
    });
    out += train::metrics_line(r) + "\n";
  }
  return out;
}
// result.json without time, memory, speed, and how often the run was resumed.
inline std::string result_text(train::RunResult r) {
  r.seconds.reset();
  r.cpu_seconds.reset();
  r.peak_memory.reset();
  r.resumes = 0;
  r.cpu.peak_flops = 0;  // measured, too
  return train::result_to_json(r);
}

// The usual model, whose output becomes NaN in the given passes (counted over training passes).
class FaultyModel final : public train::TaskModel {
 public:
  FaultyModel(std::unique_ptr<train::TaskModel> model, std::function<bool(i64)> faulty)
      : model_(std::move(model)), faulty_(std::move(faulty)) {}
  nn::ModuleBase& module() override { return model_->module(); }
  Tensor output(const train::Batch& batch) override {
    const Tensor y = model_->output(batch);
    if (!model_->module().training()) return y;
    return faulty_(pass_++) ? mul(y, std::nan("")) : y;
  }

 private:
  std::unique_ptr<train::TaskModel> model_;
  std::function<bool(i64)> faulty_;
  i64 pass_ = 0;
};
inline train::ModelMaker faulty(std::function<bool(i64)> when) {
  return [when](const train::Config& config, const train::Task& task) -> std::unique_ptr<train::TaskModel> {
    return std::make_unique<FaultyModel>(train::make_task_model(config, task), when);
  };
}

}  // namespace waymark::test
