// Linear systems and matrix factors, batched over leading axes. All are computed in f64.
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// X with A·X = B: A (..., n, n), B (..., n, k); or B (..., n), one vector for each matrix. Error for a singular matrix.
[[nodiscard]] WAYMARK_API Tensor linalg_solve(Arg a, Arg b);
[[nodiscard]] WAYMARK_API Tensor inv(Arg a);

// For initialisation and analysis: without derivative, and the signs of vectors are not defined.
struct QrFactors {
  Tensor q, r;
};
struct SvdFactors {
  Tensor u, s, vh;
};
struct EigenFactors {
  Tensor eigenvalues, eigenvectors;
};
// A = Q·R for A (..., m, n); mode "reduced": Q (m, k), R (k, n), k = min(m, n); "complete": Q (m, m), R (m, n).
[[nodiscard]] WAYMARK_API QrFactors linalg_qr(Arg a, std::string_view mode = "reduced");
// A = U·diag(S)·Vh, S descending; full_matrices: U (m, m), Vh (n, n), otherwise (m, k), (k, n).
[[nodiscard]] WAYMARK_API SvdFactors linalg_svd(Arg a, bool full_matrices = true);
// Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices, of which one triangle is read: uplo "L", "U".
[[nodiscard]] WAYMARK_API EigenFactors linalg_eigh(Arg a, std::string_view uplo = "L");

}  // namespace waymark
