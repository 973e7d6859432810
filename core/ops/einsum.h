// Sums of products named by letters (as torch.einsum), by permute, sum, mul and matmul.
#pragma once

#include <string_view>
#include <vector>

#include "core/autograd/arg.h"

namespace waymark {

// "bhid,bhjd->bhij": a letter (a-z, A-Z) names an axis; equal letters have equal extents, or 1, which broadcasts. A
// letter that is absent behind "->" is summed over; without "->" the result has the letters that occur once, in
// alphabetical order. A letter twice in one term is its diagonal; "..." stands for leading axes that broadcast. Spaces
// are ignored. Three operands and more are contracted pair by pair, the smallest intermediate result first.
[[nodiscard]] WAYMARK_API Tensor einsum(std::string_view equation, TensorList operands);
// Sum over the last `dims` axes of a and the first ones of b.
[[nodiscard]] WAYMARK_API Tensor tensordot(Arg a, Arg b, i64 dims = 2);
// Over these axes, pair by pair.
[[nodiscard]] WAYMARK_API Tensor tensordot(Arg a, Arg b, const std::vector<i64>& dims_a, const std::vector<i64>& dims_b);
// Kronecker product: blocks of b scaled by the elements of a; any ranks.
[[nodiscard]] WAYMARK_API Tensor kron(Arg a, Arg b);

}  // namespace waymark
