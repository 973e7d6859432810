// The seam to OpenBLAS: what is asked of the library, and the checks before the first product.
//
// Only its pthread build will do, set to one thread: threads belong to core/parallel. OpenBLAS picks its kernels by
// CPU, and kernels with wrong results have shipped; so before the first product a self-check of a few milliseconds
// compares both precisions with plain loops (engine.md 11.2).
#pragma once

#include <string>

#include "core/tensor/types.h"

namespace waymark::kernels {

// C = alpha op(A) op(B) + beta C, all row-major; op(A) is m x k, op(B) is k x n. A is stored as m x k with leading
// dimension lda, or as k x m if transposed. Extents and leading dimensions fit into int; m, n, k >= 1.
template <class T>
using GemmFunction = void (*)(bool transpose_a, bool transpose_b, i64 m, i64 n, i64 k, T alpha, const T* a, i64 lda,
                              const T* b, i64 ldb, T beta, T* c, i64 ldc);
void blas_gemm(bool transpose_a, bool transpose_b, i64 m, i64 n, i64 k, float alpha, const float* a, i64 lda,
               const float* b, i64 ldb, float beta, float* c, i64 ldc);
void blas_gemm(bool transpose_a, bool transpose_b, i64 m, i64 n, i64 k, double alpha, const double* a, i64 lda,
               const double* b, i64 ldb, double beta, double* c, i64 ldc);

// Once per process: the build is the pthread one (else Error naming the Debian package), its threads are set to one,
// and the self-check passes. Products call this themselves; a program may call it at its start.
WAYMARK_API void check_blas();

// Sizes 1..130, all transpositions, padded leading dimensions, beta = 0 over NaN, beta = 1: Error if a result differs
// from plain loops by more than 1e-6 (double: 1e-14) of sum |a||b|. Tests pass functions of their own.
WAYMARK_API void check_gemm(GemmFunction<float> single, GemmFunction<double> twice);

WAYMARK_API std::string blas_core_name();  // "Haswell", "SkylakeX", ...: results are bit-identical per core name only
WAYMARK_API std::string blas_config();     // version and build options

}  // namespace waymark::kernels
