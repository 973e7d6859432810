// SGD with momentum (Sutskever et al. 2013, in PyTorch's form: the learning rate outside of the velocity).
//
//   g += λ θ;   b = g at the first update, else μ b + (1 − δ) g;   θ −= lr (g + μ b) with nesterov, else θ −= lr b
// State: momentum_buffer (b), if there is a momentum.
#pragma once

#include "train/optim/base.h"

namespace waymark::train {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0, dampening = 0;  // μ, δ
  double weight_decay = 0;
  bool nesterov = false;  // Error unless momentum > 0 and dampening = 0
};

class WAYMARK_API SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  explicit SGD(std::vector<ParamGroup> groups, const SGDOptions& options = {});

  bool has_momentum() const override { return momentum_ > 0; }
  double momentum() const override { return momentum_; }
  void set_momentum(double value) override;

 protected:
  void update(std::span<const Item> items, double grad_scale) override;

 private:
  double momentum_, dampening_;
  bool nesterov_;
};

}  // namespace waymark::train
