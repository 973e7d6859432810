// Auxiliary losses: what a module adds to the loss in training beside its output (the commitment loss of routing). It is
// handed to whoever listens on this thread, so that a module keeps nothing of a call.
//
//   AuxiliaryLosses collected;
//   Tensor loss = task_loss(model(batch));
//   for (const auto& [name, term] : collected.auxiliary_losses()) loss = loss + term;   // "encoder.layers.0.attention.commitment"
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::nn {

// Listens from its construction to its end on this thread; the innermost one counts.
class WAYMARK_API AuxiliaryLosses {
 public:
  AuxiliaryLosses();
  ~AuxiliaryLosses();
  AuxiliaryLosses(const AuxiliaryLosses&) = delete;
  AuxiliaryLosses& operator=(const AuxiliaryLosses&) = delete;

  // Scalars by the path of their module and their name, in the order of the calls.
  const std::vector<std::pair<std::string, Tensor>>& auxiliary_losses() const { return list_; }

 private:
  friend void publish_auxiliary_loss(std::string name, const Tensor& loss);
  std::vector<std::pair<std::string, Tensor>> list_;
  AuxiliaryLosses* outer_;
};

// Without a listener it is dropped.
WAYMARK_API void publish_auxiliary_loss(std::string name, const Tensor& loss);

}  // namespace waymark::nn
