// Adam (Kingma and Ba, 1412.6980) and AdamW (Loshchilov and Hutter, 1711.05101). t = number of the update, from 1.
//
//   Adam:   g += λ θ;   m = β₁ m + (1 − β₁) g;   v = β₂ v + (1 − β₂) g²
//           θ −= lr · m̂ / (√v̂ + ε),   m̂ = m / (1 − β₁ᵗ),   v̂ = v / (1 − β₂ᵗ)
//   AdamW:  θ −= lr λ θ,   then Adam without the λ θ in g
//           bias_correction = false (BERT):   m̂ = m,   v̂ = v
// State: exp_avg (m), exp_avg_sq (v). One sweep over all parameters; under ExplainMode its twin, composed of ops.
#pragma once

#include <array>

#include "train/optim/base.h"

namespace waymark::train {

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;  // L2: added to the gradient
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;  // decoupled
  bool bias_correction = true;
};

// What the two have in common.
class WAYMARK_API AdamBase : public Optimizer {
 public:
  bool has_momentum() const override { return true; }
  double momentum() const override { return betas_[0]; }
  void set_momentum(double value) override;

 protected:
  struct Form {
    bool decoupled = false, bias_correction = true;
  };
  AdamBase(const char* name, std::vector<ParamGroup> groups, Group defaults, std::array<double, 2> betas, double eps,
           Form form);
  void update(std::span<const Item> items, double grad_scale) override;

 private:
  std::array<double, 2> betas_;
  double eps_;
  Form form_;
};

class WAYMARK_API Adam : public AdamBase {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});
  explicit Adam(std::vector<ParamGroup> groups, const AdamOptions& options = {});
};

class WAYMARK_API AdamW : public AdamBase {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options = {});
};

}  // namespace waymark::train
