// Globs over names and specs: * stands for any text, also none, ? for one character, everything else for itself
// (brackets too: they belong to specs). The whole text must match. Linear in both lengths for each star.
#pragma once

#include <string_view>

#include "core/tensor/types.h"

namespace waymark::nn {

WAYMARK_API bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace waymark::nn
