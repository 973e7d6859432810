#include "core/kernels/relative.h"

#include <algorithm>

#include "core/kernels/clones.h"

namespace waymark::kernels {

#define WAYMARK_INNER [[gnu::always_inline]] inline

namespace {

template <class T> WAYMARK_INNER void fill_run(T* y, i64 n, T v) {
  for (i64 j = 0; j < n; ++j) y[j] = v;
}
template <class T> WAYMARK_INNER void copy_run(T* __restrict y, const T* __restrict x, i64 n) {
  for (i64 j = 0; j < n; ++j) y[j] = x[j];
}
template <class T> WAYMARK_INNER void add_run(double* __restrict to, const T* __restrict g, i64 n) {
  for (i64 j = 0; j < n; ++j) to[j] += static_cast<double>(g[j]);
}
// 16 lanes, joined pairwise.
template <class T> WAYMARK_INNER double sum_run(const T* g, i64 n) {
  double lane[16] = {};
  i64 j = 0;
  for (; j + 16 <= n; j += 16)
    for (i64 k = 0; k < 16; ++k) lane[k] += static_cast<double>(g[j + k]);
  for (i64 k = 0; j < n; ++j, ++k) lane[k] += static_cast<double>(g[j]);
  for (i64 w = 8; w > 0; w /= 2)
    for (i64 k = 0; k < w; ++k) lane[k] += lane[k + w];
  return lane[0];
}

// One row of pairs from one row of values.
template <class T> WAYMARK_INNER void gather_row(T* y, const T* x, const i64* r, const PairRun& run, i64 keys) {
  if (run.is_run) {
    fill_run(y, run.a, run.first < 0 ? T(0) : x[run.first]);
    copy_run(y + run.a, x + run.start, run.b - run.a);
    fill_run(y + run.b, keys - run.b, run.last < 0 ? T(0) : x[run.last]);
  } else {
    for (i64 j = 0; j < keys; ++j) y[j] = r[j] < 0 ? T(0) : x[r[j]];
  }
}
template <class T> WAYMARK_INNER void scatter_row(double* x, const T* g, const i64* r, const PairRun& run, i64 keys) {
  if (run.is_run) {
    if (run.first >= 0) x[run.first] += sum_run(g, run.a);
    add_run(x + run.start, g + run.a, run.b - run.a);
    if (run.last >= 0) x[run.last] += sum_run(g + run.b, keys - run.b);
  } else {
    for (i64 j = 0; j < keys; ++j)
      if (r[j] >= 0) x[r[j]] += static_cast<double>(g[j]);
  }
}

template <class T> WAYMARK_INNER void gather_rows_of(T* y, const T* x, const PairRows& p, i64 step) {
  for (i64 i = 0; i < p.queries; ++i) gather_row(y + i * p.keys, x + i * step, p.row + i * p.keys, p.runs[i], p.keys);
}

template <class T> WAYMARK_INNER void gather_key_of(T* y, const T* x, const PairRows& p) {
  // Transposed, so that a saturated run of keys is contiguous.
  std::vector<T> xt(static_cast<size_t>(p.rows * p.keys));
  for (i64 j = 0; j < p.keys; ++j)
    for (i64 r = 0; r < p.rows; ++r) xt[static_cast<size_t>(r * p.keys + j)] = x[j * p.rows + r];
  for (i64 i = 0; i < p.queries; ++i) {
    T* to = y + i * p.keys;
    const PairRun& run = p.runs[i];
    const T* from = xt.data();
    if (run.is_run) {
      if (run.first < 0) fill_run(to, run.a, T(0));
      else copy_run(to, from + run.first * p.keys, run.a);
      for (i64 j = run.a; j < run.b; ++j) to[j] = from[(run.start + j - run.a) * p.keys + j];
      if (run.last < 0) fill_run(to + run.b, p.keys - run.b, T(0));
      else copy_run(to + run.b, from + run.last * p.keys + run.b, p.keys - run.b);
    } else {
      const i64* r = p.row + i * p.keys;
      for (i64 j = 0; j < p.keys; ++j) to[j] = r[j] < 0 ? T(0) : from[r[j] * p.keys + j];
    }
  }
}

template <class T> WAYMARK_INNER void scatter_shared_of(T* x, const T* g, const PairRows& p) {
  std::vector<double> sum(static_cast<size_t>(p.rows), 0.0);
  for (i64 i = 0; i < p.queries; ++i)
    scatter_row(sum.data(), g + i * p.keys, p.row + i * p.keys, p.runs[i], p.keys);
  for (i64 r = 0; r < p.rows; ++r) x[r] = static_cast<T>(sum[static_cast<size_t>(r)]);
}
template <class T> WAYMARK_INNER void scatter_query_of(T* x, const T* g, const PairRows& p) {
  std::vector<double> sum(static_cast<size_t>(p.rows));
  for (i64 i = 0; i < p.queries; ++i) {
    fill_run(sum.data(), p.rows, 0.0);
    scatter_row(sum.data(), g + i * p.keys, p.row + i * p.keys, p.runs[i], p.keys);
    for (i64 r = 0; r < p.rows; ++r) x[i * p.rows + r] = static_cast<T>(sum[static_cast<size_t>(r)]);
  }
}
template <class T> WAYMARK_INNER void scatter_key_of(T* x, const T* g, const PairRows& p) {
  std::vector<double> sum(static_cast<size_t>(p.rows * p.keys), 0.0);  // (R, Lk): neighbouring keys do not collide
  for (i64 i = 0; i < p.queries; ++i) {
    const T* from = g + i * p.keys;
    const PairRun& run = p.runs[i];
    double* to = sum.data();
    if (run.is_run) {
      if (run.first >= 0) add_run(to + run.first * p.keys, from, run.a);
      for (i64 j = run.a; j < run.b; ++j) to[(run.start + j - run.a) * p.keys + j] += static_cast<double>(from[j]);
      if (run.last >= 0) add_run(to + run.last * p.keys + run.b, from + run.b, p.keys - run.b);
    } else {
      const i64* r = p.row + i * p.keys;
      for (i64 j = 0; j < p.keys; ++j)
        if (r[j] >= 0) to[r[j] * p.keys + j] += static_cast<double>(from[j]);
    }
  }
  for (i64 j = 0; j < p.keys; ++j)
    for (i64 r = 0; r < p.rows; ++r) x[j * p.rows + r] = static_cast<T>(sum[static_cast<size_t>(r * p.keys + j)]);
}

template <class T> WAYMARK_INNER void three_way_of(T* c, const T* q, const T* k, const T* w, i64 d, const PairRows& p) {
  // Row 0 is q_i itself (no row), row r + 1 is q_i ⊙ w_r: formed once per query, read by every key.
  std::vector<T> scaled(static_cast<size_t>((p.rows + 1) * d));
  for (i64 i = 0; i < p.queries; ++i) {
    const T* qi = q + i * d;
    for (i64 t = 0; t < d; ++t) scaled[static_cast<size_t>(t)] = qi[t];
    for (i64 r = 0; r < p.rows; ++r)
      for (i64 t = 0; t < d; ++t) scaled[static_cast<size_t>((r + 1) * d + t)] = qi[t] * w[r * d + t];
    const i64* row = p.row + i * p.keys;
    for (i64 j = 0; j < p.keys; ++j) {
      const T* u = scaled.data() + (row[j] + 1) * d;
      const T* kj = k + j * d;
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (i64 t = 0; t < d; ++t) sum += u[t] * kj[t];
      c[i * p.keys + j] = sum;
    }
  }
}

template <class T>
WAYMARK_INNER void three_way_backward_of(T* dq, T* dk, T* dw, const T* g, const T* q, const T* k, const T* w, i64 d,
                                         const PairRows& p) {
  // Row 0 of these tables stands for "no row", with weight 1; row r + 1 for row r.
  const size_t width = static_cast<size_t>(d), cells = static_cast<size_t>(p.rows + 1) * width;
  std::vector<T> one_w(cells, T(1)), scaled(cells), sums(cells);
  std::copy(w, w + p.rows * d, one_w.begin() + d);
  if (dk) fill_run(dk, p.keys * d, T(0));
  if (dw) fill_run(dw, p.rows * d, T(0));
  for (i64 i = 0; i < p.queries; ++i) {
    const T *qi = q + i * d, *gi = g + i * p.keys;
    const i64* row = p.row + i * p.keys;
    // M_r = Σ_{j: r_ij = r} g_ij k_j serves both: dq_i = Σ_r w_r ⊙ M_r, dw_r += q_i ⊙ M_r.
    if (dq || dw) {
      fill_run(sums.data(), static_cast<i64>(cells), T(0));
      for (i64 j = 0; j < p.keys; ++j) {
        T* to = sums.data() + (row[j] + 1) * d;
        const T* kj = k + j * d;
        const T v = gi[j];
#pragma omp simd
        for (i64 t = 0; t < d; ++t) to[t] += v * kj[t];
      }
    }
    if (dq) {
      T* to = dq + i * d;
      fill_run(to, d, T(0));
      for (i64 r = 0; r <= p.rows; ++r)
        for (i64 t = 0; t < d; ++t) to[t] += one_w[static_cast<size_t>(r * d + t)] * sums[static_cast<size_t>(r * d + t)];
    }
    if (dw)
      for (i64 r = 0; r < p.rows; ++r)
        for (i64 t = 0; t < d; ++t) dw[r * d + t] += qi[t] * sums[static_cast<size_t>((r + 1) * d + t)];
    if (dk) {
      for (i64 r = 0; r <= p.rows; ++r)
        for (i64 t = 0; t < d; ++t) scaled[static_cast<size_t>(r * d + t)] = qi[t] * one_w[static_cast<size_t>(r * d + t)];
      for (i64 j = 0; j < p.keys; ++j) {
        const T* from = scaled.data() + (row[j] + 1) * d;
        T* to = dk + j * d;
        const T v = gi[j];
#pragma omp simd
        for (i64 t = 0; t < d; ++t) to[t] += v * from[t];
      }
    }
  }
}

// One clone per dtype: target_clones does not go with templates.
#define WAYMARK_FOR(T, SUFFIX)                                                                                          \
  WAYMARK_CLONES void gather_##SUFFIX(T* y, const T* x, const PairRows& p, i64 step) { gather_rows_of(y, x, p, step); } \
  WAYMARK_CLONES void gather_key_##SUFFIX(T* y, const T* x, const PairRows& p) { gather_key_of(y, x, p); }              \
  WAYMARK_CLONES void scatter_shared_##SUFFIX(T* x, const T* g, const PairRows& p) { scatter_shared_of(x, g, p); }      \
  WAYMARK_CLONES void scatter_query_##SUFFIX(T* x, const T* g, const PairRows& p) { scatter_query_of(x, g, p); }        \
  WAYMARK_CLONES void scatter_key_##SUFFIX(T* x, const T* g, const PairRows& p) { scatter_key_of(x, g, p); }            \
  WAYMARK_CLONES void three_way_##SUFFIX(T* c, const T* q, const T* k, const T* w, i64 d, const PairRows& p) {          \
    three_way_of(c, q, k, w, d, p);                                                                                     \
  }                                                                                                                     \
  WAYMARK_CLONES void three_way_backward_##SUFFIX(T* dq, T* dk, T* dw, const T* g, const T* q, const T* k, const T* w,  \
                                                  i64 d, const PairRows& p) {                                           \
    three_way_backward_of(dq, dk, dw, g, q, k, w, d, p);                                                                \
  }
WAYMARK_FOR(float, f32)
WAYMARK_FOR(double, f64)
#undef WAYMARK_FOR

}  // namespace

std::vector<PairRun> find_runs(const i64* row, i64 queries, i64 keys) {
  std::vector<PairRun> runs(static_cast<size_t>(queries));
  for (i64 i = 0; i < queries && keys > 0; ++i) {
    const i64* r = row + i * keys;
    PairRun& run = runs[static_cast<size_t>(i)];
    run.first = r[0];
    i64 j = 1;
    while (j < keys && r[j] == run.first) ++j;
    run.a = j;
    run.start = j < keys && r[j] >= 0 ? r[j] : 0;
    if (j < keys && r[j] >= 0) ++j;
    while (j < keys && j > run.a && r[j] == r[j - 1] + 1) ++j;
    run.b = j;
    run.last = j < keys ? r[j] : -1;
    while (j < keys && r[j] == run.last) ++j;
    run.is_run = j == keys;
  }
  return runs;
}

#define WAYMARK_FOR(T, SUFFIX)                                                                                         \
  template <> void gather_shared(T* y, const T* x, const PairRows& p) { gather_##SUFFIX(y, x, p, 0); }                \
  template <> void gather_query(T* y, const T* x, const PairRows& p) { gather_##SUFFIX(y, x, p, p.rows); }            \
  template <> void gather_key(T* y, const T* x, const PairRows& p) { gather_key_##SUFFIX(y, x, p); }                  \
  template <> void scatter_shared(T* x, const T* g, const PairRows& p) { scatter_shared_##SUFFIX(x, g, p); }          \
  template <> void scatter_query(T* x, const T* g, const PairRows& p) { scatter_query_##SUFFIX(x, g, p); }            \
  template <> void scatter_key(T* x, const T* g, const PairRows& p) { scatter_key_##SUFFIX(x, g, p); }                \
  template <> void three_way(T* c, const T* q, const T* k, const T* w, i64 d, const PairRows& p) {                    \
    three_way_##SUFFIX(c, q, k, w, d, p);                                                                              \
  }                                                                                                                    \
  template <>                                                                                                          \
  void three_way_backward(T* dq, T* dk, T* dw, const T* g, const T* q, const T* k, const T* w, i64 d,                 \
                          const PairRows& p) {                                                                         \
    three_way_backward_##SUFFIX(dq, dk, dw, g, q, k, w, d, p);                                                         \
  }
WAYMARK_FOR(float, f32)
WAYMARK_FOR(double, f64)
#undef WAYMARK_FOR

}  // namespace waymark::kernels
