// Our own product kernel: tiles of C in registers, B packed in panels of two vectors, A read in place.
#pragma once

#include "core/kernels/gemm.h"

namespace waymark::kernels {

// Whether the kernel is measured to be faster than OpenBLAS at these extents. a_rows, b_rows: the rows of A, of B are
// contiguous; a_step: from one column of A to the next. The answer is the same at any time.
bool kernel_gemm_wins(i64 m, i64 n, i64 k, bool a_rows, bool b_rows, i64 a_step);
template <class T> bool kernel_gemm_wins(i64 m, i64 n, i64 k, const MatrixView<T>& a, const MatrixView<T>& b) {
  return kernel_gemm_wins(m, n, k, a.col_stride == 1, b.col_stride == 1, a.col_stride);
}

// m, n, k >= 1, any strides. Each entry is summed in ascending k, in blocks of 256 that are added to C one after the
// other.
void kernel_gemm(i64 m, i64 n, i64 k, float alpha, MatrixView<float> a, MatrixView<float> b, float beta, float* c,
                 i64 ldc);
void kernel_gemm(i64 m, i64 n, i64 k, double alpha, MatrixView<double> a, MatrixView<double> b, double beta, double* c,
                 i64 ldc);

// Test seam: makes the kernel run its version for x86-64-v<level> (1, 3 or 4; 0: the best). False if this CPU or this
// build has no such version.
bool set_kernel_gemm_level(int level);

}  // namespace waymark::kernels
