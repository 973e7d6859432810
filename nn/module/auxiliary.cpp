#include "nn/module/auxiliary.h"

namespace waymark::nn {

namespace {
thread_local AuxiliaryLosses* listener = nullptr;
}

AuxiliaryLosses::AuxiliaryLosses() : outer_(listener) { listener = this; }
AuxiliaryLosses::~AuxiliaryLosses() { listener = outer_; }

void publish_auxiliary_loss(std::string name, const Tensor& loss) {
  if (listener) listener->list_.emplace_back(std::move(name), loss);
}

}  // namespace waymark::nn
