// Internal: values of matrix products, without history; the shapes are checked by the callers.
#pragma once

#include "core/kernels/gemm.h"
#include "core/ops/elementwise.h"

namespace waymark::ops {

// The message of every product whose operands differ in dtype, and the refusal of b8.
void check_product_dtypes(std::string_view op, const Arg& a, const Arg& b);

// All leading axes of extent 1, or none.
bool is_one_matrix(const Shape& s);

// A 2-d tensor as a kernel takes it; transposed and strided views are flags and steps, not copies.
template <class T> kernels::MatrixView<T> matrix_of(const Tensor& t) {
  return {t.data<T>(), t.strides()[0], t.strides()[1]};
}

// (..., n) -> (M, n): a view where the strides allow, else a copy. Without history.
Tensor fold_rows(const Tensor& t);

// C = α·A·B + β·C for a (m, k), b (k, n) and a row-major c (m, n) whose rows may have a step. β = 0 does not read C;
// k = 0 or α = 0 does not read A and B.
void mm_into(const Tensor& c, double alpha, const Tensor& a, const Tensor& b, double beta);
// The same for every index of the leading axes; the last axis of c is dense, and a and b repeat where their extent is 1.
void bmm_into(const Tensor& c, double alpha, const Tensor& a, const Tensor& b, double beta);

// A·B as torch.matmul has it: 1-d operands get an axis that is removed again, leading axes broadcast; a B without
// batch is one product over the folded rows of A.
Tensor matmul_value(const Tensor& a, const Tensor& b);

// matmul of (..., H, L, k) x (..., H, k, n) whose result lies in memory as (..., L, H, n); recorded as matmul.
Tensor matmul_by_rows(Arg a, Arg b);

// 2 · elements of the result · inner size.
double product_flops(const Tensor& a, const Tensor& b);

}  // namespace waymark::ops
