// Internal: the kinds of case files, one function each.
#pragma once

#include "train/optim/base.h"
#include "train/verify/case_context.h"

namespace waymark::train {

void run_op_case(CaseContext& context);
void run_optimizer_case(CaseContext& context);

// An optimizer by name, with the options of a case's JSON.
std::unique_ptr<Optimizer> optimizer_from_case(std::vector<ParamGroup> groups, const std::string& name, const Json::Object& options);

}  // namespace waymark::train
