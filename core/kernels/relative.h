// Values of pairs from rows of a table: what score terms of relative position are made of. One call is one slab: one
// matrix of pairs (Lq x Lk, row-major) with the row numbers of its pairs.
#pragma once

#include <vector>

#include "core/tensor/types.h"

namespace waymark::kernels {

// A row of pairs whose numbers are: first, first, ..., start, start + 1, ..., last, last, ... as clipped differences of
// consecutive positions are. Then whole runs are copied and summed. -1 (no row) may stand at the ends.
struct PairRun {
  bool is_run = false;
  i64 a = 0, b = 0;  // [0, a): first; [a, b): start + j - a; [b, Lk): last
  i64 first = 0, start = 0, last = 0;
};
// Row numbers of one slab, Lq x Lk, each in [-1, R). The pointers must stay alive.
struct PairRows {
  const i64* row = nullptr;
  const PairRun* runs = nullptr;  // Lq
  i64 queries = 0, keys = 0, rows = 0;
};
std::vector<PairRun> find_runs(const i64* row, i64 queries, i64 keys);

// y_ij = x[r_ij] for x (R); 0 where there is no row. T: float, double.
template <class T> void gather_shared(T* y, const T* x, const PairRows& p);
// y_ij = x[i, r_ij] for x (Lq, R).
template <class T> void gather_query(T* y, const T* x, const PairRows& p);
// y_ij = x[j, r_ij] for x (Lk, R).
template <class T> void gather_key(T* y, const T* x, const PairRows& p);

// Their adjoints: x gets the sum of the g_ij that read it, in f64, rows of pairs in ascending order.
template <class T> void scatter_shared(T* x, const T* g, const PairRows& p);
template <class T> void scatter_query(T* x, const T* g, const PairRows& p);
template <class T> void scatter_key(T* x, const T* g, const PairRows& p);

// c_ij = Σ_t q_it k_jt w_{r_ij}t; Σ_t q_it k_jt where there is no row. q (Lq, d), k (Lk, d), w (R, d).
template <class T> void three_way(T* c, const T* q, const T* k, const T* w, i64 d, const PairRows& p);
// dq_i = Σ_j g_ij w_r ⊙ k_j, dk_j = Σ_i g_ij w_r ⊙ q_i, dw_r = Σ g_ij q_i ⊙ k_j (overwritten; null: not wanted).
template <class T>
void three_way_backward(T* dq, T* dk, T* dw, const T* g, const T* q, const T* k, const T* w, i64 d, const PairRows& p);

}  // namespace waymark::kernels
