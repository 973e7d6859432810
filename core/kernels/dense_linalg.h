// Small dense linear algebra in f64: for initialisation, analysis and matrices of a few hundred rows. Row-major.
#pragma once

#include <vector>

#include "core/tensor/types.h"

namespace waymark::kernels {

// LU with partial pivoting of a (n, n), in place; rows: the row order. Returns the first pivot that is exactly 0, or -1.
i64 lu_factor(double* a, i64 n, std::vector<i64>& rows);
// Solves a·x = b for b (n, k), given the factors; x (n, k) must not be b.
void lu_solve(const double* lu, const std::vector<i64>& rows, i64 n, const double* b, double* x, i64 k);

// Householder QR of a (m, n): a becomes R (zeros below the diagonal); q (m, p), p <= m, gets the first p columns of Q.
void householder_qr(double* a, i64 m, i64 n, double* q, i64 p);

// Eigenvalues of a symmetric a (n, n), ascending, and its orthonormal eigenvectors as columns of v, by cyclic Jacobi
// rotations. Destroys a. (Golub, Van Loan: Matrix Computations, 8.5)
void jacobi_eigen(double* a, i64 n, double* values, double* v);

// Singular values of a (m, n), m >= n, descending, with u (m, n) and v (n, n) of orthonormal columns, a = u·diag(s)·vᵀ,
// by one-sided Jacobi rotations. Destroys a.
void jacobi_svd(double* a, i64 m, i64 n, double* u, double* s, double* v);

}  // namespace waymark::kernels
