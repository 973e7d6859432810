// Matrix products of raw memory: C = alpha A B + beta C, single, batched and several at once.
//
// * Operands may have any strides. Those that are row- or column-major go to OpenBLAS as flags; others (both strides
//   different from 1, overlapping, zero or negative) are copied first. C is row-major.
// * beta = 0 never reads C (it may be NaN); k = 0 or alpha = 0 never reads A and B; nothing of extent 0 reaches BLAS.
// * Large products are cut into tasks by (m, n, k) alone, so the result has the same bits for any number of threads,
//   and a product in a batch has the bits it has alone (engine.md 11.2).
// * Products for which our own kernel is measured to be faster run in it (gemm_kernel.h).
#pragma once

#include <span>

#include "core/tensor/types.h"

namespace waymark::kernels {

// Element (i, j) is data[i * row_stride + j * col_stride].
template <class T> struct MatrixView {
  const T* data;
  i64 row_stride, col_stride;
};

// c[i * ldc + j], i < m, j < n; ldc >= n unless m <= 1.
template <class T>
void gemm(i64 m, i64 n, i64 k, T alpha, MatrixView<T> a, MatrixView<T> b, T beta, T* c, i64 ldc);

// One axis of a batch: its extent and the steps of A, B and C along it, in elements. Steps of A and B may be 0
// (broadcast) or negative.
struct BatchAxis {
  i64 extent, a, b, c;
};
// The same product for every index of the batch axes; one flat list of tasks, small products several to a task.
template <class T>
void bmm(std::span<const BatchAxis> axes, i64 m, i64 n, i64 k, T alpha, MatrixView<T> a, MatrixView<T> b, T beta, T* c,
         i64 ldc);

// Independent products as one list of tasks, for example dX and dW of a linear layer, where each alone has too few.
template <class T> struct Product {
  i64 m, n, k;
  T alpha;
  MatrixView<T> a, b;
  T beta;
  T* c;
  i64 ldc;
};
template <class T> void gemm_many(std::span<const Product<T>> products);

// Products asked for since the process began: 1 for a gemm, 1 for a bmm, the number of products for gemm_many.
WAYMARK_API i64 gemm_calls();
// Their floating-point operations, multiply-add = 2: what trainer and benchmarks report as GFLOP/s.
WAYMARK_API i64 gemm_flops();

// How a product is cut: rows, columns and inner blocks of one task, whole multiples except the last.
struct GemmCut {
  i64 rows, columns, inner;
};
GemmCut gemm_cut(i64 m, i64 n, i64 k);

}  // namespace waymark::kernels
