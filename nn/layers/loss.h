// Losses as modules, for those who keep them in a model; the functions of core/ops/loss.h do the work. Losses of whole
// tasks (item weights, SAR, R-Drop, answer spans) are functions in nn/loss/loss.h.
//
//   nn::CrossEntropyLoss loss({.label_smoothing = 0.1});
//   loss(logits, targets).backward();
#pragma once

#include <string>

#include "core/ops/loss.h"
#include "nn/module/module.h"

namespace waymark::nn {

// logits [N, C, ...] and class ids [N, ...] (or probabilities); see cross_entropy.
class CrossEntropyLoss : public Module<CrossEntropyLoss> {
 public:
  struct Options {
    Tensor weight = {};  // [C]
    i64 ignore_index = -100;
    std::string reduction = "mean";
    double label_smoothing = 0;
  };
  CrossEntropyLoss() = default;
  explicit CrossEntropyLoss(Options options) : options_(std::move(options)) {}
  Tensor forward(const Tensor& logits, const Tensor& target) const {
    return cross_entropy(logits, target, {.weight = options_.weight, .ignore_index = options_.ignore_index,
                                          .reduction = options_.reduction, .label_smoothing = options_.label_smoothing});
  }

 private:
  Options options_;
};

// Mean of (x - target)²; see mse_loss.
class MSELoss : public Module<MSELoss> {
 public:
  explicit MSELoss(std::string reduction = "mean") : reduction_(std::move(reduction)) {}
  Tensor forward(const Tensor& x, const Tensor& target) const { return mse_loss(x, target, reduction_); }

 private:
  std::string reduction_;
};

// Mean of |x - target|; see l1_loss.
class L1Loss : public Module<L1Loss> {
 public:
  explicit L1Loss(std::string reduction = "mean") : reduction_(std::move(reduction)) {}
  Tensor forward(const Tensor& x, const Tensor& target) const { return l1_loss(x, target, reduction_); }

 private:
  std::string reduction_;
};

}  // namespace waymark::nn
