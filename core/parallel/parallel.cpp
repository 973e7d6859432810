#include "core/parallel/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <exception>
#include <thread>

#include "core/tensor/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#if !defined(WAYMARK_BACKEND_THREADS) && !defined(WAYMARK_BACKEND_SERIAL)
#define WAYMARK_BACKEND_TBB 1
#endif

#if defined(WAYMARK_BACKEND_TBB)
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#elif defined(WAYMARK_BACKEND_THREADS)
#include <condition_variable>
#include <mutex>
#include <vector>
#endif

namespace waymark {
namespace {

u32 read_mxcsr() {
#if defined(__x86_64__)
  return _mm_getcsr();
#else
  return 0;
#endif
}
void write_mxcsr([[maybe_unused]] u32 v) {
#if defined(__x86_64__)
  _mm_setcsr(v);
#endif
}

// Cores that this process may use: affinity mask, cut by the cgroup's quota.
int usable_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::max(1, std::min(cores, CPU_COUNT(&set)));
  if (std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    double quota = 0, period = 0;
    if (std::fscanf(f, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
      cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(quota / period))));
    std::fclose(f);
  }
  return cores;
}

constexpr int kMaxThreads = 1024;
std::atomic<int> threads{0};
std::atomic<i64> regions{0};
thread_local bool inside_region = false;

struct RegionFlag {
  RegionFlag() : before(inside_region) { inside_region = true; }
  ~RegionFlag() { inside_region = before; }
  bool before;
};

#if defined(WAYMARK_BACKEND_TBB)

constexpr const char* kBackend = "tbb";
tbb::task_arena& arena() {
  // TBB allows no more workers than cores unless told; more threads than cores are legal here (tests use them).
  [[maybe_unused]] static auto* const allowed =
      new tbb::global_control(tbb::global_control::max_allowed_parallelism, kMaxThreads);
  static auto* const immortal = new tbb::task_arena(num_threads());
  return *immortal;
}
void resize_backend(int n) {
  arena().terminate();
  arena().initialize(n);
}
void dispatch(i64 chunks, const detail::ChunkBody& body) {
  const u32 mxcsr = read_mxcsr();
  arena().execute([&] {
    // Isolated: a thread that waits here must not steal an unrelated outer task.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(tbb::blocked_range<i64>(0, chunks), [&](const tbb::blocked_range<i64>& r) {
        const RegionFlag flag;
        const u32 before = read_mxcsr();
        write_mxcsr(mxcsr);
        struct Restore { u32 v; ~Restore() { write_mxcsr(v); } } restore{before};
        for (i64 c = r.begin(); c < r.end(); ++c) body(c);
      });
    });
  });
}

#elif defined(WAYMARK_BACKEND_THREADS)

constexpr const char* kBackend = "threads";
void resize_backend(int) {}
// One fresh set of threads per region: simple enough for ThreadSanitizer to follow every hand-over.
void dispatch(i64 chunks, const detail::ChunkBody& body) {
  const u32 mxcsr = read_mxcsr();
  std::atomic<i64> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    const RegionFlag flag;
    const u32 before = read_mxcsr();
    write_mxcsr(mxcsr);
    for (i64 c = next++; c < chunks && !stop; c = next++) {
      try {
        body(c);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        stop = true;
      }
    }
    write_mxcsr(before);
  };
  std::vector<std::thread> pool;
  const i64 helpers = std::min<i64>(num_threads(), chunks) - 1;
  for (i64 i = 0; i < helpers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
  if (error) std::rethrow_exception(error);
}

#else

constexpr const char* kBackend = "serial";
void resize_backend(int) {}
void dispatch(i64 chunks, const detail::ChunkBody& body) {
  const RegionFlag flag;
  for (i64 c = 0; c < chunks; ++c) body(c);
}

#endif

}  // namespace

int num_threads() {
  int n = threads.load(std::memory_order_relaxed);
  if (n == 0) {
    int unset = 0;
    threads.compare_exchange_strong(unset, usable_cores());
    n = threads.load(std::memory_order_relaxed);
  }
  return n;
}

void set_num_threads(int n) {
  if (n < 1 || n > kMaxThreads) fail("set_num_threads", "{} threads: 1 to {} are allowed", n, kMaxThreads);
  if (n == num_threads()) return;
  threads.store(n);
  resize_backend(n);
}

const char* parallel_backend() { return kBackend; }
i64 parallel_regions() { return regions.load(std::memory_order_relaxed); }

namespace detail {

void run_chunks(i64 chunks, const ChunkBody& body) {
  if (inside_region || num_threads() == 1) {
    for (i64 c = 0; c < chunks; ++c) body(c);
    return;
  }
  regions.fetch_add(1, std::memory_order_relaxed);
  dispatch(chunks, body);
}

}  // namespace detail

namespace {
constexpr u32 kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
}

DenormalGuard::DenormalGuard(bool on) : before_(read_mxcsr()) {
  const u32 bits = kFlushToZero | kDenormalsAreZero;
  write_mxcsr(on ? before_ | bits : before_ & ~bits);
}
DenormalGuard::~DenormalGuard() { write_mxcsr(before_); }

}  // namespace waymark
