#include "train/tasks/registry.h"

// One line per task, in the order of the documentation: the line declares the function of its file, and lists it.
#define WAYMARK_TASKS(X)  \
  X(offset_copy_kind)      \
  X(signed_neighbour_kind) \
  X(char_mlm_kind)

namespace waymark::train {

#define WAYMARK_DECLARE(NAME) TaskKind NAME();
WAYMARK_TASKS(WAYMARK_DECLARE)
#undef WAYMARK_DECLARE

namespace {

struct Kinds {
  nn::SpecTables tables{"task"};
  std::vector<TaskKind> list;
  Kinds() {
#define WAYMARK_ADD(NAME) add(NAME());
    WAYMARK_TASKS(WAYMARK_ADD)
#undef WAYMARK_ADD
  }
  void add(TaskKind kind) {
    tables.add(kind.table);
    list.push_back(std::move(kind));
  }
  const TaskKind& of(const nn::Options& task) const {
    const i64 place = tables.order_of(task.name());
    if (place < 0) fail("registry", "there is no task {}", task.name());
    return list[static_cast<size_t>(place)];
  }
};
Kinds& kinds() {
  static Kinds all;
  return all;
}

}  // namespace

const nn::SpecTables& task_tables() { return kinds().tables; }
TaskFacts task_facts(const nn::Options& task) { return kinds().of(task).facts(task); }
std::unique_ptr<Task> make_task(const TaskRequest& request) { return kinds().of(*request.spec).make(request); }
void register_task(TaskKind kind) { kinds().add(std::move(kind)); }

TaskRequest task_request(const Config& config) {
  TaskRequest r;
  r.spec = &config.spec("task");
  r.seed = static_cast<u64>(config.integer("seed"));
  r.data_seed = static_cast<u64>(config.integer("data.seed"));
  r.data_dir = config.text("data.dir");
  r.split = config.text("data.split");
  r.train_size = config.integer("data.train_size");
  r.val_size = config.integer("data.val_size");
  r.test_size = config.integer("data.test_size");
  return r;
}

}  // namespace waymark::train
