// checkpoint: trades time for memory. f runs as usual, but what its ops would keep for backward is not kept; the first
// rule that needs one of these values runs f once more (Chen et al. 2016, 1604.06174).
//
// * It works at the level of saved values: the nodes of f are real. So hooks, grad(loss, {w}), stepping and
//   create_graph work through it, and checkpoints may be nested.
// * The second run sees the same random draws, in any order of backward, and advances no stream.
// * f must be deterministic: a value of another shape or dtype in the second run is an Error; so is an in-place change
//   of an input since the first.
#pragma once

#include "core/engine/functional.h"

namespace waymark {

WAYMARK_API std::vector<Tensor> checkpoint(const TupleFunction& f, const std::vector<Tensor>& inputs);
WAYMARK_API Tensor checkpoint(const SingleFunction& f, const Tensor& input);

}  // namespace waymark
