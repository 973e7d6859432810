// Inner loops of elementwise ops: n elements, each operand with its stride in elements. One function per op and dtype,
// compiled for several instruction sets (WAYMARK_CLONES) and chosen at run time. Null: the op has no such dtype.
#pragma once

#include "core/tensor/dtype.h"

namespace waymark::kernels {

// y[i·sy] = f(x[i·sx]); p: the op's scalar parameters (slope, alpha, bounds), in its documented order.
using UnaryLoop = void (*)(i64 n, std::byte* y, i64 sy, const std::byte* x, i64 sx, const double* p);
// y[i·sy] = f(a[i·sa], b[i·sb])
using BinaryLoop = void (*)(i64 n, std::byte* y, i64 sy, const std::byte* a, i64 sa, const std::byte* b, i64 sb,
                            const double* p);
using TernaryLoop = void (*)(i64 n, std::byte* y, i64 sy, const std::byte* a, i64 sa, const std::byte* b, i64 sb,
                             const std::byte* c, i64 sc, const double* p);

// Same dtype in and out, unless said.
enum class Binary : u8 {
  add, sub, mul, div, maximum, minimum, pow,
  // to b8
  eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor,
  // backward kernels: g and a saved value in, gradient out
  relu_backward,       // g where y > 0                       (g, y)
  tanh_backward,       // g·(1 − y²)                          (g, y)
  sigmoid_backward,    // g·y·(1 − y)                         (g, y)
  gelu_backward,       // exact GELU                          (g, x)
  gelu_tanh_backward,  // tanh GELU                           (g, x)
  silu_backward,       // (g, x)
  abs_backward,        // g·sign(x)                           (g, x)
};
BinaryLoop binary_loop(Binary op, DType t);

enum class Unary : u8 {
  neg, abs, sign, square, reciprocal, sqrt, rsqrt, exp, log, sin, cos, tanh, sigmoid, erf, relu, gelu, gelu_tanh, silu,
  floor, ceil, add_scalar, mul_scalar, pow_scalar, clamp,
  // to b8
  logical_not, isnan, isfinite,
};
UnaryLoop unary_loop(Unary op, DType t);

enum class Ternary : u8 { where };  // where: c (b8) ? a : b
TernaryLoop ternary_loop(Ternary op, DType t);

// y[i] = (To)x[i]; NaN and values outside i64 become INT64_MIN, b8 is x ≠ 0.
UnaryLoop convert_loop(DType from, DType to);

}  // namespace waymark::kernels
