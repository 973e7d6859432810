// Discrete Fourier transforms. There is no complex dtype: complex tensors have a trailing axis of
// length 2 (re, im), which `dim` does not count. n: length along dim to which the input is cut or continued with zeros.
// norm: "backward" (factors 1 and 1/n), "ortho" (1/√n both ways), "forward" (1/n and 1).
#pragma once

#include <optional>
#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// (..., L, ...) real -> (..., n/2 + 1, ..., 2)
[[nodiscard]] WAYMARK_API Tensor rfft(Arg x, std::optional<i64> n = {}, i64 dim = -1, std::string_view norm = "backward");
// (..., m, ..., 2) -> (..., n, ...) real; n = 2(m − 1) unless given. Imaginary parts of bins 0 and n/2 do not count.
[[nodiscard]] WAYMARK_API Tensor irfft(Arg x, std::optional<i64> n = {}, i64 dim = -1, std::string_view norm = "backward");
// (..., L, ..., 2) -> (..., n, ..., 2)
[[nodiscard]] WAYMARK_API Tensor fft(Arg x, std::optional<i64> n = {}, i64 dim = -1, std::string_view norm = "backward");
[[nodiscard]] WAYMARK_API Tensor ifft(Arg x, std::optional<i64> n = {}, i64 dim = -1, std::string_view norm = "backward");

}  // namespace waymark
