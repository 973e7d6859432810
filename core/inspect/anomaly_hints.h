// Internal: causes of non-finite values that are known, and the words for their cure.
#pragma once

#include <string>

#include "core/autograd/record.h"

namespace waymark::inspect {

// An op whose output takes some elements and leaves others.
bool picks_elements(std::string_view op);
// An op that works element by element, its inputs broadcast to its output.
bool works_by_element(const OpInfo& op);

// "branch not taken here; ..."
std::string branch_hint();
// The op itself made a non-finite value.
std::string forward_hint(const OpInfo& op, std::span<const Tensor> inputs, const Tensor& output,
                         const std::vector<std::pair<std::string, AttrValue>>& attributes);
// The rule did, from finite or less bad saved values.
std::string backward_hint(const Node& node, const Tensor& gradient);

}  // namespace waymark::inspect
