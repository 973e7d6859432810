// Streaming metrics: sums over items or positions, so that a short last batch has its exact weight, and batch size and
// order do not matter. All sums are f64.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/report/result.h"
#include "train/tasks/batch.h"

namespace waymark::train {

class WAYMARK_API Metrics {
 public:
  virtual ~Metrics() = default;
  // `output` of the model for this batch. Grad mode is off.
  virtual void add(const Tensor& output, const Batch& batch) = 0;
  // By name, the main one first. Error if nothing was added.
  virtual std::vector<std::pair<std::string, MetricValue>> values() const = 0;
  // What the values were measured on.
  virtual i64 n() const = 0;
};

// accuracy (largest logit, the first on a tie) and loss (nats) over the scored targets: classify, tag, lm, mlm.
// output [B, L, C] or [B, C], targets of the same shape without C.
class WAYMARK_API ScoredMetrics final : public Metrics {
 public:
  void add(const Tensor& output, const Batch& batch) override;
  std::vector<std::pair<std::string, MetricValue>> values() const override;
  i64 n() const override { return n_; }

 private:
  i64 n_ = 0, right_ = 0;
  double nats_ = 0;
};

}  // namespace waymark::train
