#include "core/tensor/allocator.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/tensor/error.h"

namespace waymark {
namespace {

// Size classes: multiples of 64 B up to 1 KiB, then 4 per power of two (at most 25 % waste).
constexpr int kLinear = 16;
constexpr i64 kLinearLimit = kLinear * 64;
constexpr int kClasses = kLinear + 4 * 40;

int class_of(i64 bytes) {
  if (bytes <= kLinearLimit) return static_cast<int>(std::max<i64>(bytes - 1, 0) / 64);
  const int log = 63 - std::countl_zero(static_cast<u64>(bytes - 1));  // 2^log <= bytes - 1 < 2^(log+1)
  const i64 quarter = i64{1} << (log - 2);
  const i64 step = (bytes - 1 - (i64{1} << log)) / quarter;  // 0..3
  return kLinear + (log - 10) * 4 + static_cast<int>(step);
}
i64 class_bytes(int c) {
  if (c < kLinear) return (c + 1) * i64{64};
  const int log = (c - kLinear) / 4 + 10, step = (c - kLinear) % 4;
  return (i64{1} << log) + (step + 1) * (i64{1} << (log - 2));
}

i64 env_bytes(const char* name, i64 fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const double v = std::strtod(text, &end);
  const double unit = *end == 'K' ? 0x1p10 : *end == 'M' ? 0x1p20 : *end == 'G' ? 0x1p30 : 1;
  return v >= 0 && v * unit < 0x1p62 ? static_cast<i64>(v * unit) : fallback;
}

struct Cache {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, kClasses> free;
  MemoryCounters counters;
  i64 cache_limit = env_bytes("WAYMARK_CACHE_LIMIT", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4);
  i64 memory_limit = env_bytes("WAYMARK_MEMORY_LIMIT", INT64_MAX);
  i64 fail_after = -1;
  bool poison = false;

  void flush() {
    for (auto& list : free) {
      for (std::byte* p : list) std::free(p);
      list.clear();
    }
    counters.bytes_cached = 0;
  }
};
Cache& cache() {
  static Cache* const immortal = new Cache;
  return *immortal;
}

std::string readable(i64 bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  const char* unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes) / 1024;
  int i = 0;
  while (v >= 1024 && i < 5) { v /= 1024; ++i; }
  return fmt::format("{:.1f} {}", v, unit[i]);
}

std::byte* take(i64 bytes, int c) {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  if (k.fail_after >= 0 && k.fail_after-- == 0) fail("empty", "cannot get {} (failing allocator of a test)", readable(bytes));
  const i64 size = class_bytes(c);
  if (k.counters.bytes_live + size > k.memory_limit)
    fail("empty", "cannot get {} (live {}, limit {})", readable(bytes), readable(k.counters.bytes_live),
         readable(k.memory_limit));
  std::byte* p = nullptr;
  auto& list = k.free[static_cast<size_t>(c)];
  if (!list.empty()) {
    p = list.back();
    list.pop_back();
    k.counters.bytes_cached -= size;
  } else {
    ++k.counters.allocations;
    p = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size)));
    if (!p) {
      k.flush();
      p = static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size)));
    }
    if (!p) fail("empty", "cannot get {} (live {}; the system has no more)", readable(bytes), readable(k.counters.bytes_live));
  }
  k.counters.bytes_live += size;
  k.counters.bytes_peak = std::max(k.counters.bytes_peak, k.counters.bytes_live);
  if (k.poison) std::memset(p, 0xFF, static_cast<size_t>(size));  // all-ones words: NaN in f32 and f64
  return p;
}

void give(std::byte* p, int c) {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  const i64 size = class_bytes(c);
  k.counters.bytes_live -= size;
  if (k.poison) std::memset(p, 0x5A, static_cast<size_t>(size));
  if (k.counters.bytes_cached + size > k.cache_limit) {
    std::free(p);
    return;
  }
  k.free[static_cast<size_t>(c)].push_back(p);
  k.counters.bytes_cached += size;
}

// Slabs of small objects: one free list per multiple of 32 bytes, refilled from chunks that are never given back.
constexpr size_t kSmallStep = 32, kSmallClasses = 32, kSmallLimit = kSmallStep * kSmallClasses;

struct FreeCell { FreeCell* next; };
struct Orphans {
  std::mutex mutex;
  std::array<FreeCell*, kSmallClasses> lists{};
};
Orphans& orphans() {
  static Orphans* const immortal = new Orphans;
  return *immortal;
}
struct Slabs {
  std::array<FreeCell*, kSmallClasses> lists{};
  ~Slabs();
};
thread_local bool slabs_gone = false;  // objects freed later than this thread's lists go to the orphans
thread_local Slabs slabs;

void adopt_into(std::array<FreeCell*, kSmallClasses>& target, size_t c, FreeCell* list) {
  while (list) {
    FreeCell* next = list->next;
    list->next = target[c];
    target[c] = list;
    list = next;
  }
}
Slabs::~Slabs() {
  slabs_gone = true;
  Orphans& o = orphans();
  std::lock_guard lock(o.mutex);
  for (size_t c = 0; c < kSmallClasses; ++c) adopt_into(o.lists, c, lists[c]);
}

FreeCell* refill(size_t c) {
  {
    Orphans& o = orphans();
    std::lock_guard lock(o.mutex);
    if (o.lists[c]) return std::exchange(o.lists[c], nullptr);
  }
  const size_t size = (c + 1) * kSmallStep, count = std::max<size_t>(16384 / size, 8);
  auto* chunk = static_cast<std::byte*>(std::aligned_alloc(64, (size * count + 63) / 64 * 64));
  if (!chunk) throw std::bad_alloc();
  FreeCell* list = nullptr;
  for (size_t i = count; i-- > 0;) {
    auto* cell = reinterpret_cast<FreeCell*>(chunk + i * size);
    cell->next = list;
    list = cell;
  }
  return list;
}

}  // namespace

void* small_allocate(std::size_t bytes) {
  if (bytes > kSmallLimit) return ::operator new(bytes);
  const size_t c = (std::max<size_t>(bytes, 1) - 1) / kSmallStep;
  if (slabs_gone) [[unlikely]] return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  FreeCell*& list = slabs.lists[c];
  if (!list) [[unlikely]] list = refill(c);
  FreeCell* cell = list;
  list = cell->next;
  return cell;
}

void small_free(void* p, std::size_t bytes) noexcept {
  if (bytes > kSmallLimit) return ::operator delete(p);
  const size_t c = (std::max<size_t>(bytes, 1) - 1) / kSmallStep;
  auto* cell = static_cast<FreeCell*>(p);
  if (slabs_gone) [[unlikely]] {
    Orphans& o = orphans();
    std::lock_guard lock(o.mutex);
    cell->next = o.lists[c];
    o.lists[c] = cell;
    return;
  }
  cell->next = slabs.lists[c];
  slabs.lists[c] = cell;
}

Intrusive<Block> Block::allocate(i64 bytes) {
  const int c = class_of(bytes);
  if (c >= kClasses) fail("empty", "cannot get {}", readable(bytes));
  std::byte* data = take(bytes, c);
  auto* block = new (small_allocate(sizeof(Block))) Block;
  block->data_ = data;
  block->bytes_ = bytes;
  block->size_class_ = c;
  return Intrusive<Block>(block);
}

Intrusive<Block> Block::borrow(void* data, i64 bytes, void (*deleter)(void*), void* context) {
  auto* block = new (small_allocate(sizeof(Block))) Block;
  block->data_ = static_cast<std::byte*>(data);
  block->bytes_ = bytes;
  block->deleter_ = deleter;
  block->context_ = context;
  return Intrusive<Block>(block);
}

void Block::destroy(Block* block) {
  if (block->size_class_ >= 0) give(block->data_, block->size_class_);
  else if (block->deleter_) block->deleter_(block->context_);
  block->~Block();
  small_free(block, sizeof(Block));
}

void release_cache() {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  k.flush();
}

MemoryCounters memory_counters() {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  return k.counters;
}

void reset_peak() {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  k.counters.bytes_peak = k.counters.bytes_live;
}

namespace testing {

void fail_after(i64 allocations) {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  k.fail_after = allocations;
}

void poison(bool on) {
  Cache& k = cache();
  std::lock_guard lock(k.mutex);
  k.poison = on;
}

}  // namespace testing
}  // namespace waymark
