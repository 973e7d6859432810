// What a result says about the machine and the process.
#pragma once

#include <string>

#include "train/report/result.h"

namespace waymark::train {

WAYMARK_API CpuFacts cpu_facts();      // model, cores used, their peak, BLAS core name
WAYMARK_API double process_cpu_seconds();
WAYMARK_API std::string utc_now();     // 2025-01-31T12:00:00Z

}  // namespace waymark::train
