// Dropout. The mask is never stored: backward draws it again from its key.
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// x ⊙ m / (1 − p) with m ~ Bernoulli(1 − p) in training; x itself otherwise, and for p = 0; zeros for p = 1. The draw
// comes from the stream "<module path>.dropout" of the active scope ("dropout" without one), with the coordinates of
// x's elements: pass tensors as the model has them ([B, L, E]), not flattened. Error if p is outside [0, 1].
[[nodiscard]] WAYMARK_API Tensor dropout(Arg x, double p = 0.5, bool training = true);
// The stream that dropout in this scope draws from.
WAYMARK_API std::string dropout_stream();

}  // namespace waymark
