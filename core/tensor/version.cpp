#include "core/tensor/version.h"

namespace waymark {

const char* version() { return WAYMARK_VERSION; }

}  // namespace waymark
