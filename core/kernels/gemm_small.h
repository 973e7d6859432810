// Register kernels for small products: one tile of rows by one vector of columns at a time, k innermost.
#pragma once

#include "core/kernels/gemm.h"

namespace waymark::kernels {

// Whether the register kernel is measured to be faster than OpenBLAS at these extents and this layout of B.
bool small_gemm_wins(i64 m, i64 n, i64 k, bool b_rows_contiguous, bool single);

// m, n, k >= 1, any strides; each entry is summed in ascending k.
void small_gemm(i64 m, i64 n, i64 k, float alpha, MatrixView<float> a, MatrixView<float> b, float beta, float* c, i64 ldc);
void small_gemm(i64 m, i64 n, i64 k, double alpha, MatrixView<double> a, MatrixView<double> b, double beta, double* c,
                i64 ldc);

}  // namespace waymark::kernels
