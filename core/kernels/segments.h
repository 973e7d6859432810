// Sums of rows that go to the same destination: the gradient of embedding, index_add and their relatives.
//
// Contributions to one destination are taken in ascending source position and added in the tree of engine.md 9.1, so a
// destination that receives 10^6 rows is as exact as any other sum, and the bits do not depend on the threads.
#pragma once

#include <span>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::kernels {

// Sources by destination: those of destination d are source[begin[d]] ... source[begin[d + 1] - 1], ascending.
struct Segments {
  std::vector<i64> begin, source;
};
// destination[i] in [0, destinations), or -1: source i goes nowhere.
Segments group_by_destination(std::span<const i64> destination, i64 destinations);

// out[d, :] = Σ over the sources s of d of x[s, :]; rows of `width` elements, `row` elements apart in x and `out_row` in
// out. With `add`, the sum is added to what out holds.
template <class T>
void sum_segments(const Segments& segments, const T* x, i64 row, i64 width, T* out, i64 out_row, bool add);

}  // namespace waymark::kernels
