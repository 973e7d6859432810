// Internal: Huang 2020, methods 1 and 2 as commonly cited: scalar multipliers of the content score, per head.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// rows: of `scale` for a clip; index: the row of a difference.
EncodingInfo huang_scalar(std::string name, std::string doc, std::string formula, bool sees_direction, i64 (*rows)(i64 clip),
                          PairIndex (*index)(i64 clip));

}  // namespace waymark::nn::encodings
