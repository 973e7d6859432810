// Cross-entropy of logits against class ids, row by row of a dense [rows, classes] matrix (engine.md 2.6).
//
// With p = softmax(x), t the row's class, w the class weights (1 if null) and s the label smoothing, the row's loss is
//   (1 - s) w_t (-log p_t) + (s / C) sum_c w_c (-log p_c).
// Probabilities are never stored; -log p_c = log sum - (x_c - max).
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// What the backward pass needs of a row. Kept apart, so that exp((x - max) - log_sum) is exact for large logits.
template <class T> struct RowLogSum {
  T max, log_sum;
};

template <class T> struct CrossEntropy {
  const i64* target;        // per row; negative: the row is ignored, its loss and gradient are exactly 0
  const T* weight;          // per class, or null
  T smoothing;              // s
  i64 classes;
};

// targets must be below `classes` (the caller has checked). sums: one per row, or null.
template <class T>
void cross_entropy(const CrossEntropy<T>& c, const T* x, T* loss, RowLogSum<T>* sums, i64 rows);

// dx = scale [(1 - s) w_t (p - e_t) + (s / C) (p sum w - w)], scale = g[row * g_step]: the gradient of the row's loss
// (g_step 0: the same for all rows, as after a mean) times `factor`.
template <class T>
void cross_entropy_backward(const CrossEntropy<T>& c, const T* x, const RowLogSum<T>* sums, const T* g, i64 g_step,
                            T factor, T* dx, i64 rows);

}  // namespace waymark::kernels
