// The list of all ops. Nothing registers itself: static initialisers of an archive are dropped by the linker.
#pragma once

#include <span>

#include "core/autograd/op_info.h"

namespace waymark {

// In the order of registry.cpp: by family.
WAYMARK_API std::span<const OpInfo* const> all_ops();
// By name; null if there is none.
WAYMARK_API const OpInfo* find_op(std::string_view name);

}  // namespace waymark
