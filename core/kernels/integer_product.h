// C += A B of i64 matrices, wrapping as all i64 arithmetic does. Exact, so its order does not matter; not tuned: products
// of integers are counts and tests, not models.
#pragma once

#include "core/kernels/gemm.h"

namespace waymark::kernels {

// a: m x k, b: k x n, any strides; c[i * ldc + j] row-major.
void integer_product(i64 m, i64 n, i64 k, MatrixView<i64> a, MatrixView<i64> b, i64* c, i64 ldc);

}  // namespace waymark::kernels
