// Errors of parsers: what is wrong with a text, where, and the place with a caret.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark::nn {

// An Error like this; `at` counts bytes, the column characters from 1:
//   spec: expected ')' or ',' at column 17
//     huang-m4(clip=16
//                     ^
[[noreturn]] WAYMARK_API void fail_at(std::string_view op, std::string_view text, size_t at, const std::string& what);

}  // namespace waymark::nn
