#include "train/tasks/task.h"

#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "nn/spec/suggest.h"

namespace waymark::train {

Tensor Task::loss_sum(const Tensor& output, const Batch& batch) const {
  const i64 classes = output.shape().back();
  const Tensor targets = batch.targets.reshape({-1});
  const Tensor pick = make_empty({targets.numel(), classes}, output.dtype());
  visit_float(output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < targets.numel(); ++i)
      for (i64 c = 0; c < classes; ++c) pick.data<T>()[i * classes + c] = targets.data<i64>()[i] == c ? T(-1) : T(0);
  });
  return sum(log_softmax(output.reshape({-1, classes}), -1) * pick);
}

const SplitFacts& Task::split(std::string_view name) const {
  std::vector<std::string> names;
  for (const SplitFacts& s : splits()) {
    if (s.name == name) return s;
    names.push_back(s.name);
  }
  fail(spec_.name(), "there is no split {}; there are {}.{}", nn::printable(name), fmt::join(names, ", "),
       nn::did_you_mean(name, names));
}

bool Task::has_split(std::string_view name) const {
  for (const SplitFacts& s : splits())
    if (s.name == name) return true;
  return false;
}

}  // namespace waymark::train
