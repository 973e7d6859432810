// A finite-difference check of one node of a backward run: the op alone is called again by its name
// in f64 on its recorded inputs, and ⟨g, ∂f⟩ is compared with what its rule returned.
#pragma once

#include <functional>

#include "core/engine/card.h"

namespace waymark::inspect {

struct CheckOptions {
  // Inputs of up to so many elements are checked whole; larger ones at the largest entries, at random ones, and along
  // random directions.
  i64 all_elements = 4096;
  i64 largest = 64, random = 64, directions = 4;
  u64 seed = 0;
  // Asked now and then; true ends the check, which then says that it was interrupted.
  std::function<bool()> stop{};
};

// The card must come from a run under a Recorder that kept values. Never throws: where the check is not possible, the
// result says why. Elements within 10 steps of a declared kink are left out and counted. The error is relative to the
// largest entry of the gradient; at most 1e-4 passes for f32, 1e-6 for f64.
WAYMARK_API NodeCheck check_node(const NodeCard& card, const CheckOptions& options = {});

}  // namespace waymark::inspect
