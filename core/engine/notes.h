// What is remarkable at a node: kinks that were hit, saturation, gradients that are exactly 0 or not finite.
#pragma once

#include "core/engine/card.h"

namespace waymark {

// Where the derivative of an op jumps, as its OpInfo says in words ("x = 0", "x = min, x = max", "a = b", "ties").
struct Kink {
  enum class Kind : u8 { value, integer, operands, ties } kind{};
  double value = 0;  // of Kind::value
  std::string text;  // "x = 0"
};
// Those that can be counted, with the values of the attributes put in.
WAYMARK_API std::vector<Kink> kinks_of(const OpInfo& op, const std::vector<std::pair<std::string, AttrValue>>& attributes);

// The axis that the attribute `dim` names, for a tensor with so many; -1: there is none, or several.
WAYMARK_API int axis_of(const std::vector<std::pair<std::string, AttrValue>>& attributes, int axes);

// The notes of a card whose other fields are filled in.
WAYMARK_API std::vector<std::string> notes_of(const NodeCard& card, const OpInfo& op);

}  // namespace waymark
