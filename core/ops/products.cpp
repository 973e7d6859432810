#include "core/ops/products.h"

#include <vector>

#include "core/kernels/integer_product.h"

namespace waymark::ops {
namespace {

Tensor last_two(const Tensor& t) {
  const int n = t.dim();
  return alias(t, {t.shape()[n - 2], t.shape()[n - 1]}, {t.strides()[n - 2], t.strides()[n - 1]}, t.offset());
}
// c = β·c, where β = 0 does not read it.
void scale_integers(i64 n, i64 beta, i64* c) {
  for (i64 i = 0; i < n; ++i) c[i] = beta == 0 ? 0 : static_cast<i64>(static_cast<u64>(beta) * static_cast<u64>(c[i]));
}

// i64: α and β are integers, checked by the callers.
void integer_mm(i64 m, i64 n, i64 k, i64 alpha, kernels::MatrixView<i64> a, kernels::MatrixView<i64> b, i64 beta, i64* c,
                i64 ldc) {
  for (i64 i = 0; i < m; ++i) scale_integers(n, beta, c + i * ldc);
  if (alpha == 0 || k == 0) return;
  if (alpha == 1) return kernels::integer_product(m, n, k, a, b, c, ldc);
  std::vector<i64> product(static_cast<size_t>(m * n), 0);
  kernels::integer_product(m, n, k, a, b, product.data(), n);
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      i64& to = c[i * ldc + j];
      to = static_cast<i64>(static_cast<u64>(to) + static_cast<u64>(alpha) * static_cast<u64>(product[static_cast<size_t>(i * n + j)]));
    }
}

}  // namespace

void check_product_dtypes(std::string_view op, const Arg& a, const Arg& b) {
  if (a->dtype() != b->dtype())
    fail_at(a.loc(), op, "dtypes differ: {} x {}; convert one with to(...)", name_of(a->dtype()), name_of(b->dtype()));
  if (a->dtype() == kB8) fail_at(a.loc(), op, "b8 is not supported; convert with to(...)");
}

bool is_one_matrix(const Shape& s) {
  for (int i = 0; i + 2 < s.size(); ++i)
    if (s[i] != 1) return false;
  return true;
}

Tensor fold_rows(const Tensor& t) {
  const i64 n = t.shape().back();
  i64 rows = 1;
  for (int i = 0; i + 1 < t.dim(); ++i) rows *= t.shape()[i];
  const Shape folded{rows, n};
  Shape strides;
  if (view_strides(t.shape(), t.strides(), folded, &strides, nullptr)) return alias(t, folded, strides, t.offset());
  const Tensor dense = contiguous_value(t);
  return alias(dense, folded, contiguous_strides(folded), dense.offset());
}

void mm_into(const Tensor& c, double alpha, const Tensor& a, const Tensor& b, double beta) {
  const i64 m = a.shape()[0], k = a.shape()[1], n = b.shape()[1], ldc = std::max<i64>(c.strides()[0], n);
  if (c.dtype() == kI64)
    return integer_mm(m, n, k, float_to_i64(alpha), matrix_of<i64>(a), matrix_of<i64>(b), float_to_i64(beta), c.data<i64>(), ldc);
  visit_float(c.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::gemm<T>(m, n, k, static_cast<T>(alpha), matrix_of<T>(a), matrix_of<T>(b), static_cast<T>(beta), c.data<T>(), ldc);
  });
}

void bmm_into(const Tensor& c, double alpha, const Tensor& a, const Tensor& b, double beta) {
  if (c.numel() == 0) return;
  const int lead = c.dim() - 2;
  const i64 m = c.shape()[lead], n = c.shape()[lead + 1], k = a.shape().back(), ldc = std::max(c.strides()[lead], n);
  SmallVector<kernels::BatchAxis, 6> axes;
  const auto step = [&](const Tensor& t, int axis) {
    const int at = axis - (c.dim() - t.dim());
    return at < 0 || t.shape()[at] == 1 ? i64{0} : t.strides()[at];
  };
  for (int i = 0; i < lead; ++i)
    if (c.shape()[i] != 1) axes.emplace_back(kernels::BatchAxis{c.shape()[i], step(a, i), step(b, i), c.strides()[i]});
  const Tensor x = last_two(a), y = last_two(b);
  if (c.dtype() != kI64) {
    visit_float(c.dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::bmm<T>({axes.begin(), axes.size()}, m, n, k, static_cast<T>(alpha), matrix_of<T>(x), matrix_of<T>(y),
                      static_cast<T>(beta), c.data<T>(), ldc);
    });
    return;
  }
  i64 batch = 1;
  for (const auto& axis : axes) batch *= axis.extent;
  for (i64 at = 0; at < batch; ++at) {
    auto left = matrix_of<i64>(x), right = matrix_of<i64>(y);
    i64* to = c.data<i64>();
    i64 rest = at;
    for (size_t i = axes.size(); i-- > 0;) {
      const i64 index = rest % axes[i].extent;
      rest /= axes[i].extent;
      left.data += index * axes[i].a;
      right.data += index * axes[i].b;
      to += index * axes[i].c;
    }
    integer_mm(m, n, k, float_to_i64(alpha), left, right, float_to_i64(beta), to, ldc);
  }
}

Tensor matmul_value(const Tensor& a, const Tensor& b) {
  if (a.dim() == 2 && b.dim() == 2) {  // small products are many: no views, no broadcasting
    Tensor c = make_empty({a.shape()[0], b.shape()[1]}, a.dtype());
    mm_into(c, 1, a, b, 0);
    return c;
  }
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const Tensor x = row ? alias(a, {1, a.shape()[0]}, {a.shape()[0], a.strides()[0]}, a.offset()) : a;
  const Tensor y = column ? alias(b, {b.shape()[0], 1}, {b.strides()[0], 1}, b.offset()) : b;
  const i64 m = x.shape().at(-2), n = y.shape().back();
  const auto batch_of = [](const Tensor& t) { return Shape(std::span<const i64>(t.shape().begin(), static_cast<size_t>(t.dim() - 2))); };
  const Shape batch = x.dim() == 2 && y.dim() == 2 ? Shape() : broadcast_shapes("matmul", batch_of(x), batch_of(y));
  Shape shape = batch;
  shape.push_back(m);
  shape.push_back(n);
  const Tensor c = make_empty(shape, a.dtype());
  if (is_one_matrix(y.shape())) {
    const Tensor rows = x.dim() == 2 ? x : fold_rows(x);
    mm_into(c.dim() == 2 ? c : alias(c, {rows.shape()[0], n}, {n, 1}, 0), 1, rows, last_two(y), 0);
  } else {
    bmm_into(c, 1, x, y, 0);
  }
  if (!row && !column) return c;
  Shape out = batch;
  if (!row) out.push_back(m);
  if (!column) out.push_back(n);
  return alias(c, out, contiguous_strides(out), 0);
}

double product_flops(const Tensor& a, const Tensor& b) {
  const auto matrix = [](const Tensor& t, bool left) {
    Shape s = t.shape();
    if (s.size() == 1) s.insert(left ? 0 : 1, 1);
    return s;
  };
  const Shape x = matrix(a, true), y = matrix(b, false);
  double flops = 2.0 * static_cast<double>(x.at(-2)) * static_cast<double>(x.back()) * static_cast<double>(y.back());
  for (int i = 3; i <= std::max(x.size(), y.size()); ++i)
    flops *= static_cast<double>(std::max(i <= x.size() ? x.at(-i) : 1, i <= y.size() ? y.at(-i) : 1));
  return flops;
}

}  // namespace waymark::ops
