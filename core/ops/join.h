// Joining tensors and taking them apart. Negative dims count from the end.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

// Along an existing axis; the other extents are equal. 1-d tensors of extent 0 are skipped among others. Dtypes
// promote.
[[nodiscard]] WAYMARK_API Tensor cat(TensorList tensors, i64 dim = 0);
// Along a new axis; all shapes equal.
[[nodiscard]] WAYMARK_API Tensor stack(TensorList tensors, i64 dim = 0);
[[nodiscard]] WAYMARK_API Tensor hstack(TensorList tensors);  // cat on axis 1, of 1-d tensors on axis 0
[[nodiscard]] WAYMARK_API Tensor vstack(TensorList tensors);  // cat on axis 0 of tensors with at least 2 axes

// Views, all outputs of one node; they may not be changed in place while gradients are recorded.
[[nodiscard]] WAYMARK_API std::vector<Tensor> split(Arg x, i64 split_size, i64 dim = 0);  // the last one may be short
[[nodiscard]] WAYMARK_API std::vector<Tensor> split(Arg x, const std::vector<i64>& sizes,
                                                    i64 dim = 0);  // sizes add up to the extent
[[nodiscard]] WAYMARK_API std::vector<Tensor> chunk(Arg x, i64 chunks,
                                                    i64 dim = 0);  // pieces of ⌈n/chunks⌉, maybe fewer
[[nodiscard]] WAYMARK_API std::vector<Tensor> tensor_split(Arg x, i64 sections, i64 dim = 0);  // exactly so many pieces
[[nodiscard]] WAYMARK_API std::vector<Tensor> tensor_split(Arg x, const std::vector<i64>& indices, i64 dim = 0);
[[nodiscard]] WAYMARK_API std::vector<Tensor> unbind(Arg x, i64 dim = 0);  // the axis goes away

// Each 1-d (or 0-d) tensor along its own axis, expanded to the common shape; indexing "xy" swaps the first two axes.
[[nodiscard]] WAYMARK_API std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij");

}  // namespace waymark
