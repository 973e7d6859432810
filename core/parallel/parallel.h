// The parallel seam: everything that uses more than one thread goes through here.
//
// * Chunks are a function of n and grain only, never of the number of threads, so results are bit-identical for any
//   number. Partial results are combined in chunk order.
// * A region starts only if there is more than one chunk; regions inside regions run inline (one level deep).
// * An exception in a body stops the region and is rethrown on the caller. Every chunk runs under the caller's MXCSR.
// * Backends: oneTBB (default), a plain std::thread pool, serial; chosen at build by -DWAYMARK_BACKEND and at start by the
//   environment variable WAYMARK_BACKEND. The pool exists for ThreadSanitizer, which cannot see inside an uninstrumented
//   TBB; it builds without TBB.
#pragma once

#include <memory>

#include "core/tensor/types.h"

namespace waymark {

// Elements below which an elementwise loop is not worth a second thread.
inline constexpr i64 kGrain = 32768;

// Default: the smaller of the physical cores in the affinity mask and the cgroup quota. 1 to 1024, else Error.
WAYMARK_API void set_num_threads(int n);
WAYMARK_API int num_threads();
// "tbb", "threads" or "serial"
WAYMARK_API const char* parallel_backend();
// Regions started by this process (a test shows that small work starts none).
WAYMARK_API i64 parallel_regions();

namespace detail {
// A non-owning reference to a callable: no allocation, one indirect call per chunk.
class ChunkBody {
 public:
  template <class F>
  explicit ChunkBody(F& f) : object_(&f), call_([](void* o, i64 chunk) { (*static_cast<F*>(o))(chunk); }) {}
  void operator()(i64 chunk) const { call_(object_, chunk); }

 private:
  void* object_;
  void (*call_)(void*, i64);
};
// even: the chunks are alike, so each thread gets its share at once.
WAYMARK_API void run_chunks(i64 chunks, const ChunkBody& body, bool even);
}  // namespace detail

// body(begin, end) over [0, n), cut into ceil(n / grain) chunks of `grain` indices, the last one shorter.
template <class F> void parallel_for(i64 n, i64 grain, F&& body) {
  if (n <= 0) return;
  if (n <= grain) return body(i64{0}, n);
  const i64 chunks = (n + grain - 1) / grain;
  auto one = [&](i64 c) { body(c * grain, c + 1 == chunks ? n : (c + 1) * grain); };
  detail::run_chunks(chunks, detail::ChunkBody(one), true);
}

// body(row_begin, row_end, col_begin, col_end) over [0, rows) x [0, cols), cut into tiles of row_grain x col_grain, the
// last ones of a row or column smaller.
template <class F> void parallel_for_2d(i64 rows, i64 cols, i64 row_grain, i64 col_grain, F&& body) {
  if (rows <= 0 || cols <= 0) return;
  const i64 down = (rows + row_grain - 1) / row_grain, across = (cols + col_grain - 1) / col_grain;
  auto one = [&](i64 tile) {
    const i64 r = tile / across * row_grain, c = tile % across * col_grain;
    body(r, rows - r < row_grain ? rows : r + row_grain, c, cols - c < col_grain ? cols : c + col_grain);
  };
  if (down * across == 1) return one(i64{0});
  detail::run_chunks(down * across, detail::ChunkBody(one), true);
}

// body(task) for task in [0, tasks): a flat list of tasks that are each worth a thread.
template <class F> void parallel_tasks(i64 tasks, F&& body) {
  if (tasks == 1) return body(i64{0});
  auto one = [&](i64 t) { body(t); };
  if (tasks > 1) detail::run_chunks(tasks, detail::ChunkBody(one), false);
}

// combine(... combine(combine(map(chunk 0), map(chunk 1)), map(chunk 2)) ...) pairwise as a balanced tree in index
// order: bit-identical for any number of threads. map(begin, end) -> T; combine(T, T) -> T. n > 0.
template <class T, class Map, class Combine> T deterministic_reduce(i64 n, i64 chunk, Map&& map, Combine&& combine) {
  const i64 chunks = (n + chunk - 1) / chunk;
  if (chunks <= 1) return map(i64{0}, n);
  std::unique_ptr<T[]> part(new T[static_cast<size_t>(chunks)]);
  // Several chunks a task, so that a task is worth its start; the tree below depends on n and chunk alone.
  const i64 per_task = chunk >= kGrain ? 1 : (kGrain + chunk - 1) / chunk;
  parallel_for(chunks, per_task, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) part[static_cast<size_t>(c)] = map(c * chunk, c + 1 == chunks ? n : (c + 1) * chunk);
  });
  for (i64 step = 1; step < chunks; step *= 2)
    for (i64 c = 0; c + step < chunks; c += 2 * step)
      part[static_cast<size_t>(c)] = combine(part[static_cast<size_t>(c)], part[static_cast<size_t>(c + step)]);
  return part[0];
}

// Flush-to-zero and denormals-are-zero for the ops of a scope, on all threads that work for it. Off by default; the
// trainer turns it on: vanishing activations otherwise cost a hundred cycles an element.
class WAYMARK_API DenormalGuard {
 public:
  explicit DenormalGuard(bool on = true);
  ~DenormalGuard();
  DenormalGuard(const DenormalGuard&) = delete;
  DenormalGuard& operator=(const DenormalGuard&) = delete;

 private:
  u32 before_;
};
// What a guard last set on this thread.
WAYMARK_API bool denormals_flushed();

namespace testing {
// "tbb", "threads" or "serial"; Error if the build has no such backend. Not while a region runs.
WAYMARK_API void set_parallel_backend(const char* name);
}  // namespace testing

}  // namespace waymark
