#include "core/kernels/dense_linalg.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace waymark::kernels {

i64 lu_factor(double* a, i64 n, std::vector<i64>& rows) {
  rows.resize(static_cast<size_t>(n));
  std::iota(rows.begin(), rows.end(), i64{0});
  i64 zero = -1;
  for (i64 k = 0; k < n; ++k) {
    i64 best = k;
    for (i64 i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[best * n + k])) best = i;
    if (best != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
      std::swap(rows[static_cast<size_t>(k)], rows[static_cast<size_t>(best)]);
    }
    const double pivot = a[k * n + k];
    if (pivot == 0) {
      if (zero < 0) zero = k;
      continue;
    }
    for (i64 i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] /= pivot;
      for (i64 j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return zero;
}

void lu_solve(const double* lu, const std::vector<i64>& rows, i64 n, const double* b, double* x, i64 k) {
  for (i64 i = 0; i < n; ++i) {
    std::copy_n(b + rows[static_cast<size_t>(i)] * k, k, x + i * k);
    for (i64 p = 0; p < i; ++p)
      for (i64 j = 0; j < k; ++j) x[i * k + j] -= lu[i * n + p] * x[p * k + j];
  }
  for (i64 i = n - 1; i >= 0; --i) {
    for (i64 p = i + 1; p < n; ++p)
      for (i64 j = 0; j < k; ++j) x[i * k + j] -= lu[i * n + p] * x[p * k + j];
    for (i64 j = 0; j < k; ++j) x[i * k + j] /= lu[i * n + i];
  }
}

void householder_qr(double* a, i64 m, i64 n, double* q, i64 p) {
  const i64 steps = std::min(m - 1, n);
  std::vector<double> reflectors(static_cast<size_t>(std::max<i64>(steps, 0) * m), 0.0), scale(static_cast<size_t>(std::max<i64>(steps, 0)), 0.0);
  // H = 1 − β v vᵀ applied to the rows k.. of a matrix with `columns` columns.
  const auto apply = [&](i64 k, double* matrix, i64 columns, i64 first) {
    const double* v = reflectors.data() + k * m;
    const double beta = scale[static_cast<size_t>(k)];
    if (beta == 0) return;
    for (i64 j = first; j < columns; ++j) {
      double dot = 0;
      for (i64 i = k; i < m; ++i) dot += v[i] * matrix[i * columns + j];
      for (i64 i = k; i < m; ++i) matrix[i * columns + j] -= beta * dot * v[i];
    }
  };
  for (i64 k = 0; k < steps; ++k) {
    double* const v = reflectors.data() + k * m;
    double norm = 0;
    for (i64 i = k; i < m; ++i) norm = std::hypot(norm, a[i * n + k]);
    if (norm == 0) continue;
    const double head = a[k * n + k], alpha = head > 0 ? -norm : norm;
    double square = 0;
    for (i64 i = k; i < m; ++i) {
      v[i] = (a[i * n + k] - (i == k ? alpha : 0)) / norm;
      square += v[i] * v[i];
    }
    scale[static_cast<size_t>(k)] = 2 / square;
    apply(k, a, n, k + 1);
    a[k * n + k] = alpha;
    for (i64 i = k + 1; i < m; ++i) a[i * n + k] = 0;
  }
  std::fill_n(q, m * p, 0.0);
  for (i64 i = 0; i < p; ++i) q[i * p + i] = 1;
  for (i64 k = steps - 1; k >= 0; --k) apply(k, q, p, 0);
}

namespace {

// Rotation (c, s) that makes the pair (app, aqq, apq) diagonal.
struct Rotation {
  double c, s;
};
Rotation rotation_of(double app, double aqq, double apq) {
  const double tau = (aqq - app) / (2 * apq);
  const double t = (tau >= 0 ? 1.0 : -1.0) / (std::abs(tau) + std::sqrt(1 + tau * tau));
  const double c = 1 / std::sqrt(1 + t * t);
  return {c, t * c};
}
// Columns p and q of a matrix with n columns.
void rotate_columns(double* a, i64 rows, i64 n, i64 p, i64 q, Rotation r) {
  for (i64 i = 0; i < rows; ++i) {
    const double x = a[i * n + p], y = a[i * n + q];
    a[i * n + p] = r.c * x - r.s * y;
    a[i * n + q] = r.s * x + r.c * y;
  }
}
void identity(double* v, i64 n) {
  std::fill_n(v, n * n, 0.0);
  for (i64 i = 0; i < n; ++i) v[i * n + i] = 1;
}
// Columns of a (rows, n) in this order.
void order_columns(double* a, i64 rows, i64 n, const std::vector<i64>& order) {
  std::vector<double> row(static_cast<size_t>(n));
  for (i64 i = 0; i < rows; ++i) {
    for (i64 j = 0; j < n; ++j) row[static_cast<size_t>(j)] = a[i * n + order[static_cast<size_t>(j)]];
    std::copy(row.begin(), row.end(), a + i * n);
  }
}

constexpr int kSweeps = 60;  // convergence is quadratic: about 10 are used

}  // namespace

void jacobi_eigen(double* a, i64 n, double* values, double* v) {
  identity(v, n);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool rotated = false;
    for (i64 p = 0; p < n; ++p)
      for (i64 q = p + 1; q < n; ++q) {
        const double apq = a[p * n + q];
        // Nothing that the diagonal would notice.
        if (std::abs(apq) <= 1e-17 * std::sqrt(std::abs(a[p * n + p] * a[q * n + q])) || std::abs(apq) < 1e-300) continue;
        rotated = true;
        const Rotation r = rotation_of(a[p * n + p], a[q * n + q], apq);
        rotate_columns(a, n, n, p, q, r);
        for (i64 j = 0; j < n; ++j) {  // the same from the left
          const double x = a[p * n + j], y = a[q * n + j];
          a[p * n + j] = r.c * x - r.s * y;
          a[q * n + j] = r.s * x + r.c * y;
        }
        a[p * n + q] = a[q * n + p] = 0;
        rotate_columns(v, n, n, p, q, r);
      }
    if (!rotated) break;
  }
  std::vector<i64> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), i64{0});
  std::stable_sort(order.begin(), order.end(), [&](i64 x, i64 y) { return a[x * n + x] < a[y * n + y]; });
  for (i64 j = 0; j < n; ++j) values[j] = a[order[static_cast<size_t>(j)] * (n + 1)];
  order_columns(v, n, n, order);
}

void jacobi_svd(double* a, i64 m, i64 n, double* u, double* s, double* v) {
  identity(v, n);
  const auto products = [&](i64 p, i64 q, double& pp, double& qq, double& pq) {
    pp = qq = pq = 0;
    for (i64 i = 0; i < m; ++i) {
      const double x = a[i * n + p], y = a[i * n + q];
      pp += x * x;
      qq += y * y;
      pq += x * y;
    }
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool rotated = false;
    for (i64 p = 0; p < n; ++p)
      for (i64 q = p + 1; q < n; ++q) {
        double pp, qq, pq;
        products(p, q, pp, qq, pq);
        if (std::abs(pq) <= 1e-16 * std::sqrt(pp * qq) || std::abs(pq) < 1e-300) continue;
        rotated = true;
        const Rotation r = rotation_of(pp, qq, pq);
        rotate_columns(a, m, n, p, q, r);
        rotate_columns(v, n, n, p, q, r);
      }
    if (!rotated) break;
  }
  std::vector<double> length(static_cast<size_t>(n), 0.0);
  for (i64 j = 0; j < n; ++j)
    for (i64 i = 0; i < m; ++i) length[static_cast<size_t>(j)] = std::hypot(length[static_cast<size_t>(j)], a[i * n + j]);
  std::vector<i64> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), i64{0});
  std::stable_sort(order.begin(), order.end(), [&](i64 x, i64 y) { return length[static_cast<size_t>(x)] > length[static_cast<size_t>(y)]; });
  order_columns(a, m, n, order);
  order_columns(v, n, n, order);
  i64 rank = 0;
  for (i64 j = 0; j < n; ++j) {
    s[j] = length[static_cast<size_t>(order[static_cast<size_t>(j)])];
    if (s[j] > s[0] * 1e-15 && s[j] > 0) rank = j + 1;
  }
  // The first `rank` columns by their lengths; the others complete them to an orthonormal set.
  std::vector<double> good(static_cast<size_t>(m * rank)), basis(static_cast<size_t>(m * n));
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < rank; ++j) good[static_cast<size_t>(i * rank + j)] = a[i * n + j] / s[j];
  std::vector<double> factor = good;
  householder_qr(factor.data(), m, rank, basis.data(), n);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j)
      u[i * n + j] = j < rank ? good[static_cast<size_t>(i * rank + j)] : basis[static_cast<size_t>(i * n + j)];
}

}  // namespace waymark::kernels
