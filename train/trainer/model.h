// TaskModel: the model that belongs to a task, behind one interface for all kinds of tasks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/encoder.h"
#include "nn/module/module.h"
#include "train/config/config.h"
#include "train/tasks/task.h"

namespace waymark::train {

class WAYMARK_API TaskModel {
 public:
  virtual ~TaskModel() = default;
  virtual nn::ModuleBase& module() = 0;
  // What the task's loss and metrics expect for this batch.
  virtual Tensor output(const Batch& batch) = 0;
  // Forward, in which the attention of each layer and what it is given are shown, without gradients. A model without
  // attention shows nothing.
  virtual void visit_attentions(const Batch&, const models::AttentionVisitor&) {}
  // Every attention with all its options, and which pairs of tokens it joins in an item of training; whole lines.
  virtual std::string attention_report() const { return ""; }
  // Properties that are lost with this choice of encodings and attentions: the judge's warnings.
  virtual std::vector<std::string> warnings() const { return {}; }
  // Longest item it can take at positions that training reaches; 0: any. Rows of a learned table beyond it stay as they
  // were made.
  virtual i64 trained_rows() const { return 0; }
};

using ModelMaker = std::function<std::unique_ptr<TaskModel>(const Config&, const Task&)>;

// The model that the config describes, with initial values from the generator in force.
WAYMARK_API std::unique_ptr<TaskModel> make_task_model(const Config& config, const Task& task);

// The names of its parameters, without reading data: from a model with a vocabulary of one symbol. Nothing if the model is
// so large that it would take long. Throws what the model's constructor throws.
WAYMARK_API std::optional<std::vector<std::string>> parameter_names(const Config& config);

}  // namespace waymark::train
