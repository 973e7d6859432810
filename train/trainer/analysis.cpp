#include "train/trainer/analysis.h"

#include <algorithm>

#include "train/inspect/layer_report.h"

namespace waymark::train {

void write_analysis(const std::filesystem::path& folder, TaskModel& model, const Task& task, i64 items) {
  const std::string_view split = task.has_split("val") ? "val" : "test";
  if (!task.has_split(split)) return;
  const ModelReport report = look_at_model(model, std::min(items, task.split(split).size), [&](i64 item) {
    const i64 one[] = {item};
    return task.evaluation_batch(split, one);
  });
  write_arrays(folder, report);
}

}  // namespace waymark::train
