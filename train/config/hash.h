// XXH3-128 as 32 hex digits: ids of runs, fingerprints of data.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark::train {

WAYMARK_API std::string xxh128_hex(std::string_view bytes);

}  // namespace waymark::train
