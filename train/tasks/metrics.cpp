#include "train/tasks/metrics.h"

#include <cmath>

#include "core/ops/convert.h"

namespace waymark::train {

void ScoredMetrics::add(const Tensor& output, const Batch& batch) {
  Shape expected = batch.targets.shape();
  const i64 classes = output.dim() > 0 ? output.shape().back() : 0;
  expected.push_back(classes);
  if (!(output.shape() == expected) || classes == 0)
    fail("metrics", "the model gave {} for targets {}; must be [{}, classes]", output.shape(), batch.targets.shape(),
         fmt::join(batch.targets.shape().vec(), ", "));
  const Tensor logits = contiguous(output), targets = contiguous(batch.targets);
  const i64* target = targets.data<i64>();
  visit_float(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* row = logits.data<T>();
    for (i64 i = 0; i < targets.numel(); ++i, row += classes) {
      const i64 want = target[i];
      if (want == kNotScored) continue;
      if (want < 0 || want >= classes) fail("metrics", "target {} is no class: there are {}", want, classes);
      i64 best = 0;
      bool nan = false;
      for (i64 c = 0; c < classes; ++c) {
        nan |= std::isnan(row[c]);
        if (row[c] > row[best]) best = c;
      }
      const double most = static_cast<double>(row[best]);
      double sum = 0;
      for (i64 c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - most);
      nats_ += nan ? std::nan("") : most + std::log(sum) - static_cast<double>(row[want]);
      right_ += !nan && best == want;
      ++n_;
    }
  });
}

std::vector<std::pair<std::string, MetricValue>> ScoredMetrics::values() const {
  if (n_ == 0) fail("metrics", "no target was scored");
  const double n = static_cast<double>(n_);
  return {{"accuracy", metric_value("accuracy", static_cast<double>(right_) / n, n_)},
          {"loss", metric_value("loss", nats_ / n, n_)}};
}

}  // namespace waymark::train
