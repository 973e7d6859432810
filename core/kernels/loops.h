// Strided loop nests: one plan per elementwise call, one inner loop per op and dtype.
//
// A plan holds the extents and the strides of all operands, with axes ordered so that the output is walked in memory
// order and neighbouring axes merged wherever all operands allow it. A contiguous call becomes one axis; broadcasting
// is a stride of 0. Work above the grain is cut into chunks whose size depends on the plan alone.
#pragma once

#include <array>

#include "core/parallel/parallel.h"
#include "core/tensor/shape.h"

namespace waymark::kernels {

template <int N> struct Loops {
  std::array<std::byte*, N> data;    // operand 0 is the output
  std::array<i64, N> element;        // bytes of one element
  int axes = 0;
  std::array<i64, Shape::kMaxAxes> extent;
  std::array<std::array<i64, Shape::kMaxAxes>, N> stride;  // in elements; axis 0 is the innermost
};

// shape: of the output; strides[k]: of operand k, already broadcast to that shape (0 where it repeats).
template <int N>
Loops<N> make_loops(const Shape& shape, const std::array<const Shape*, N>& strides, const std::array<std::byte*, N>& data,
                    const std::array<i64, N>& element) {
  Loops<N> p;
  p.data = data;
  p.element = element;
  // Axes of extent > 1, innermost first by the output's strides (stable, so equal strides keep logical order).
  std::array<int, Shape::kMaxAxes> order;
  int n = 0;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    int at = n++;
    const i64 s = std::abs((*strides[0])[i]);
    for (; at > 0 && std::abs((*strides[0])[order[static_cast<size_t>(at - 1)]]) > s; --at)
      order[static_cast<size_t>(at)] = order[static_cast<size_t>(at - 1)];
    order[static_cast<size_t>(at)] = i;
  }
  for (int k = 0; k < n; ++k) {
    const int axis = order[static_cast<size_t>(k)];
    if (p.axes > 0) {
      const auto last = static_cast<size_t>(p.axes - 1);
      bool merges = true;
      for (size_t o = 0; o < N; ++o) merges &= (*strides[o])[axis] == p.stride[o][last] * p.extent[last];
      if (merges) {
        p.extent[last] *= shape[axis];
        continue;
      }
    }
    const auto next = static_cast<size_t>(p.axes++);
    p.extent[next] = shape[axis];
    for (size_t o = 0; o < N; ++o) p.stride[o][next] = (*strides[o])[axis];
  }
  if (p.axes == 0) {
    p.axes = 1;
    p.extent[0] = 1;
    for (size_t o = 0; o < N; ++o) p.stride[o][0] = 1;
  }
  return p;
}

// inner(n, pointers, strides) over every innermost run. Not called for empty outputs.
template <int N, class Inner> void run_loops(const Loops<N>& p, Inner&& inner) {
  const auto axes = static_cast<size_t>(p.axes);
  i64 outer = 1;
  for (size_t a = 1; a < axes; ++a) outer *= p.extent[a];
  const i64 run = p.extent[0];
  if (run == 0 || outer == 0) return;
  std::array<i64, N> step;
  for (size_t o = 0; o < N; ++o) step[o] = p.stride[o][0];
  // Pointers of outer index `at`, moved by `skip` elements along the innermost axis.
  const auto pointers = [&](i64 at, i64 skip) {
    std::array<std::byte*, N> ptr = p.data;
    for (size_t o = 0; o < N; ++o) ptr[o] += skip * step[o] * p.element[o];
    for (size_t a = 1; a < axes; ++a) {
      const i64 i = at % p.extent[a];
      at /= p.extent[a];
      for (size_t o = 0; o < N; ++o) ptr[o] += i * p.stride[o][a] * p.element[o];
    }
    return ptr;
  };
  if (outer == 1) {
    parallel_for(run, kGrain, [&](i64 begin, i64 end) { inner(end - begin, pointers(0, begin), step); });
    return;
  }
  const i64 rows = std::max<i64>(1, kGrain / run);  // outer indices per chunk
  parallel_for(outer, rows, [&](i64 begin, i64 end) {
    // Step through the outer indices like an odometer: a division per run would cost more than short runs do.
    std::array<std::byte*, N> ptr = pointers(begin, 0);
    std::array<i64, Shape::kMaxAxes> index{};
    for (i64 at = begin, a = 1; a < p.axes; ++a) {
      index[static_cast<size_t>(a)] = at % p.extent[static_cast<size_t>(a)];
      at /= p.extent[static_cast<size_t>(a)];
    }
    for (i64 at = begin; at < end; ++at) {
      inner(run, ptr, step);
      for (size_t a = 1; a < axes; ++a) {
        for (size_t o = 0; o < N; ++o) ptr[o] += p.stride[o][a] * p.element[o];
        if (++index[a] < p.extent[a]) break;
        for (size_t o = 0; o < N; ++o) ptr[o] -= p.extent[a] * p.stride[o][a] * p.element[o];
        index[a] = 0;
      }
    }
  });
}

}  // namespace waymark::kernels
