// Linear: y = x·Wᵀ + b.
#pragma once

#include "nn/module/module.h"

namespace waymark::nn {

// weight [out, in] and bias [out], both U(±1/√in) as PyTorch's. x [..., in] -> [..., out].
class WAYMARK_API Linear : public Module<Linear> {
 public:
  Linear(ModuleBase& parent, std::string_view name, i64 in, i64 out, bool with_bias = true)
      : Linear(&parent, name, in, out, with_bias) {}
  Linear(i64 in, i64 out, bool with_bias = true) : Linear(nullptr, "", in, out, with_bias) {}

  Tensor forward(const Tensor& x) const;

  Tensor weight, bias;  // bias undefined without one

 private:
  Linear(ModuleBase* parent, std::string_view name, i64 in, i64 out, bool with_bias);
};

}  // namespace waymark::nn
