// Losses. reduction: "mean", "sum" or "none" (kl_div: also "batchmean").
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

struct CrossEntropyOptions {
  Tensor weight{};                    // [C], a factor for each class, any number as in PyTorch; undefined: 1
  i64 ignore_index = -100;            // targets of this value count for nothing
  std::string_view reduction = "mean";
  double label_smoothing = 0;         // this share of the target goes to all classes alike
  // A mean over nothing (all targets ignored, batch 0, total weight 0): "error", or "zero" for value and gradient 0.
  std::string_view empty = "error";
};
// −log softmax(x)[target] of logits x [N, C, ...] or [C]. target: class ids i64 [N, ...] or 0-d; or probabilities of
// x's shape. The mean of class ids divides by the total weight of the kept targets, that of probabilities by the number
// of positions. Error with value and position for an id outside [0, C).
[[nodiscard]] WAYMARK_API Tensor cross_entropy(Arg x, Arg target, const CrossEntropyOptions& options = {});

struct NllLossOptions {
  Tensor weight{};
  i64 ignore_index = -100;
  std::string_view reduction = "mean";
  std::string_view empty = "error";
};
// −logp[target]: cross_entropy of log-probabilities.
[[nodiscard]] WAYMARK_API Tensor nll_loss(Arg logp, Arg target, const NllLossOptions& options = {});

// Between two float tensors of one shape; shapes that differ broadcast, with a warning, as in PyTorch. d = x − target.
[[nodiscard]] WAYMARK_API Tensor mse_loss(Arg x, Arg target, std::string_view reduction = "mean");  // d²
[[nodiscard]] WAYMARK_API Tensor l1_loss(Arg x, Arg target, std::string_view reduction = "mean");   // |d|
// |d| < β: d²/2β, else |d| − β/2
[[nodiscard]] WAYMARK_API Tensor smooth_l1_loss(Arg x, Arg target, std::string_view reduction = "mean", double beta = 1);
// |d| ≤ δ: d²/2, else δ(|d| − δ/2)
[[nodiscard]] WAYMARK_API Tensor huber_loss(Arg x, Arg target, std::string_view reduction = "mean", double delta = 1);
// t·(log t − logq), 0 where t = 0; log_target: t is given as its logarithm. "batchmean" divides by the first extent.
[[nodiscard]] WAYMARK_API Tensor kl_div(Arg logq, Arg target, std::string_view reduction = "mean", bool log_target = false);
// −t·log p − (1−t)·log(1−p), logarithms not below −100; p in [0, 1], else Error. weight: a factor, broadcast.
[[nodiscard]] WAYMARK_API Tensor binary_cross_entropy(Arg p, Arg target, const Tensor& weight = {},
                                                      std::string_view reduction = "mean");
// The same of logits, without overflow. pos_weight: a factor of the positive part.
[[nodiscard]] WAYMARK_API Tensor binary_cross_entropy_with_logits(Arg x, Arg target, const Tensor& weight = {},
                                                                  std::string_view reduction = "mean",
                                                                  const Tensor& pos_weight = {});

}  // namespace waymark
