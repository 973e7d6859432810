// FeedForward: linear, activation, linear, as the layers of a transformer have it.
#pragma once

#include "nn/layers/activation.h"
#include "nn/layers/linear.h"

namespace waymark::nn {

// Parameters `0.weight` [hidden, width], `0.bias`, `2.weight` [width, hidden], `2.bias`, as in a Sequential whose item 1
// is the activation. x [..., width] -> [..., width].
class WAYMARK_API FeedForward : public Module<FeedForward> {
 public:
  FeedForward(ModuleBase& parent, std::string_view name, i64 width, i64 hidden, std::string_view activation = "gelu",
              bool bias = true)
      : Module(parent, name),
        up(*this, "0", width, hidden, bias),
        down(*this, "2", hidden, width, bias),
        activation_(activation) {}
  FeedForward(i64 width, i64 hidden, std::string_view activation = "gelu", bool bias = true)
      : up(*this, "0", width, hidden, bias), down(*this, "2", hidden, width, bias), activation_(activation) {}

  Tensor forward(const Tensor& x) const { return down(activation_(up(x))); }

  Linear up, down;

 private:
  Activation activation_;
};

}  // namespace waymark::nn
