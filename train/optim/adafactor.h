// Adafactor (Shazeer and Stern, 1804.04235) without momentum: the second moment of a matrix is kept as row and column
// means.
//
//   β = 1 − t^decay;   V = β V + (1 − β)(g² + ε₁), of matrices (rank >= 2, over the last two axes) only its means over
//   rows, R, and columns, C:   V̂ = R Cᵀ / mean(R)
//   u = g / √V̂;   u /= max(1, RMS(u) / clip);   θ −= α u, after θ −= α λ θ
//   α = lr, or without an lr the relative step max(ε₂, RMS(θ)) · min(10⁻², 1/√t)
// State: exp_avg_sq_row (R, [..., rows]), exp_avg_sq_col (C, [..., columns]), or exp_avg_sq for rank < 2.
#pragma once

#include <array>
#include <optional>

#include "train/optim/base.h"

namespace waymark::train {

struct AdafactorOptions {
  std::optional<double> lr = {};               // none: relative steps
  std::array<double, 2> eps = {1e-30, 1e-3};   // ε₁, ε₂
  double clip = 1;
  double decay = -0.8;
  double weight_decay = 0;
};

class WAYMARK_API Adafactor : public Optimizer {
 public:
  explicit Adafactor(std::vector<Tensor> params, const AdafactorOptions& options = {});
  explicit Adafactor(std::vector<ParamGroup> groups, const AdafactorOptions& options = {});
  // With relative steps, lr() of the groups is a factor on them, 1 at first: what a schedule moves.
  bool relative() const { return relative_; }

 protected:
  void update(std::span<const Item> items, double grad_scale) override;
  std::optional<Shape> state_shape(size_t slot, const Tensor& param) const override;

 private:
  std::array<double, 2> eps_;
  double clip_, decay_;
  bool relative_;
};

}  // namespace waymark::train
