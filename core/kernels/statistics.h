// Facts about the values of one span, in one sweep. Chunks of fixed size are combined in order, so the result does not
// depend on the number of threads.
#pragma once

#include <array>

#include "core/tensor/types.h"

namespace waymark::kernels {

struct Summary {
  i64 count = 0, nan = 0, positive_inf = 0, negative_inf = 0, zeros = 0;
  i64 first_nan = -1, first_positive_inf = -1, first_negative_inf = -1;  // offsets in the span; -1: there is none
  // Of the finite values only; undefined (0) if there is none.
  double min = 0, max = 0, mean = 0;
  double deviations = 0;  // Σ (x − mean)²
  double squares = 0;     // Σ x²
  // Bin k counts 2^(k−24) ≤ |x| < 2^(k−23); the first and the last also take what lies beyond. Zeros are not counted.
  std::array<i64, 32> histogram{};
};
template <class T> Summary summarize(const T* x, i64 n);

// 0: all finite, 1: ±inf but no NaN, 2: NaN.
template <class T> int nonfinite_level(const T* x, i64 n);

// Σ a·b and Σ a·a, Σ b·b in f64.
struct Products {
  double ab = 0, aa = 0, bb = 0;
};
template <class T> Products products(const T* a, const T* b, i64 n);

// A matrix [rows, columns] cut into down × across blocks (at most rows × columns): block (i, j) begins at row
// ⌈i·rows/down⌉ and column ⌈j·columns/across⌉. means: of the blocks, row by row.
template <class T> void block_means(const T* x, i64 rows, i64 columns, i64 down, i64 across, double* means);

#define WAYMARK_STATISTICS(T)                                   \
  extern template Summary summarize<T>(const T*, i64);          \
  extern template int nonfinite_level<T>(const T*, i64);        \
  extern template Products products<T>(const T*, const T*, i64); \
  extern template void block_means<T>(const T*, i64, i64, i64, i64, double*);
WAYMARK_STATISTICS(float)
WAYMARK_STATISTICS(double)
#undef WAYMARK_STATISTICS

}  // namespace waymark::kernels
