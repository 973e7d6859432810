// Look-up of rows.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// weight[ids]: ids i64 of any shape, weight [rows, width]; result [..., width]. Error with value and position for an id
// outside the table. The gradient of row `padding_idx` (negative: from the end) is 0.
[[nodiscard]] WAYMARK_API Tensor embedding(Arg ids, Arg weight, std::optional<i64> padding_idx = {});
// i64 [..., classes] with a 1 at each id; classes = -1: the largest id plus 1.
[[nodiscard]] WAYMARK_API Tensor one_hot(Arg ids, i64 num_classes = -1);

}  // namespace waymark
