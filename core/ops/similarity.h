// Lengths, angles and distances of vectors. Removable singularities have gradient 0.
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// x / max(‖x‖_p, eps) along dim, p >= 1.
[[nodiscard]] WAYMARK_API Tensor normalize(Arg x, double p = 2, i64 dim = 1, double eps = 1e-12);
// a·b / (max(‖a‖, eps)·max(‖b‖, eps)) along dim; a and b broadcast.
[[nodiscard]] WAYMARK_API Tensor cosine_similarity(Arg a, Arg b, i64 dim = 1, double eps = 1e-8);
// ‖a − b + eps‖_p along the last axis, p >= 1.
[[nodiscard]] WAYMARK_API Tensor pairwise_distance(Arg a, Arg b, double p = 2, double eps = 1e-6, bool keepdim = false);
// ‖aᵢ − bⱼ‖_p of all pairs of rows: (..., P, M), (..., R, M) -> (..., P, R), p >= 1. Beyond 25 rows, p = 2 goes by
// ‖a‖² + ‖b‖² − 2a·b, which is faster and less exact for close points.
[[nodiscard]] WAYMARK_API Tensor cdist(Arg a, Arg b, double p = 2);
// target 1: 1 − cos; target −1: max(0, cos − margin). a, b (N, D) with target (N), or (D) with a 0-d target.
[[nodiscard]] WAYMARK_API Tensor cosine_embedding_loss(Arg a, Arg b, Arg target, double margin = 0,
                                                       std::string_view reduction = "mean");

}  // namespace waymark
