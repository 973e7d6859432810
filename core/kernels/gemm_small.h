// Register kernels for small products: one tile of rows by one vector of columns at a time, k innermost.
#pragma once

#include "core/kernels/gemm.h"

namespace waymark::kernels {

inline constexpr i64 kSmallGemmInner = 64;  // largest k of small_gemm

// Whether the register kernel is measured to be faster than OpenBLAS at these extents; a_rows, b_rows: the rows of A,
// of B are contiguous.
bool small_gemm_wins(i64 m, i64 n, i64 k, bool a_rows, bool b_rows);

// m, n >= 1, 1 <= k <= 64, any strides; each entry is summed in ascending k.
void small_gemm(i64 m, i64 n, i64 k, float alpha, MatrixView<float> a, MatrixView<float> b, float beta, float* c,
                i64 ldc);
void small_gemm(i64 m, i64 n, i64 k, double alpha, MatrixView<double> a, MatrixView<double> b, double beta, double* c,
                i64 ldc);

}  // namespace waymark::kernels
