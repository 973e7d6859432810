#include "core/ops/matmul.h"

#include "core/ops/arithmetic.h"
#include "core/ops/products.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

i64 numel_of(const Shape& s, int begin, int end) {
  i64 n = 1;
  for (int i = begin; i < end; ++i) n *= s[i];
  return n;
}
// One matrix or vector, whatever leading axes of extent 1 it has.
void check_matmul(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  check_product_dtypes(op, a, b);
  const Shape &x = a->shape(), &y = b->shape();
  if (x.empty() || y.empty()) fail_at(a.loc(), op, "a 0-d tensor has no axis to sum over: {} x {}; use mul", x, y);
  const i64 inner = y.size() == 1 ? y[0] : y.at(-2);
  if (x.back() != inner) fail_at(a.loc(), op, "inner sizes differ: {} x {} ({} != {})", x, y, x.back(), inner);
  for (int i = 3; i <= std::min(x.size(), y.size()); ++i)
    if (x.at(-i) != y.at(-i) && x.at(-i) != 1 && y.at(-i) != 1)
      fail_at(a.loc(), op, "batch axes do not broadcast: {} x {} (axis {}: {} vs {})", x, y, -i, x.at(-i), y.at(-i));
}

// A (..., m, k) without batch under a C with one: dA = Σ over the batch, as one product with the batch inside the
// inner axis: (m, batch·n) x (batch·n, k).
Tensor folded_left(const Tensor& g, const Tensor& b) {
  const i64 m = g.shape().at(-2), n = g.shape().back(), k = b.shape().at(-2);
  const i64 batch = numel_of(g.shape(), 0, g.dim() - 2);
  const Tensor rows = reshape(permute(reshape(g, {batch, m, n}), {1, 0, 2}), {m, batch * n});
  return matmul(rows, reshape(permute(reshape(b, {batch, k, n}), {0, 2, 1}), {batch * n, k}));
}

// dA = dC·Bᵀ, dB = Aᵀ·dC. The products never have the batch of an operand that has none.
struct ProductRule {
  SavedTensor a, b;
  Shape a_shape, b_shape;

  Grads operator()(Tensor g, const Need& need) const {
    const bool row = a_shape.size() == 1, column = b_shape.size() == 1;
    if (column) g = unsqueeze(g, -1);
    if (row) g = unsqueeze(g, -2);
    Tensor da, db;
    if (need[0]) {
      const Tensor y = column ? unsqueeze(*b, -1) : *b;
      da = is_one_matrix(a_shape) && !is_one_matrix(b_shape) ? folded_left(g, y) : matmul(g, mT(y));
      if (row || da.dim() != a_shape.size()) da = collapse(da, a_shape);
    }
    if (need[1]) {
      const Tensor x = row ? unsqueeze(*a, 0) : *a;
      if (is_one_matrix(b_shape) && g.dim() > 2) {
        const i64 rows = numel_of(g.shape(), 0, g.dim() - 1), k = x.shape().back(), n = g.shape().back();
        db = matmul(mT(reshape(x, {rows, k})), reshape(g, {rows, n}));
      } else {
        db = matmul(mT(x), g);
      }
      if (column || db.dim() != b_shape.size()) db = collapse(db, b_shape);
    }
    return {std::move(da), std::move(db)};
  }

 private:
  // Adds or drops axes of extent 1; a gradient that still has a batch to be summed is left to the engine.
  static Tensor collapse(const Tensor& d, const Shape& shape) {
    return d.numel() == numel_of(shape, 0, shape.size()) ? reshape(d, shape) : d;
  }
};

Tensor record_product(const OpInfo& op, Tensor value, const Arg& a, const Arg& b) {
  return record(op, std::move(value), {a, b}, [&](Saver& s) {
    return ProductRule{s.input(0, s.needs(1)), s.input(1, s.needs(0)), a->shape(), b->shape()};
  });
}

template <int A, int B> void check_ranks(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (a->dim() != A || b->dim() != B)
    fail_at(a.loc(), op, "needs a {}-d and a {}-d tensor, got {} x {}; matmul takes other ranks", A, B, a->shape(), b->shape());
  check_matmul(op, a, b);
}

}  // namespace

#define WAYMARK_PRODUCT_FLOPS(A, B) [](OpCall& c) { return product_flops(c.tensor(A), c.tensor(B)); }
#define WAYMARK_PRODUCT_SAVES(SECOND) {{"input", For{1}}, {SECOND, For{0}}}

extern constexpr OpInfo kMatmul{
    .name = "matmul", .family = "matmul", .doc = "matrix product with batch axes",
    .schema = "matmul(Tensor input, Tensor other) -> Tensor", .formula = "C = A·B", .rule = "dA = dC·Bᵀ,  dB = Aᵀ·dC",
    .saves = WAYMARK_PRODUCT_SAVES("other"), .flops = WAYMARK_PRODUCT_FLOPS("input", "other"),
    .apply = [](OpCall& c) { c.result(matmul(c.tensor("input"), c.tensor("other"))); }};

Tensor matmul(Arg a, Arg b) {
  check_matmul("matmul", a, b);
  return record_product(kMatmul, matmul_value(*a, *b), a, b);
}

Tensor ops::matmul_by_rows(Arg a, Arg b) {
  check_matmul("matmul", a, b);
  if (a->dim() < 3 || a->dim() != b->dim()) return record_product(kMatmul, matmul_value(*a, *b), a, b);
  // Memory (..., L, H, n), seen as (..., H, L, n).
  Shape memory = a->shape();
  const int h = memory.size() - 3;
  for (int i = 0; i <= h; ++i) memory[i] = std::max(memory[i], b->shape()[i]);
  memory[h + 2] = b->shape().back();
  Shape shape = memory;
  std::swap(memory[h], memory[h + 1]);
  const Tensor c = make_empty(memory, a->dtype());
  Shape strides = c.strides();
  std::swap(strides[h], strides[h + 1]);
  Tensor y = alias(c, shape, strides, 0);
  bmm_into(y, 1, *a, *b, 0);
  return record_product(kMatmul, std::move(y), a, b);
}

extern constexpr OpInfo kMm{
    .name = "mm", .family = "matmul", .doc = "product of two matrices", .schema = "mm(Tensor input, Tensor mat2) -> Tensor",
    .formula = "C = A·B", .rule = "dA = dC·Bᵀ,  dB = Aᵀ·dC", .saves = WAYMARK_PRODUCT_SAVES("mat2"),
    .flops = WAYMARK_PRODUCT_FLOPS("input", "mat2"),
    .apply = [](OpCall& c) { c.result(mm(c.tensor("input"), c.tensor("mat2"))); }};

Tensor mm(Arg a, Arg b) {
  check_ranks<2, 2>("mm", a, b);
  return record_product(kMm, matmul_value(*a, *b), a, b);
}

extern constexpr OpInfo kBmm{
    .name = "bmm", .family = "matmul", .doc = "products of two batches of matrices",
    .schema = "bmm(Tensor input, Tensor mat2) -> Tensor", .formula = "C = A·B, for each item",
    .rule = "dA = dC·Bᵀ,  dB = Aᵀ·dC", .saves = WAYMARK_PRODUCT_SAVES("mat2"), .flops = WAYMARK_PRODUCT_FLOPS("input", "mat2"),
    .apply = [](OpCall& c) { c.result(bmm(c.tensor("input"), c.tensor("mat2"))); }};

static void check_bmm(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (a->dim() == 3 && b->dim() == 3 && a->shape()[0] != b->shape()[0])
    fail_at(a.loc(), op, "batch sizes differ: {} x {} ({} != {}); matmul broadcasts", a->shape(), b->shape(), a->shape()[0],
            b->shape()[0]);
  check_ranks<3, 3>(op, a, b);
}

Tensor bmm(Arg a, Arg b) {
  check_bmm("bmm", a, b);
  return record_product(kBmm, matmul_value(*a, *b), a, b);
}

extern constexpr OpInfo kMv{
    .name = "mv", .family = "matmul", .doc = "matrix times vector", .schema = "mv(Tensor input, Tensor vec) -> Tensor",
    .formula = "y = A·v", .rule = "dA = g·vᵀ,  dv = Aᵀ·g", .saves = WAYMARK_PRODUCT_SAVES("vec"),
    .flops = WAYMARK_PRODUCT_FLOPS("input", "vec"),
    .apply = [](OpCall& c) { c.result(mv(c.tensor("input"), c.tensor("vec"))); }};

Tensor mv(Arg a, Arg vec) {
  check_ranks<2, 1>("mv", a, vec);
  return record_product(kMv, matmul_value(*a, *vec), a, vec);
}

extern constexpr OpInfo kDot{
    .name = "dot", .family = "matmul", .doc = "inner product of two vectors",
    .schema = "dot(Tensor input, Tensor tensor) -> Tensor", .formula = "y = Σ aᵢ·bᵢ", .rule = "da = g·b,  db = g·a",
    .saves = WAYMARK_PRODUCT_SAVES("tensor"), .flops = WAYMARK_PRODUCT_FLOPS("input", "tensor"),
    .apply = [](OpCall& c) { c.result(dot(c.tensor("input"), c.tensor("tensor"))); }};

Tensor dot(Arg a, Arg b) {
  check_ranks<1, 1>("dot", a, b);
  return record(kDot, matmul_value(*a, *b), {a, b}, [&](Saver& s) {
    return [a = s.input(0, s.needs(1)), b = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      return {need[0] ? mul(g, *b) : Tensor(), need[1] ? mul(g, *a) : Tensor()};
    };
  });
}

extern constexpr OpInfo kOuter{
    .name = "outer", .family = "matmul", .doc = "all products of two vectors",
    .schema = "outer(Tensor input, Tensor vec2) -> Tensor", .formula = "yᵢⱼ = aᵢ·bⱼ", .rule = "da = g·b,  db = gᵀ·a",
    .saves = WAYMARK_PRODUCT_SAVES("vec2"),
    .apply = [](OpCall& c) { c.result(outer(c.tensor("input"), c.tensor("vec2"))); }};

Tensor outer(Arg a, Arg b) {
  check_defined("outer", a);
  check_defined("outer", b);
  if (a->dim() != 1 || b->dim() != 1)
    fail_at(a.loc(), "outer", "needs two 1-d tensors, got {} x {}", a->shape(), b->shape());
  check_product_dtypes("outer", a, b);
  const Tensor column = alias(*a, {a->shape()[0], 1}, {a->strides()[0], 1}, a->offset());
  return record(kOuter, binary_value("outer", kernels::Binary::mul, column, *b, a->dtype()), {a, b}, [&](Saver& s) {
    return [a = s.input(0, s.needs(1)), b = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      return {need[0] ? matmul(g, *b) : Tensor(), need[1] ? matmul(*a, g) : Tensor()};
    };
  });
}

// ---- addmm, baddbmm -------------------------------------------------------------------------------------------------

extern constexpr OpInfo kAddmm{
    .name = "addmm", .family = "matmul", .doc = "a matrix plus a product of two",
    .schema = "addmm(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .formula = "Y = β·C + α·A·B", .rule = "dC = β·g,  dA = α·g·Bᵀ,  dB = α·Aᵀ·g",
    .saves = {{"mat1", For{2}}, {"mat2", For{1}}}, .flops = WAYMARK_PRODUCT_FLOPS("mat1", "mat2"),
    .apply = [](OpCall& c) {
      c.result(addmm(c.tensor("input"), c.tensor("mat1"), c.tensor("mat2"), c.scalar("beta", Scalar(1)),
                     c.scalar("alpha", Scalar(1))));
    }};
extern constexpr OpInfo kBaddbmm{
    .name = "baddbmm", .family = "matmul", .doc = "a batch of matrices plus products of two batches",
    .schema = "baddbmm(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    .formula = "Y = β·C + α·A·B, for each item", .rule = "dC = β·g,  dA = α·g·Bᵀ,  dB = α·Aᵀ·g",
    .saves = {{"batch1", For{2}}, {"batch2", For{1}}}, .flops = WAYMARK_PRODUCT_FLOPS("batch1", "batch2"),
    .apply = [](OpCall& c) {
      c.result(baddbmm(c.tensor("input"), c.tensor("batch1"), c.tensor("batch2"), c.scalar("beta", Scalar(1)),
                       c.scalar("alpha", Scalar(1))));
    }};

static Tensor add_product(const OpInfo& op, const Arg& c, const Arg& a, const Arg& b, const Scalar& beta, const Scalar& alpha) {
  check_defined(op.name, c);
  if (c->dtype() != a->dtype())
    fail_at(c.loc(), op.name, "dtypes differ: {} + {}; convert one with to(...)", name_of(c->dtype()), name_of(a->dtype()));
  if (!is_float(a->dtype()) && !(beta.is_integral() && alpha.is_integral()))
    fail_at(c.loc(), op.name, "beta or alpha is a float, but the operands are {}", name_of(a->dtype()));
  Shape shape = a->shape();
  shape[shape.size() - 1] = b->shape().back();
  if (!broadcasts_to(c->shape(), shape))
    fail_at(c.loc(), op.name, "the first operand {} does not expand to the product {}", c->shape(), shape);
  Tensor y = make_empty(shape, a->dtype());
  const double scale_c = beta.to_double(), scale = alpha.to_double();
  if (scale_c != 0) copy_into(y, expand_value(*c, shape));
  if (y.dim() == 2) mm_into(y, scale, *a, *b, scale_c);
  else bmm_into(y, scale, *a, *b, scale_c);
  return record(op, std::move(y), {c, a, b}, [&](Saver& s) {
    return [scale_c, scale, a = s.input(1, s.needs(2)), b = s.input(2, s.needs(1))](Tensor g, const Need& need) -> Grads {
      const auto times = [](Tensor t, double factor) { return factor == 1 ? t : mul(std::move(t), factor); };
      return {need[0] ? times(g, scale_c) : Tensor(), need[1] ? times(matmul(g, mT(*b)), scale) : Tensor(),
              need[2] ? times(matmul(mT(*a), g), scale) : Tensor()};
    };
  }, [&](Attrs& at) { at("beta", scale_c); at("alpha", scale); });
}

Tensor addmm(Arg c, Arg a, Arg b, Scalar beta, Scalar alpha) {
  check_ranks<2, 2>("addmm", a, b);
  return add_product(kAddmm, c, a, b, beta, alpha);
}

Tensor baddbmm(Arg c, Arg a, Arg b, Scalar beta, Scalar alpha) {
  check_bmm("baddbmm", a, b);
  return add_product(kBaddbmm, c, a, b, beta, alpha);
}

}  // namespace waymark
