// Random arguments for a case, in several memory layouts.
#pragma once

#include <random>

#include "tests/ops/op_case.h"

namespace waymark::test {

enum class MemoryLayout { contiguous, permuted, every_second, reversed, offset, expanded };
inline constexpr MemoryLayout kLayouts[] = {MemoryLayout::contiguous, MemoryLayout::permuted, MemoryLayout::every_second,
                                            MemoryLayout::reversed,   MemoryLayout::offset,   MemoryLayout::expanded};
const char* name_of(MemoryLayout layout);

// A leaf and how the op sees it: `view(leaf)` has the case's shape.
struct Sample {
  Tensor leaf;
  MemoryLayout layout = MemoryLayout::contiguous;
  Shape shape;
  Tensor view(const Tensor& t) const;  // recorded ops: the gradient of the leaf comes through the view
};
Sample sample(const CaseArg& arg, MemoryLayout layout, std::mt19937_64& rng);

}  // namespace waymark::test
