// Activations by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::nn {

// gelu (exact, by erf), gelu_tanh, relu, silu.
WAYMARK_API std::vector<std::string> activation_names();

class WAYMARK_API Activation {
 public:
  // Error for an unknown name, with suggestions.
  explicit Activation(std::string_view name);
  Tensor operator()(const Tensor& x) const { return function_(x); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Tensor (*function_)(const Tensor& x);
};

}  // namespace waymark::nn
