// Kullback-Leibler divergences between the softmax of two rows of logits, row by row of two dense [rows, classes]
// matrices.
//
// With p = softmax(x), q = softmax(y) and d = log p - log q, 0 where both are 0:
//   forward = KL(p||q) = sum p d,   reverse = KL(q||p) = -sum q d,   symmetric = 1/2 sum (p - q) d
// Classes that are -inf on both sides take no part. A row of nothing else has divergence 0 and gradient 0. Equal rows
// have exactly 0 and a gradient of exact zeros.
#pragma once

#include "core/kernels/cross_entropy.h"

namespace waymark::kernels {

enum class Divergence : u8 { forward, symmetric };

// What the backward pass needs of a pair of rows.
template <class T> struct DivergenceRow {
  RowLogSum<T> first, second;
  T forward, reverse;
};

// stats: one per row, or null.
template <class T>
void divergence(Divergence kind, const T* x, const T* y, T* value, DivergenceRow<T>* stats, i64 rows, i64 classes);

// dx = g dvalue/dx, dy = g dvalue/dy, either may be null; one g per row:
//   forward:    dx = p (d - forward),   dy = q - p
//   symmetric:  dx = 1/2 [p (d - forward) + (p - q)],   dy = 1/2 [q (-d - reverse) + (q - p)]
template <class T>
void divergence_backward(Divergence kind, const T* x, const T* y, const DivergenceRow<T>* stats, const T* g, T* dx,
                         T* dy, i64 rows, i64 classes);

}  // namespace waymark::kernels
