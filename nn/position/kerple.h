// Internal: KERPLE (Chi et al. 2022), biases of two trained numbers per head.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// bias(distance, p, a): distance |δ| [R], p and a [H, 1] within their bounds -> [H, R].
EncodingInfo kerple(std::string name, std::string doc, std::string formula, double largest_p,
                    Tensor (*bias)(const Tensor& distance, const Tensor& p, const Tensor& a));

}  // namespace waymark::nn::encodings
