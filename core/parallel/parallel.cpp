#include "core/parallel/parallel.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/parallel/backend.h"
#include "core/tensor/error.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace waymark {

using namespace parallel;

namespace parallel {

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

namespace {
constinit thread_local bool inside_region = false;
}
InRegion::InRegion(u32 mxcsr) : before_(inside_region), mxcsr_(read_mxcsr()) {
  inside_region = true;
  if (mxcsr != mxcsr_) write_mxcsr(mxcsr);
}
InRegion::~InRegion() {
  inside_region = before_;
  if (read_mxcsr() != mxcsr_) write_mxcsr(mxcsr_);
}
bool InRegion::here() { return inside_region; }

}  // namespace parallel

namespace {

constexpr int kMaxThreads = 1024;
std::atomic<int> threads{0};
std::atomic<i64> regions{0};

const Backend& backend_named(std::string_view name) {
#if defined(WAYMARK_BACKEND_TBB)
  if (name == kTbb.name) return kTbb;
#endif
  if (name == kThreads.name) return kThreads;
  if (name == kSerial.name) return kSerial;
  fail("parallel", "there is no backend \"{}\" in this build; expected {}threads or serial", name,
#if defined(WAYMARK_BACKEND_TBB)
       "tbb, "
#else
       ""
#endif
  );
}

std::atomic<const Backend*> chosen{nullptr};
const Backend& backend() {
  const Backend* b = chosen.load(std::memory_order_acquire);
  if (!b) [[unlikely]] {
#if defined(WAYMARK_BACKEND_TBB)
    b = &kTbb;
#elif defined(WAYMARK_BACKEND_SERIAL)
    b = &kSerial;
#else
    b = &kThreads;
#endif
    if (const char* name = std::getenv("WAYMARK_BACKEND"); name && *name) b = &backend_named(name);
    chosen.store(b, std::memory_order_release);
  }
  return *b;
}

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
  backend().resize(n);
}

const char* parallel_backend() { return backend().name; }
i64 parallel_regions() { return regions.load(std::memory_order_relaxed); }

namespace detail {

void run_chunks(i64 chunks, const ChunkBody& body, bool even) {
  if (InRegion::here() || num_threads() == 1) {
    for (i64 c = 0; c < chunks; ++c) body(c);
    return;
  }
  regions.fetch_add(1, std::memory_order_relaxed);
  backend().dispatch(chunks, body, even);
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
bool denormals_flushed() { return (read_mxcsr() & kFlushToZero) != 0; }

namespace testing {

void set_parallel_backend(const char* name) {
  const Backend& b = backend_named(name);
  chosen.store(&b, std::memory_order_release);
  b.resize(num_threads());
}

}  // namespace testing
}  // namespace waymark
