// Conversions and copies.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// x in another dtype; x itself if it has it already. The gradient of float -> float is cast back.
[[nodiscard]] WAYMARK_API Tensor to(Arg x, DType dtype);
// A copy in new memory, in x's memory order.
[[nodiscard]] WAYMARK_API Tensor clone(Arg x);
// x itself if it is row-major already, else a copy that is.
[[nodiscard]] WAYMARK_API Tensor contiguous(Arg x);
// The same values without history; shares memory and version.
[[nodiscard]] WAYMARK_API Tensor detach(Arg x);

}  // namespace waymark
