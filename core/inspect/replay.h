// Internal: an op that was recorded, called again by its name.
#pragma once

#include "core/autograd/op_call.h"
#include "core/autograd/record.h"

namespace waymark::inspect {

// The call that the schema of the op makes of these inputs (in the order of its node's edges, undefined where not given)
// and attributes. Never fails; what is missing is found when it is applied.
OpCall call_of(const OpInfo& op, std::span<const Tensor> inputs,
               const std::vector<std::pair<std::string, AttrValue>>& attributes);

// The results of op.apply. Error if the op has none, or if an argument that it needs was not recorded.
std::vector<Tensor> call_again(const OpInfo& op, std::span<const Tensor> inputs,
                               const std::vector<std::pair<std::string, AttrValue>>& attributes);

}  // namespace waymark::inspect
