// oneTBB: one arena of explicit concurrency, entered from outside.
#include "core/parallel/backend.h"

#if defined(WAYMARK_BACKEND_TBB)

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace waymark::parallel {
namespace {

tbb::task_arena& arena() {
  // TBB allows no more workers than cores unless told; more threads than cores are legal here (tests use them).
  [[maybe_unused]] static auto* const allowed =
      new tbb::global_control(tbb::global_control::max_allowed_parallelism, 1024);
  static auto* const immortal = new tbb::task_arena(num_threads());
  return *immortal;
}

void dispatch_tbb(i64 chunks, const detail::ChunkBody& body, bool even) {
  const u32 mxcsr = read_mxcsr();
  const auto work = [&](const tbb::blocked_range<i64>& r) {
    const InRegion inside(mxcsr);
    for (i64 c = r.begin(); c < r.end(); ++c) body(c);
  };
  const tbb::blocked_range<i64> range(0, chunks);
  arena().execute([&] {
    // Isolated: a thread that waits here must not steal an unrelated outer task.
    tbb::this_task_arena::isolate([&] {
      if (even) tbb::parallel_for(range, work, tbb::static_partitioner());
      else tbb::parallel_for(range, work);
    });
  });
}

void resize(int n) {
  arena().terminate();
  arena().initialize(n);
}

}  // namespace

const Backend kTbb{"tbb", dispatch_tbb, resize};

}  // namespace waymark::parallel

#endif
