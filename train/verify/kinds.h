// Internal: the kinds of case files, one function each.
#pragma once

#include "train/verify/case_context.h"

namespace waymark::train {

void run_op_case(CaseContext& context);

}  // namespace waymark::train
