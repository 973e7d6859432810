// Gradient clipping, with the names and results of torch.nn.utils.
//
//   loss.backward();
//   const double norm = train::clip_grad_norm_(net.parameters(), 1.0);
//   optimizer.step();
//
// The trainer does not change the gradients: it computes the norm and passes the factor to Optimizer::step.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::train {

// Norm of all gradients taken as one vector; parameters without a gradient count as nothing. Accumulated in f64, in an
// order that depends on the sizes alone. norm_type: 2, any other number > 0, or infinity (largest absolute value).
// Error for another norm_type.
WAYMARK_API double grad_norm(const std::vector<Tensor>& parameters, double norm_type = 2);

// min(1, max_norm / (norm + 1e-6)), PyTorch's factor: (3, 4) with 1 becomes (0.59999988, 0.79999984). Error unless
// max_norm >= 0.
WAYMARK_API double clip_factor(double norm, double max_norm);

struct ClipNormOptions {
  double norm_type = 2;
  bool error_if_nonfinite = false;  // Error before anything is changed; otherwise the gradients become NaN
};
// Scales the gradients so that their norm is at most max_norm. Returns the norm before clipping.
WAYMARK_API double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                   const ClipNormOptions& options = {});

// Cuts every gradient element to [-clip_value, clip_value]. Error unless clip_value >= 0.
WAYMARK_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace waymark::train
