// LAMB (You et al., 1904.00962): Adam's direction, scaled for each tensor by the ratio of norms.
//
//   u = m̂ / (√v̂ + ε) + λ θ;   θ −= lr · r · u,   r = ‖θ‖ / ‖u‖ if both are > 0, else 1
// State: exp_avg, exp_avg_sq.
#pragma once

#include <array>

#include "train/optim/base.h"

namespace waymark::train {

struct LambOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.01;
};

class WAYMARK_API Lamb : public Optimizer {
 public:
  explicit Lamb(std::vector<Tensor> params, const LambOptions& options = {});
  explicit Lamb(std::vector<ParamGroup> groups, const LambOptions& options = {});

  bool has_momentum() const override { return true; }
  double momentum() const override { return betas_[0]; }
  void set_momentum(double value) override;

 protected:
  void update(std::span<const Item> items, double grad_scale) override;

 private:
  std::array<double, 2> betas_;
  double eps_;
};

}  // namespace waymark::train
