// Version of Waymark, as CMakeLists.txt states it: "0.1.0".
#pragma once

#include "core/tensor/types.h"

namespace waymark {

WAYMARK_API const char* version();

}  // namespace waymark
