// Tasks by name. To add one, write its class with a function beside it that returns its TaskKind, and a line in
// registry.cpp.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "train/tasks/task.h"

namespace waymark::train {

struct TaskKind {
  nn::OptionTable table = {};
  // From the spec alone: no data is read for them.
  std::function<TaskFacts(const nn::Options&)> facts = {};
  // Reads or generates the data. ConfigError for files that are missing or wrong.
  std::function<std::unique_ptr<Task>(const TaskRequest&)> make = {};
};

WAYMARK_API const nn::SpecTables& task_tables();
WAYMARK_API TaskFacts task_facts(const nn::Options& task);
WAYMARK_API std::unique_ptr<Task> make_task(const TaskRequest& request);
// A user's own. Error if the name is taken. Not while another thread resolves specs.
WAYMARK_API void register_task(TaskKind kind);

}  // namespace waymark::train
