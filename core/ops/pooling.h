// Pooling and interpolation along the last axis; any leading axes.
#pragma once

#include <optional>
#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// Means of windows; stride: kernel_size unless given. count_include_pad: padded zeros count in the mean. ceil_mode: a
// last window that is not full counts, too.
[[nodiscard]] WAYMARK_API Tensor avg_pool1d(Arg x, i64 kernel_size, std::optional<i64> stride = {}, i64 padding = 0,
                                            bool ceil_mode = false, bool count_include_pad = true);
// Largest elements of windows; the gradient goes to the first one on a tie.
[[nodiscard]] WAYMARK_API Tensor max_pool1d(Arg x, i64 kernel_size, std::optional<i64> stride = {}, i64 padding = 0,
                                            i64 dilation = 1, bool ceil_mode = false);
// output_size means over [⌊jL/m⌋, ⌈(j+1)L/m⌉).
[[nodiscard]] WAYMARK_API Tensor adaptive_avg_pool1d(Arg x, i64 output_size);
// The last axis at another length. mode "nearest": x[⌊i·L/size⌋]; "linear": between the two neighbours, of centres of
// cells, or with align_corners of a grid whose ends stay.
[[nodiscard]] WAYMARK_API Tensor interpolate(Arg x, i64 size, std::string_view mode = "nearest", bool align_corners = false);

}  // namespace waymark
