// Sorting, choosing by rank, searching. Always stable: of equals the lower index comes first.
// NaN is the largest. Gradients go to the index that was chosen.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

[[nodiscard]] WAYMARK_API ValuesIndices sort(Arg x, i64 dim = -1, bool descending = false);
[[nodiscard]] WAYMARK_API Tensor argsort(Arg x, i64 dim = -1, bool descending = false);
// The k largest (smallest), best first (also if sorted = false, which only allows any order).
[[nodiscard]] WAYMARK_API ValuesIndices topk(Arg x, i64 k, i64 dim = -1, bool largest = true, bool sorted = true);
// The k-th smallest, k from 1.
[[nodiscard]] WAYMARK_API ValuesIndices kthvalue(Arg x, i64 k, i64 dim = -1, bool keepdim = false);
// The lower of the two middle elements; NaN if there is one. The full median shares its gradient among ties, and is NaN
// of nothing. nanmedian leaves NaN out.
[[nodiscard]] WAYMARK_API Tensor median(Arg x);
[[nodiscard]] WAYMARK_API ValuesIndices median(Arg x, i64 dim, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor nanmedian(Arg x);
[[nodiscard]] WAYMARK_API ValuesIndices nanmedian(Arg x, i64 dim, bool keepdim = false);
// Between the two elements around rank q·(n − 1), linearly; without dim of the flattened x. NaN if there is one.
// Several q give a new first axis.
[[nodiscard]] WAYMARK_API Tensor quantile(Arg x, double q, std::optional<i64> dim = {}, bool keepdim = false);
[[nodiscard]] WAYMARK_API Tensor quantile(Arg x, const std::vector<double>& q, std::optional<i64> dim = {},
                                          bool keepdim = false);

// The different elements of the flattened x, ascending; where each element of x is among them; how often each occurs.
struct Unique {
  Tensor output, inverse_indices, counts;  // the last two undefined unless asked for
};
[[nodiscard]] WAYMARK_API Unique unique(Arg x, bool sorted = true, bool return_inverse = false,
                                        bool return_counts = false);
// i with b[i−1] < v ≤ b[i] (right: b[i−1] ≤ v < b[i]) in an ascending sequence: 1-d, or with the leading axes of x.
[[nodiscard]] WAYMARK_API Tensor searchsorted(Arg sorted_sequence, Arg x, bool right = false);
[[nodiscard]] WAYMARK_API Tensor bucketize(Arg x, Arg boundaries, bool right = false);

}  // namespace waymark
