// Rotation of channel pairs by position-dependent angles (Su et al. 2021): what rope and its relatives are made of.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// x [..., L, d]; cos, sin [..., L, m] with 2m <= d, constants whose leading axes broadcast to x's. Pair t of the first
// 2m channels, (2t, 2t + 1), or (t, t + m) with halves, becomes (a c - b s, a s + b c); the other channels stay.
// The gradient is the rotation by the opposite angles.
[[nodiscard]] WAYMARK_API Tensor rotate_pairs(Arg x, Arg cos, Arg sin, bool halves = false);

}  // namespace waymark
