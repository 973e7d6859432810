#include "train/tasks/task.h"

#include "core/ops/arithmetic.h"
#include "core/ops/loss.h"
#include "core/ops/shape.h"
#include "nn/spec/suggest.h"

namespace waymark::train {

Tensor Task::loss_sum(const Tensor& output, const Batch& batch) const {
  const i64 classes = output.shape().back();
  return cross_entropy(output.reshape({-1, classes}), batch.targets.reshape({-1}),
                       {.ignore_index = kNotScored, .reduction = "sum"});
}

Tensor Task::divergence_sum(const Tensor& first, const Tensor& second, const Batch& batch, nn::loss::KlOptions options) const {
  options.mask = ne(batch.targets, kNotScored);
  options.reduction = "sum";
  options.empty = "zero";
  return nn::loss::kl_div(first, second, options);
}

Batch Task::batch_of_text(std::string_view) const { fail(spec_.name(), "it reads no texts of users; name an item of a split"); }

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
