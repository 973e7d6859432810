#include "core/kernels/gemm.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "core/kernels/blas.h"
#include "core/kernels/column_sums.h"
#include "core/kernels/gemm_kernel.h"
#include "core/kernels/scratch.h"
#include "core/parallel/parallel.h"
#include "core/tensor/small_vector.h"

namespace waymark::kernels {
namespace {

// What each thread has asked for: written by its thread alone, so that counting costs no locked instruction.
struct Counters {
  std::atomic<i64> calls{0}, flops{0};
  Counters();
  ~Counters();
};
struct AllCounters {
  std::mutex mutex;
  std::vector<const Counters*> threads;
  i64 calls = 0, flops = 0;  // of threads that have ended
};
AllCounters& all_counters() {
  static auto* const immortal = new AllCounters;
  return *immortal;
}
Counters::Counters() {
  AllCounters& all = all_counters();
  const std::lock_guard lock(all.mutex);
  all.threads.push_back(this);
}
Counters::~Counters() {
  AllCounters& all = all_counters();
  const std::lock_guard lock(all.mutex);
  std::erase(all.threads, this);
  all.calls += calls.load(std::memory_order_relaxed);
  all.flops += flops.load(std::memory_order_relaxed);
}
thread_local Counters my_counters;

// Books requests; a multiply-add is two operations.
void book(i64 count, i64 batch, i64 m, i64 n, i64 k) {
  constexpr auto relaxed = std::memory_order_relaxed;
  Counters& mine = my_counters;
  mine.calls.store(mine.calls.load(relaxed) + count, relaxed);
  mine.flops.store(mine.flops.load(relaxed) + 2 * batch * m * n * k, relaxed);
}
i64 total(i64 AllCounters::*ended, std::atomic<i64> Counters::*member) {
  AllCounters& all = all_counters();
  const std::lock_guard lock(all.mutex);
  i64 sum = all.*ended;
  for (const Counters* c : all.threads) sum += (c->*member).load(std::memory_order_relaxed);
  return sum;
}

constexpr double kTaskFlops = 4e6;
constexpr i64 kMaxTasks = 8;
constexpr i64 kMaxExtent = i64{1} << 30;  // what one BLAS call may have: its integers have 32 bits

i64 pieces(i64 n, i64 size) { return (n + size - 1) / size; }
i64 round_up(i64 n, i64 multiple) { return pieces(n, multiple) * multiple; }
double flops_of(i64 m, i64 n, i64 k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// An operand as BLAS takes it; data, row_stride and col_stride address its elements for sub-blocks.
template <class T> struct Operand {
  MatrixView<T> view;
  bool transposed = false;
  i64 ld = 1;
};

// Axes of extent 1 have no meaningful stride. A leading dimension below the row length (overlapping windows) is refused
// by BLAS as well.
bool layout_fits(i64 rows, i64 cols, i64 row_stride, i64 col_stride, i64* ld) {
  if (cols > 1 && col_stride != 1) return false;
  *ld = rows > 1 ? row_stride : std::max<i64>(1, cols);
  return *ld >= std::max<i64>(1, cols) && *ld < kMaxExtent * 2 - 1;
}
template <class T> bool blas_operand(i64 rows, i64 cols, MatrixView<T> v, Operand<T>* out) {
  out->view = v;
  out->transposed = false;
  if (layout_fits(rows, cols, v.row_stride, v.col_stride, &out->ld)) return true;
  out->transposed = true;
  return layout_fits(cols, rows, v.col_stride, v.row_stride, &out->ld);
}

template <class T> void copy_rows(i64 rows, i64 cols, MatrixView<T> v, T* to) {
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < cols; ++j) to[i * cols + j] = v.data[i * v.row_stride + j * v.col_stride];
}

template <class T> void scale_c(i64 m, i64 n, T beta, T* c, i64 ldc) {
  for (i64 i = 0; i < m; ++i) {
    if (beta == T(0)) std::fill_n(c + i * ldc, n, T(0));
    else if (beta != T(1))
      for (i64 j = 0; j < n; ++j) c[i * ldc + j] *= beta;
  }
}

// How a product is computed: by which kernel, from operands in which layout, cut into which tasks.
template <class T> struct Plan {
  i64 m, n, k;
  T alpha, beta;
  Operand<T> a, b;
  bool own;  // our kernel, or BLAS
  GemmCut cut;
  i64 row_pieces, column_pieces, inner_pieces;

  Plan(i64 m_, i64 n_, i64 k_, T alpha_, MatrixView<T> a_, MatrixView<T> b_, T beta_)
      : m(m_), n(n_), k(k_), alpha(alpha_), beta(beta_), a{a_}, b{b_}, own(kernel_gemm_wins(m_, n_, k_, a_, b_)),
        cut(gemm_cut(m_, n_, k_)), row_pieces(pieces(m_, cut.rows)), column_pieces(pieces(n_, cut.columns)),
        inner_pieces(pieces(k_, cut.inner)) {}

  i64 tiles() const { return row_pieces * column_pieces; }
  // One tile and one inner block of operands at a_data, b_data; `out` is the tile's place in any matrix.
  void run(i64 tile, i64 block, const T* a_data, const T* b_data, T beta_here, T* out, i64 ldc) const {
    const i64 i = tile / column_pieces * cut.rows, j = tile % column_pieces * cut.columns, p = block * cut.inner;
    const i64 rows = std::min(cut.rows, m - i), columns = std::min(cut.columns, n - j);
    const i64 inner = std::min(cut.inner, k - p);
    const T* const from_a = a_data + i * a.view.row_stride + p * a.view.col_stride;
    const T* const from_b = b_data + p * b.view.row_stride + j * b.view.col_stride;
    if (own)
      kernel_gemm(rows, columns, inner, alpha, MatrixView<T>{from_a, a.view.row_stride, a.view.col_stride},
                  MatrixView<T>{from_b, b.view.row_stride, b.view.col_stride}, beta_here, out, ldc);
    else
      blas_gemm(a.transposed, b.transposed, rows, columns, inner, alpha, from_a, a.ld, from_b, b.ld, beta_here, out,
                ldc);
  }
  T* place(i64 tile, T* c, i64 ldc) const {
    return c + tile / column_pieces * cut.rows * ldc + tile % column_pieces * cut.columns;
  }
};

// One product of a list: the work of its tasks, and of the pass that adds the inner blocks up.
template <class T> struct Prepared {
  Plan<T> plan;
  T* c;
  i64 ldc;
  T* blocks = nullptr;  // inner blocks 1, 2, ...: m x n each, dense
  Scratch<T> a_copy, b_copy, block_memory;
  i64 tasks = 0;

  explicit Prepared(const Product<T>& q)
      : plan(q.m, q.n, q.k, q.alpha, q.a, q.b, q.beta), c(q.c), ldc(q.m > 1 ? q.ldc : q.n) {
    if (q.m == 0 || q.n == 0) return;
    if (q.k == 0 || q.alpha == T(0)) {
      scale_c(q.m, q.n, q.beta, q.c, ldc);
      return;
    }
    tasks = plan.tiles() * plan.inner_pieces;
    if (!plan.own) {
      check_blas();
      if (!blas_operand(q.m, q.k, q.a, &plan.a)) plan.a = copied(q.m, q.k, q.a, a_copy);
      if (!blas_operand(q.k, q.n, q.b, &plan.b)) plan.b = copied(q.k, q.n, q.b, b_copy);
    }
    if (plan.inner_pieces > 1) blocks = block_memory.allocate((plan.inner_pieces - 1) * q.m * q.n);
  }
  void run(i64 task) const {
    const i64 tile = task % plan.tiles(), block = task / plan.tiles();
    const T *const a = plan.a.view.data, *const b = plan.b.view.data;
    if (block == 0) return plan.run(tile, 0, a, b, plan.beta, plan.place(tile, c, ldc), ldc);
    T* const matrix = blocks + (block - 1) * plan.m * plan.n;
    plan.run(tile, block, a, b, T(0), plan.place(tile, matrix, plan.n), plan.n);
  }
  void add_blocks() const {
    if (!blocks) return;
    const i64 grain = std::max<i64>(1, kGrain / (plan.n * plan.inner_pieces));
    parallel_for(plan.m, grain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i)
        for (i64 block = 1; block < plan.inner_pieces; ++block)
          add_columns(plan.n, blocks + ((block - 1) * plan.m + i) * plan.n, c + i * ldc);
    });
  }

 private:
  static Operand<T> copied(i64 rows, i64 cols, MatrixView<T> v, Scratch<T>& memory) {
    T* const to = memory.allocate(rows * cols);
    copy_rows(rows, cols, v, to);
    return {{to, cols, 1}, false, std::max<i64>(1, cols)};
  }
};

using Axes = SmallVector<BatchAxis, 6>;

// Walks the indices of the batch axes in row-major order.
class BatchIndex {
 public:
  BatchIndex(std::span<const BatchAxis> axes, i64 flat) : axes_(axes), index_(axes.size()) {
    for (size_t x = axes.size(); x-- > 0;) {
      index_[x] = flat % axes[x].extent;
      flat /= axes[x].extent;
      a += index_[x] * axes[x].a;
      b += index_[x] * axes[x].b;
      c += index_[x] * axes[x].c;
    }
  }
  void next() {
    for (size_t x = axes_.size(); x-- > 0;) {
      a += axes_[x].a;
      b += axes_[x].b;
      c += axes_[x].c;
      if (++index_[x] < axes_[x].extent) return;
      a -= axes_[x].extent * axes_[x].a;
      b -= axes_[x].extent * axes_[x].b;
      c -= axes_[x].extent * axes_[x].c;
      index_[x] = 0;
    }
  }
  i64 a = 0, b = 0, c = 0;  // offsets of the operands

 private:
  std::span<const BatchAxis> axes_;
  SmallVector<i64, 6> index_;
};

// Dense row-major copies of every distinct matrix of a batched operand; `step` picks the operand's member of BatchAxis.
template <class T>
Operand<T> copy_batch(Axes& axes, i64 BatchAxis::*step, i64 rows, i64 cols, MatrixView<T> v,
                      Scratch<T>& memory) {
  Axes from;
  for (const BatchAxis& x : axes)
    if (x.*step != 0) from.push_back({x.extent, x.*step, 0, 0});
  i64 count = 1;
  for (const BatchAxis& x : from) count *= x.extent;
  T* const to = memory.allocate(count * rows * cols);
  parallel_for(count, std::max<i64>(1, kGrain / (rows * cols)), [&](i64 begin, i64 end) {
    BatchIndex at({from.begin(), from.size()}, begin);
    for (i64 i = begin; i < end; ++i, at.next())
      copy_rows(rows, cols, {v.data + at.a, v.row_stride, v.col_stride}, to + i * rows * cols);
  });
  i64 dense = rows * cols;
  for (size_t x = axes.size(); x-- > 0;) {
    if (axes[x].*step == 0) continue;
    axes[x].*step = dense;
    dense *= axes[x].extent;
  }
  return {{to, cols, 1}, false, std::max<i64>(1, cols)};
}

}  // namespace

i64 gemm_calls() { return total(&AllCounters::calls, &Counters::calls); }
i64 gemm_flops() { return total(&AllCounters::flops, &Counters::flops); }

GemmCut gemm_cut(i64 m, i64 n, i64 k) {
  const double flops = flops_of(m, n, k);
  const i64 want = std::clamp(static_cast<i64>(std::min(flops / kTaskFlops, 1e3)), i64{1}, kMaxTasks);
  // Smaller tiles make BLAS pack its operands more often. Measured (512^3, AVX-512): a tile of r x c costs about
  // 18/r + 8.5/c of the product's time; what cutting adds must stay below 5 %.
  const auto packing = [](i64 rows, i64 columns) {
    return 18.0 / static_cast<double>(rows) + 8.5 / static_cast<double>(columns);
  };
  GemmCut best{m, n, k};
  i64 best_tiles = 1;
  double best_cost = 0;
  for (i64 row_pieces = 1; row_pieces <= want; ++row_pieces) {
    for (i64 column_pieces = 1; row_pieces * column_pieces <= want; ++column_pieces) {
      const i64 rows = std::min(m, round_up(pieces(m, row_pieces), 64));
      const i64 columns = std::min(n, round_up(pieces(n, column_pieces), 128));
      if (rows == 0 || columns == 0) continue;
      const i64 tiles = pieces(m, rows) * pieces(n, columns);
      const double cost = packing(rows, columns) - packing(m, n);
      if (cost > 0.0535 || tiles < best_tiles || (tiles == best_tiles && cost >= best_cost)) continue;
      best = {rows, columns, k};
      best_tiles = tiles;
      best_cost = cost;
    }
  }
  // Adding m x n results costs as much as about 60 flops each: worth it for long inner axes only.
  const i64 inner_pieces = std::min({want / best_tiles, 1 + k / 600, std::max<i64>(1, k / 256)});
  if (inner_pieces > 1) best.inner = std::min(k, round_up(pieces(k, inner_pieces), 64));
  best = {std::min(best.rows, kMaxExtent), std::min(best.columns, kMaxExtent), std::min(best.inner, kMaxExtent)};
  return {std::max<i64>(1, best.rows), std::max<i64>(1, best.columns), std::max<i64>(1, best.inner)};
}

template <class T> void gemm_many(std::span<const Product<T>> products) {
  for (const Product<T>& q : products) book(1, 1, q.m, q.n, q.k);
  if (products.size() == 1) {
    const Prepared<T> p(products[0]);
    parallel_tasks(p.tasks, [&](i64 task) { p.run(task); });
    return p.add_blocks();
  }
  std::vector<std::unique_ptr<Prepared<T>>> list;
  std::vector<i64> first{0};  // of each product's tasks
  for (const Product<T>& q : products) {
    list.push_back(std::make_unique<Prepared<T>>(q));
    first.push_back(first.back() + list.back()->tasks);
  }
  parallel_tasks(first.back(), [&](i64 task) {
    const auto at = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), task) - first.begin() - 1);
    list[at]->run(task - first[at]);
  });
  for (const auto& p : list) p->add_blocks();
}

template <class T>
void gemm(i64 m, i64 n, i64 k, T alpha, MatrixView<T> a, MatrixView<T> b, T beta, T* c, i64 ldc) {
  // One task needs no plan.
  const bool works = m > 0 && n > 0 && k > 0 && alpha != T(0);
  if (works && flops_of(m, n, k) < 2 * kTaskFlops && kernel_gemm_wins(m, n, k, a, b)) {
    book(1, 1, m, n, k);
    return kernel_gemm(m, n, k, alpha, a, b, beta, c, ldc);
  }
  const Product<T> product{m, n, k, alpha, a, b, beta, c, ldc};
  gemm_many(std::span<const Product<T>>(&product, 1));
}

template <class T>
void bmm(std::span<const BatchAxis> axes, i64 m, i64 n, i64 k, T alpha, MatrixView<T> a, MatrixView<T> b, T beta, T* c,
         i64 ldc) {
  Axes steps;
  i64 batch = 1;
  for (const BatchAxis& x : axes) {
    steps.push_back(x);
    batch *= x.extent;
  }
  book(1, batch, m, n, k);
  if (batch == 0 || m == 0 || n == 0) return;
  if (m == 1) ldc = n;
  const bool empty = k == 0 || alpha == T(0);
  Plan<T> plan(m, n, k, alpha, a, b, beta);
  Scratch<T> a_copy, b_copy;
  if (!empty && !plan.own) {
    check_blas();
    if (!blas_operand(m, k, a, &plan.a)) plan.a = copy_batch(steps, &BatchAxis::a, m, k, a, a_copy);
    if (!blas_operand(k, n, b, &plan.b)) plan.b = copy_batch(steps, &BatchAxis::b, k, n, b, b_copy);
  }
  // One task: `group` whole products, or one tile of a product that is cut, with its inner blocks in order.
  const i64 tiles = empty ? 1 : plan.tiles();
  const i64 group =
      tiles > 1 ? 1 : std::clamp(static_cast<i64>(kTaskFlops / flops_of(m, n, std::max<i64>(1, k))), i64{1}, batch);
  parallel_tasks(pieces(batch, group) * tiles, [&](i64 task) {
    const i64 begin = task / tiles * group, end = std::min(batch, begin + group), tile = task % tiles;
    Scratch<T> memory;
    const bool adds = !empty && plan.inner_pieces > 1;
    T* const sum = adds ? memory.allocate(plan.cut.rows * plan.cut.columns) : nullptr;
    BatchIndex at({steps.begin(), steps.size()}, begin);
    for (i64 i = begin; i < end; ++i, at.next()) {
      T* const to = c + at.c;
      if (empty) {
        scale_c(m, n, beta, to, ldc);
        continue;
      }
      const T *const from_a = plan.a.view.data + at.a, *const from_b = plan.b.view.data + at.b;
      T* const place = plan.place(tile, to, ldc);
      plan.run(tile, 0, from_a, from_b, beta, place, ldc);
      for (i64 block = 1; block < plan.inner_pieces; ++block) {
        plan.run(tile, block, from_a, from_b, T(0), sum, plan.cut.columns);
        const i64 rows = std::min(plan.cut.rows, m - tile / plan.column_pieces * plan.cut.rows);
        const i64 columns = std::min(plan.cut.columns, n - tile % plan.column_pieces * plan.cut.columns);
        for (i64 r = 0; r < rows; ++r) add_columns(columns, sum + r * plan.cut.columns, place + r * ldc);
      }
    }
  });
}

#define WAYMARK_GEMM(T)                                                                                           \
  template void gemm<T>(i64, i64, i64, T, MatrixView<T>, MatrixView<T>, T, T*, i64);                              \
  template void bmm<T>(std::span<const BatchAxis>, i64, i64, i64, T, MatrixView<T>, MatrixView<T>, T, T*, i64);   \
  template void gemm_many<T>(std::span<const Product<T>>);
WAYMARK_GEMM(float)
WAYMARK_GEMM(double)

}  // namespace waymark::kernels
