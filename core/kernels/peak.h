// What the processor could do: one of the two floors that speeds are compared with.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// Most f32 operations a second of one core, multiply-add = 2, measured once in a few milliseconds: independent
// multiply-adds in registers, the best of several short rounds, so that other work on the machine spoils only some.
WAYMARK_API double fma_peak();

}  // namespace waymark::kernels
