// Internal: tables of width E that projections turn into rows of heads: transformer-xl, deberta, tupe.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// Parameters "<name>.weight" [out, in], N(0, 0.02²), and "<name>.bias" [out], 0.
void push_projection(std::vector<ParameterSpec>& list, const std::string& name, i64 in, i64 out, bool bias, bool shared = false);
// Parameters "norm.weight" and "norm.bias" [E], 1 and 0.
void push_norm(std::vector<ParameterSpec>& list, i64 width, bool shared);
// eps of the norms of these tables.
inline constexpr double kNormEps = 1e-5;

// [R, H·d] -> [H, R, d]
Tensor rows_by_head(const Tensor& rows, i64 heads);
// The same for rows of fewer heads, which serve groups of the H heads.
Tensor rows_by_group(const Tensor& rows, i64 heads, i64 head_dim);

}  // namespace waymark::nn::encodings
