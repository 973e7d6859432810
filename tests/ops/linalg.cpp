// Cases of core/ops/linalg.cpp.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(linalg_cases) {
  const auto any = [](Shape s) { return tensor_arg("A", std::move(s)); };
  // Far from singular; as_is: an expanded square matrix is singular.
  const auto a = [](Shape s) { return tensor_arg("A", std::move(s)).range(-1, 1).dominant_diagonal(); };
  const auto b = [](Shape s) { return tensor_arg("B", std::move(s)); };
  op_case("linalg_solve", {a({2, 3, 3}), b({2, 3, 2})});
  op_case("linalg_solve", {a({3, 3}).as_is(), b({2, 3, 2})});
  op_case("linalg_solve", {a({2, 2}).as_is(), b({2})});
  op_case("linalg_solve", {a({0, 2, 2}), b({0, 2, 3})});
  op_case("inv", {a({2, 3, 3})});
  op_case("inv", {a({0, 0})});
  op_case("linalg_qr", {any({2, 4, 3})}).f64_only("signs are not defined");
  op_case("linalg_svd", {any({2, 3, 5})}).f64_only("signs are not defined");
  op_case("linalg_eigh", {any({4, 4})}).f64_only("signs are not defined");
  bad_input("linalg_solve", "linalg_solve: needs square matrices (..., n, n), got [2, 3]", {any({2, 3}), b({2, 1})});
  bad_input("linalg_solve", "linalg_solve: the right-hand side must be (..., 2, k) or [2] for the matrices [2, 2], got [3, 1]", {a({2, 2}), b({3, 1})});
  bad_input("linalg_solve", "linalg_solve: the matrix at [1] is singular: pivot 1 of 2 is 0",
            {arg("A", Argument(make<double>({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4}))), b({2, 2, 1})});
  bad_input("inv", "inv: the matrix is singular: pivot 0 of 2 is 0", {arg("A", Argument(make<double>({2, 2}, {0, 1, 0, 2})))});
  bad_input("inv", "inv: needs square matrices (..., n, n), got [3]", {a({3})});
  bad_input("linalg_qr", "linalg_qr: mode is \"reduced\" or \"complete\", not \"full\"", {a({2, 2}), arg("mode", "full")});
  bad_input("linalg_svd", "linalg_svd: needs matrices (..., m, n), got [3]", {a({3})});
  bad_input("linalg_eigh", "linalg_eigh: UPLO is \"L\" or \"U\", not \"A\"", {a({2, 2}), arg("UPLO", "A")});
}

namespace {

Tensor uneven(const Shape& shape, double first = 1) {
  const Tensor t = make_empty(shape, kF64);
  for (i64 i = 0; i < t.numel(); ++i) t.data<double>()[i] = std::sin(first + 1.7 * static_cast<double>(i) + 0.01 * static_cast<double>(i * i));
  return t;
}
Tensor diagonal_of(const Tensor& s) {
  const i64 n = s.shape().back();
  return eye(n, {.dtype = kF64}) * unsqueeze(s, -2);
}

}  // namespace

TEST_CASE("solutions and inverses solve their systems") {
  for (const i64 n : {1, 2, 7, 40}) {
    const Tensor a = uneven({2, n, n}), b = uneven({2, n, 3}, 5);
    CHECK(largest_difference(matmul(a, linalg_solve(a, b)), b) < 1e-9);
    CHECK(largest_difference(matmul(a, inv(a)), eye(n, {.dtype = kF64}).expand({2, n, n})) < 1e-9);
  }
}

TEST_CASE("factors multiply to the matrix and are orthonormal, of any shape and of low rank") {
  std::vector<Tensor> matrices{uneven({5, 3}), uneven({3, 5}), uneven({4, 4}), uneven({2, 6, 3}), uneven({1, 7}), uneven({30, 30}),
                               matmul(uneven({6, 2}), uneven({2, 5}, 3)), zeros({4, 3}, kF64)};
  for (const Tensor& a : matrices) {
    CAPTURE(a.shape());
    const i64 m = a.shape().at(-2), n = a.shape().back();
    const auto orthonormal = [&](const Tensor& q) {
      const Tensor one = eye(q.shape().back(), {.dtype = kF64});
      return largest_difference(matmul(q.mT(), q), one.expand(matmul(q.mT(), q).shape())) < 1e-12;
    };
    for (const char* mode : {"reduced", "complete"}) {
      const QrFactors f = linalg_qr(a, mode);
      CHECK(orthonormal(f.q));
      CHECK(largest_difference(matmul(f.q, f.r), a) < 1e-12);
      for (i64 i = 0; i < f.r.shape().at(-2); ++i)
        for (i64 j = 0; j < std::min(i, n); ++j) CHECK(f.r.view({-1, f.r.shape().at(-2), n}).at<double>({0, i, j}) == 0);
    }
    for (const bool full : {false, true}) {
      const SvdFactors f = linalg_svd(a, full);
      const i64 k = std::min(m, n);
      CHECK(f.u.shape().back() == (full ? m : k));
      CHECK(orthonormal(f.u));
      CHECK(orthonormal(f.vh.mT()));
      const Tensor product = matmul(matmul(f.u.narrow(-1, 0, k), diagonal_of(f.s)), f.vh.narrow(-2, 0, k));
      CHECK(largest_difference(product, a) < 1e-11);
      const auto s = f.s.to_vector<double>();
      for (size_t i = 1; i < static_cast<size_t>(k); ++i) CHECK(s[i] <= s[i - 1]);
    }
    const Tensor symmetric = matmul(a.mT(), a);
    const EigenFactors e = linalg_eigh(symmetric);
    CHECK(orthonormal(e.eigenvectors));
    CHECK(largest_difference(matmul(matmul(e.eigenvectors, diagonal_of(e.eigenvalues)), e.eigenvectors.mT()), symmetric) < 1e-10);
  }
}

TEST_CASE("linalg_eigh reads one triangle") {
  const Tensor a = make<double>({2, 2}, {2, 99, 1, 2});
  check_values(linalg_eigh(a).eigenvalues, {1, 3}, 1e-14);
  check_values(linalg_eigh(a.mT(), "U").eigenvalues, {1, 3}, 1e-14);
}

TEST_CASE("differentiating through a factor says why it cannot be done") {
  Tensor a = uneven({3, 3});
  a.requires_grad_();
  const std::string text = error_text([&] { linalg_svd(a).s.sum().backward(); });
  CHECK(has(text, "its history ends at linalg_svd"));
  CHECK(has(text, "linalg_svd serves initialisation and analysis only"));
}

}  // namespace waymark::test
