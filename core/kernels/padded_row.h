// Rows of elementary functions: worked on in whole groups of 16, so that every element takes the vector code.
#pragma once

#include <limits>

#include "core/kernels/lanes.h"
#include "core/kernels/scratch.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {

// Rows of one parallel chunk.
inline i64 rows_per_chunk(i64 n) { return std::max<i64>(1, kGrain / std::max<i64>(1, n)); }

// Rows whose length is not a multiple of 16 are worked on in a padded copy, so that all elements take the vector code.
template <class T> class PaddedRow {
 public:
  PaddedRow(i64 n, int copies) : n_(n), length_((n + kLanes - 1) / kLanes * kLanes) {
    if (length_ != n) memory_.allocate(copies * length_);
  }
  i64 length() const { return length_; }
  bool copies() const { return length_ != n_; }
  // The row, or its padded copy number `at`.
  const T* in(const T* row, int at, T fill) const {
    if (!copies()) return row;
    T* const to = memory_.data() + at * length_;
    std::memcpy(to, row, static_cast<size_t>(n_) * sizeof(T));
    std::fill(to + n_, to + length_, fill);
    return to;
  }
  T* out(T* row, int at) const { return copies() ? memory_.data() + at * length_ : row; }
  void finish(T* row, int at) const {
    if (copies()) std::memcpy(row, memory_.data() + at * length_, static_cast<size_t>(n_) * sizeof(T));
  }

 private:
  i64 n_, length_;
  Scratch<T> memory_;
};

// Largest entry, NaN left aside; n is a multiple of 16.
template <class T> WAYMARK_INLINE T row_max(const T* x, i64 n) {
  alignas(64) T lane[kLanes];
  for (int j = 0; j < kLanes; ++j) lane[j] = -std::numeric_limits<T>::infinity();
  for (i64 i = 0; i < n; i += kLanes) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  return fold_max(lane);
}

}  // namespace waymark::kernels
