#include "core/ops/linalg.h"

#include <algorithm>
#include <array>

#include "core/kernels/dense_linalg.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/products.h"
#include "core/ops/shape.h"
#include "core/tensor/strided.h"

namespace waymark {

using namespace ops;

namespace {

Shape batch_of(const Tensor& t) { return Shape(std::span<const i64>(t.shape().begin(), static_cast<size_t>(t.dim() - 2))); }
Shape with_matrix(Shape batch, i64 m, i64 n) {
  batch.push_back(m);
  batch.push_back(n);
  return batch;
}
i64 count_of(const Shape& s) {
  i64 n = 1;
  for (const i64 e : s) n *= e;
  return n;
}
// f64, contiguous, in new memory that may be destroyed.
Tensor working_copy(const Tensor& t) {
  const Tensor out = make_empty(t.shape(), kF64);
  copy_into(out, t);
  return out;
}

void check_matrices(std::string_view op, const Arg& a, bool square) {
  check_defined(op, a);
  need_float(op, *a);
  if (a->dim() < 2 || (square && a->shape().at(-2) != a->shape().back()))
    fail_at(a.loc(), op, "needs {} (..., {}), got {}", square ? "square matrices" : "matrices", square ? "n, n" : "m, n", a->shape());
}

// x with A·x = b for every matrix; b of A's batch exactly. f64, contiguous.
Tensor solved(std::string_view op, const Tensor& a, const Tensor& b, Loc loc) {
  const Tensor factors = working_copy(a), x = make_empty(b.shape(), kF64);
  const i64 n = a.shape().back(), k = b.shape().back();
  const Shape batch = batch_of(a);
  std::vector<i64> rows;
  for (i64 i = 0; i < count_of(batch); ++i) {
    double* const lu = factors.data<double>() + i * n * n;
    const i64 zero = kernels::lu_factor(lu, n, rows);
    if (zero >= 0)
      fail_at(loc, op, "the matrix{} is singular: pivot {} of {} is 0", batch.empty() ? "" : " at " + position_text(batch, i), zero, n);
    kernels::lu_solve(lu, rows, n, b.data<double>() + i * n * k, x.data<double>() + i * n * k, k);
  }
  return x;
}

// Several outputs without derivative.
void record_factors(const OpInfo& op, std::span<const Tensor> outputs, const Inputs& inputs) {
  for (const Tensor& t : outputs) detail::note_cut(op, t, inputs);
  if (thread_state().observer) [[unlikely]] detail::observe(op, outputs, inputs, detail::NoAttrs{}, nullptr);
}

}  // namespace

// ---- linalg_solve, inv ----------------------------------------------------------------------------------------------

extern constexpr OpInfo kLinalgSolve{
    .name = "linalg_solve", .family = "linalg", .doc = "solution of linear systems",
    .schema = "linalg_solve(Tensor A, Tensor B) -> Tensor", .formula = "Y = A⁻¹·B", .rule = "dB = A⁻ᵀ·g,  dA = −A⁻ᵀ·g·Yᵀ",
    .saves = {{"A", For{0, 1}}, {"output", For{0}}},
    .flops = [](OpCall& c) {
      const double n = static_cast<double>(c.tensor("A").shape().back());
      return static_cast<double>(c.tensor("A").numel()) * n * 2 / 3 + 2 * n * static_cast<double>(c.tensor("B").numel());
    },
    .apply = [](OpCall& c) { c.result(linalg_solve(c.tensor("A"), c.tensor("B"))); }};

Tensor linalg_solve(Arg a, Arg b) {
  check_matrices("linalg_solve", a, true);
  check_defined("linalg_solve", b);
  check_product_dtypes("linalg_solve", a, b);
  const i64 n = a->shape().back();
  Shape vectors = batch_of(*a);
  vectors.push_back(n);
  if (b->dim() == 1 || b->shape() == vectors) {  // one right-hand side for each matrix, as PyTorch decides it
    return squeeze(Arg(linalg_solve(a, Arg(unsqueeze(b, -1), a.loc())), a.loc()), -1);
  }
  if (b->dim() < 2 || b->shape().at(-2) != n)
    fail_at(a.loc(), "linalg_solve", "the right-hand side must be (..., {}, k) or {} for the matrices {}, got {}", n, vectors, a->shape(), b->shape());
  const Shape batch = broadcast_shapes("linalg_solve", batch_of(*a), batch_of(*b));
  const Tensor right = working_copy(expand_value(*b, with_matrix(batch, n, b->shape().back())));
  const Tensor x = solved("linalg_solve", expand_value(*a, with_matrix(batch, n, n)), right, a.loc());
  return record(kLinalgSolve, cast_value(x, a->dtype()), {a, b}, [&](Saver& s) {
    return [a = s.input(0), y = s.output(0, s.needs(0))](Tensor g, const Need& need) -> Grads {
      const Tensor db = linalg_solve(mT(*a), g);
      return {need[0] ? neg(matmul(db, mT(*y))) : Tensor(), need[1] ? db : Tensor()};
    };
  });
}

extern constexpr OpInfo kInv{
    .name = "inv", .family = "linalg", .doc = "inverse matrices", .schema = "inv(Tensor A) -> Tensor", .formula = "Y = A⁻¹",
    .rule = "dA = −Yᵀ·g·Yᵀ", .saves = {{"output", For{0}}},
    .flops = [](OpCall& c) { return 2.0 * static_cast<double>(c.tensor("A").numel()) * static_cast<double>(c.tensor("A").shape().back()); },
    .apply = [](OpCall& c) { c.result(inv(c.tensor("A"))); }};

Tensor inv(Arg a) {
  check_matrices("inv", a, true);
  const i64 n = a->shape().back();
  const Tensor one = make_empty(a->shape(), kF64);
  fill_into(one, 0);
  const Shape &s = one.shape(), &t = one.strides();
  Shape diagonal = batch_of(one), steps(std::span<const i64>(t.begin(), static_cast<size_t>(t.size() - 2)));
  diagonal.push_back(n);
  steps.push_back(n + 1);
  if (count_of(s) > 0) fill_into(alias(one, diagonal, steps, 0), 1);
  return record(kInv, cast_value(solved("inv", *a, one, a.loc()), a->dtype()), {a}, [](Saver& save) {
    return [y = save.output()](Tensor g, const Need&) -> Grads {
      const Tensor yt = mT(*y);
      return {neg(matmul(matmul(yt, g), yt))};
    };
  });
}

// ---- factors --------------------------------------------------------------------------------------------------------

extern constexpr OpInfo kLinalgQr{
    .name = "linalg_qr", .family = "linalg", .doc = "orthogonal times upper triangular",
    .schema = "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", .formula = "A = Q·R",
    .rule = not_differentiable("linalg_qr serves initialisation and analysis only"),
    .apply = [](OpCall& c) {
      const QrFactors f = linalg_qr(c.tensor("A"), c.word("mode", "reduced"));
      c.result("Q", f.q);
      c.result("R", f.r);
    }};

QrFactors linalg_qr(Arg a, std::string_view mode) {
  check_matrices("linalg_qr", a, false);
  if (mode != "reduced" && mode != "complete")
    fail_at(a.loc(), "linalg_qr", "mode is \"reduced\" or \"complete\", not \"{}\"", mode);
  const i64 m = a->shape().at(-2), n = a->shape().back(), p = mode == "complete" ? m : std::min(m, n);
  const Shape batch = batch_of(*a);
  const Tensor work = working_copy(*a), q = make_empty(with_matrix(batch, m, p), kF64), r = make_empty(with_matrix(batch, p, n), kF64);
  for (i64 i = 0; i < count_of(batch); ++i) {
    double* const from = work.data<double>() + i * m * n;
    kernels::householder_qr(from, m, n, q.data<double>() + i * m * p, p);
    std::copy_n(from, p * n, r.data<double>() + i * p * n);
  }
  const std::array<Tensor, 2> out{cast_value(q, a->dtype()), cast_value(r, a->dtype())};
  record_factors(kLinalgQr, out, {a});
  return {out[0], out[1]};
}

extern constexpr OpInfo kLinalgSvd{
    .name = "linalg_svd", .family = "linalg", .doc = "singular values and vectors",
    .schema = "linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)", .formula = "A = U·diag(S)·Vh",
    .rule = not_differentiable("linalg_svd serves initialisation and analysis only"),
    .apply = [](OpCall& c) {
      const SvdFactors f = linalg_svd(c.tensor("A"), c.flag("full_matrices", true));
      c.result("U", f.u);
      c.result("S", f.s);
      c.result("Vh", f.vh);
    }};

namespace {

// Orthonormal columns (rows, k), completed to (rows, p).
void complete_columns(const double* from, i64 rows, i64 k, double* to, i64 p) {
  if (p > k) {
    std::vector<double> factor(from, from + rows * k);
    kernels::householder_qr(factor.data(), rows, k, to, p);
  }
  for (i64 i = 0; i < rows; ++i) std::copy_n(from + i * k, k, to + i * p);
}

}  // namespace

SvdFactors linalg_svd(Arg a, bool full_matrices) {
  check_matrices("linalg_svd", a, false);
  const i64 m = a->shape().at(-2), n = a->shape().back(), k = std::min(m, n);
  const Shape batch = batch_of(*a);
  const i64 left = full_matrices ? m : k, right = full_matrices ? n : k;
  Shape values = batch;
  values.push_back(k);
  const Tensor u = make_empty(with_matrix(batch, m, left), kF64), s = make_empty(values, kF64), v = make_empty(with_matrix(batch, n, right), kF64);
  // Tall matrices: a wide one goes in transposed.
  const bool wide = m < n;
  const i64 rows = wide ? n : m;
  const Tensor work = working_copy(wide ? mT(a->detach()) : *a);
  std::vector<double> long_side(static_cast<size_t>(rows * k)), short_side(static_cast<size_t>(k * k));
  for (i64 i = 0; i < count_of(batch); ++i) {
    kernels::jacobi_svd(work.data<double>() + i * rows * k, rows, k, long_side.data(), s.data<double>() + i * k, short_side.data());
    double *const to_u = u.data<double>() + i * m * left, *const to_v = v.data<double>() + i * n * right;
    complete_columns(long_side.data(), rows, k, wide ? to_v : to_u, wide ? right : left);
    complete_columns(short_side.data(), k, k, wide ? to_u : to_v, k);
  }
  const std::array<Tensor, 3> out{cast_value(u, a->dtype()), cast_value(s, a->dtype()), contiguous_value(cast_value(mT(v), a->dtype()))};
  record_factors(kLinalgSvd, out, {a});
  return {out[0], out[1], out[2]};
}

extern constexpr OpInfo kLinalgEigh{
    .name = "linalg_eigh", .family = "linalg", .doc = "eigenvalues and eigenvectors of symmetric matrices",
    .schema = "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", .formula = "A = V·diag(λ)·Vᵀ",
    .rule = not_differentiable("linalg_eigh serves initialisation and analysis only"),
    .apply = [](OpCall& c) {
      const EigenFactors f = linalg_eigh(c.tensor("A"), c.word("UPLO", "L"));
      c.result("eigenvalues", f.eigenvalues);
      c.result("eigenvectors", f.eigenvectors);
    }};

EigenFactors linalg_eigh(Arg a, std::string_view uplo) {
  check_matrices("linalg_eigh", a, true);
  if (uplo != "L" && uplo != "U") fail_at(a.loc(), "linalg_eigh", "UPLO is \"L\" or \"U\", not \"{}\"", uplo);
  const i64 n = a->shape().back();
  const Shape batch = batch_of(*a);
  Shape values_shape = batch;
  values_shape.push_back(n);
  const Tensor work = working_copy(*a), values = make_empty(values_shape, kF64), vectors = make_empty(a->shape(), kF64);
  for (i64 b = 0; b < count_of(batch); ++b) {
    double* const m = work.data<double>() + b * n * n;
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < i; ++j) (uplo == "L" ? m[j * n + i] : m[i * n + j]) = uplo == "L" ? m[i * n + j] : m[j * n + i];
    kernels::jacobi_eigen(m, n, values.data<double>() + b * n, vectors.data<double>() + b * n * n);
  }
  const std::array<Tensor, 2> out{cast_value(values, a->dtype()), cast_value(vectors, a->dtype())};
  record_factors(kLinalgEigh, out, {a});
  return {out[0], out[1]};
}

}  // namespace waymark
