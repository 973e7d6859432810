#include "nn/layers/dropout.h"

#include "core/ops/dropout.h"

namespace waymark::nn {

void check_dropout(std::string_view what, double p) {
  if (!(p >= 0 && p < 1)) fail("dropout", "{} is {}: must be at least 0 and less than 1", what, p);
}

Dropout::Dropout(ModuleBase* parent, std::string_view name, double p) : Module(parent, name), p_(p) {
  check_dropout("p", p);
}

Tensor Dropout::forward(const Tensor& x) const {
  return dropout(x, p_, training());
}

}  // namespace waymark::nn
