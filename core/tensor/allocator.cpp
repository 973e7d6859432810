#include "core/tensor/allocator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/poison.h"

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

// A number of bytes from the environment; one that cannot be read is named and ignored.
i64 env_bytes(const char* name, i64 fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const double v = std::strtod(text, &end);
  const double unit = *end == 'K' ? 0x1p10 : *end == 'M' ? 0x1p20 : *end == 'G' ? 0x1p30 : 1;
  if (end != text && v >= 0 && v * unit < 0x1p62 && (*end == 0 || (unit > 1 && end[1] == 0))) return static_cast<i64>(v * unit);
  std::fprintf(stderr, "waymark: %s=%s is ignored: expected bytes, or a number with K, M or G behind it\n", name, text);
  return fallback;
}

struct Front;
struct Cache {
  std::mutex mutex;
  std::array<std::vector<std::byte*>, kClasses> free;
  // Of bytes_live, what lies in the threads' fronts belongs to bytes_cached.
  MemoryCounters counters;
  std::vector<Front*> fronts;
  i64 cache_limit = env_bytes("WAYMARK_CACHE_LIMIT", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 4);
  i64 memory_limit = env_bytes("WAYMARK_MEMORY_LIMIT", INT64_MAX);
  i64 fail_after = -1;
  bool poison = false;

  void flush() {
    for (size_t c = 0; c < free.size(); ++c) {
      for (std::byte* p : free[c]) {
        unpoison_memory(p, static_cast<size_t>(class_bytes(static_cast<int>(c))));
        std::free(p);
      }
      free[c].clear();
    }
    counters.bytes_cached = 0;
  }
};
Cache& cache() {
  static Cache* const immortal = new Cache;
  return *immortal;
}
// A test counts or poisons: every block then goes through the cache.
std::atomic<bool> seams{false};

// Free blocks of up to 1 KiB of one thread.
struct FreeBlock { FreeBlock* next; };
struct Front {
  std::array<FreeBlock*, kLinear> lists{};
  std::array<u32, kLinear> counts{};
  std::atomic<i64> bytes{0};  // written by its thread alone
  bool registered = false, ended = false;
  void add(i64 by) { bytes.store(bytes.load(std::memory_order_relaxed) + by, std::memory_order_relaxed); }
};
constinit thread_local Front front;
// At most 4 KiB a class.
u32 most_in_front(int c) { return static_cast<u32>(std::clamp<i64>(4096 / class_bytes(c), 4, 32)); }

std::string readable(i64 bytes) {
  if (bytes < 10240) return fmt::format("{} B", bytes);
  const char* unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes) / 1024;
  int i = 0;
  while (v >= 1024 && i < 5) { v /= 1024; ++i; }
  return fmt::format("{:.1f} {}", v, unit[i]);
}

i64 front_bytes(const Cache& k) {
  i64 sum = 0;
  for (const Front* f : k.fronts) sum += f->bytes.load(std::memory_order_relaxed);
  return sum;
}

// A block from the cache; null if there is none. Under the lock.
std::byte* cached(Cache& k, int c) {
  auto& list = k.free[static_cast<size_t>(c)];
  if (list.empty()) return nullptr;
  std::byte* p = list.back();
  list.pop_back();
  k.counters.bytes_cached -= class_bytes(c);
  k.counters.bytes_live += class_bytes(c);
  return p;
}
void keep_or_free(Cache& k, std::byte* p, int c) noexcept {
  const i64 size = class_bytes(c);
  k.counters.bytes_live -= size;
  if (k.counters.bytes_cached + size <= k.cache_limit) {
    try {
      k.free[static_cast<size_t>(c)].push_back(p);
      poison_memory(p, static_cast<size_t>(size));
      k.counters.bytes_cached += size;
      return;
    } catch (const std::bad_alloc&) {  // no room for the list itself
    }
  }
  unpoison_memory(p, static_cast<size_t>(size));
  std::free(p);
}

// Under the lock.
std::byte* take(Cache& k, i64 bytes, int c) {
  const i64 size = class_bytes(c);
  if (k.fail_after >= 0 && k.fail_after-- == 0) {
    seams = k.poison;
    throw OutOfMemory(readable(bytes), "failing allocator of a test");
  }
  const i64 live = k.counters.bytes_live - front_bytes(k);
  if (size > k.memory_limit - live)
    throw OutOfMemory(readable(bytes), fmt::format("live {}, limit {}", readable(live), readable(k.memory_limit)));
  std::byte* p = cached(k, c);
  if (!p) {
    if (k.counters.bytes_cached > k.memory_limit - live - size) k.flush();
    const auto system = [&] { return static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size))); };
    ++k.counters.allocations;
    p = system();
    if (!p) {
      k.flush();
      p = system();
    }
    if (!p) throw OutOfMemory(readable(bytes), fmt::format("live {}; the system has no more", readable(live)));
    k.counters.bytes_live += size;
  }
  k.counters.bytes_peak =
      std::max(k.counters.bytes_peak, k.counters.bytes_live - front.bytes.load(std::memory_order_relaxed));
  unpoison_memory(p, static_cast<size_t>(size));
  if (k.poison) std::memset(p, 0xFF, static_cast<size_t>(size));  // all-ones words: NaN in f32 and f64
  return p;
}

// Moves blocks of a class back until `left` are in the front. Under the lock.
void drain_front(Cache& k, int c, u32 left) {
  const auto i = static_cast<size_t>(c);
  while (front.counts[i] > left) {
    FreeBlock* block = front.lists[i];
    front.lists[i] = block->next;
    --front.counts[i];
    front.add(-class_bytes(c));
    keep_or_free(k, reinterpret_cast<std::byte*>(block), c);
  }
}

// Ties the front to the cache; its destructor empties it when the thread ends.
struct FrontOfThread {
  FrontOfThread() {
    Cache& k = cache();
    const std::lock_guard lock(k.mutex);
    k.fronts.push_back(&front);
    front.registered = true;
  }
  ~FrontOfThread() {
    Cache& k = cache();
    const std::lock_guard lock(k.mutex);
    for (int c = 0; c < kLinear; ++c) drain_front(k, c, 0);
    std::erase(k.fronts, &front);
    front.registered = false;
    front.ended = true;
  }
};

void into_front(std::byte* p, int c) {
  const auto i = static_cast<size_t>(c);
  auto* block = reinterpret_cast<FreeBlock*>(p);
  unpoison_memory(p, sizeof(FreeBlock));
  poison_memory(block + 1, static_cast<size_t>(class_bytes(c)) - sizeof(FreeBlock));
  block->next = front.lists[i];
  front.lists[i] = block;
  ++front.counts[i];
  front.add(class_bytes(c));
}

// The front has no block of the class: one is returned, and as many cached ones as are there fill the front by half.
std::byte* refill_front(i64 bytes, int c) {
  Cache& k = cache();
  if (!front.registered && !front.ended) {
    thread_local const FrontOfThread registration;
    static_cast<void>(registration);
  }
  const std::lock_guard lock(k.mutex);
  std::byte* p = take(k, bytes, c);
  if (front.registered)
    while (front.counts[static_cast<size_t>(c)] < most_in_front(c) / 2) {
      std::byte* more = cached(k, c);
      if (!more) break;
      into_front(more, c);
    }
  return p;
}

// AddressSanitizer: only the bytes that were asked for may be touched.
Memory handed_out(std::byte* p, i64 bytes, int c) {
  unpoison_memory(p, static_cast<size_t>(class_bytes(c)));
  poison_memory(p + bytes, static_cast<size_t>(class_bytes(c) - bytes));
  return {p, c};
}

}  // namespace

OutOfMemory::OutOfMemory(std::string wanted_bytes, std::string reason)
    : Error("empty", fmt::format("cannot get {} ({})", wanted_bytes, reason)),
      wanted(std::move(wanted_bytes)),
      why(std::move(reason)) {}

Memory take_memory(i64 bytes) {
  const int c = class_of(bytes);
  if (c >= kClasses) throw OutOfMemory(readable(bytes), "more than any system has");
  if (c < kLinear && !seams.load(std::memory_order_relaxed)) {
    const auto i = static_cast<size_t>(c);
    FreeBlock* block = front.lists[i];
    if (!block) [[unlikely]] return handed_out(refill_front(bytes, c), bytes, c);
    front.lists[i] = block->next;
    --front.counts[i];
    front.add(-class_bytes(c));
    return handed_out(reinterpret_cast<std::byte*>(block), bytes, c);
  }
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  return handed_out(take(k, bytes, c), bytes, c);
}

void give_memory(Memory m) noexcept {
  const int c = m.size_class;
  if (c < 0) return;
  if (c < kLinear && front.registered && !seams.load(std::memory_order_relaxed)) {
    into_front(m.data, c);
    if (front.counts[static_cast<size_t>(c)] <= most_in_front(c)) return;
    Cache& k = cache();
    const std::lock_guard lock(k.mutex);
    return drain_front(k, c, most_in_front(c) / 2);
  }
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  unpoison_memory(m.data, static_cast<size_t>(class_bytes(c)));
  if (k.poison) std::memset(m.data, 0x5A, static_cast<size_t>(class_bytes(c)));
  keep_or_free(k, m.data, c);
}

Block* Block::of(Memory memory, i64 bytes) {
  auto* block = new (small_allocate(sizeof(Block))) Block;
  block->memory_ = memory;
  block->bytes_ = bytes;
  return block;
}
void Block::forget(Block* block) {
  block->~Block();
  small_free(block, sizeof(Block));
}

Intrusive<Block> Block::allocate(i64 bytes) { return Intrusive<Block>(of(take_memory(bytes), bytes)); }

Intrusive<Block> Block::borrow(void* data, i64 bytes, void (*deleter)(void*), void* context) {
  Block* block = of({static_cast<std::byte*>(data), -1}, bytes);
  block->deleter_ = deleter;
  block->context_ = context;
  return Intrusive<Block>(block);
}

void Block::destroy(Block* block) {
  give_memory(block->memory_);
  if (block->deleter_) block->deleter_(block->context_);
  forget(block);
}

void release_cache() {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  for (int c = 0; c < kLinear; ++c) drain_front(k, c, 0);
  k.flush();
}

MemoryCounters memory_counters() {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  MemoryCounters out = k.counters;
  const i64 in_fronts = front_bytes(k);
  out.bytes_live -= in_fronts;
  out.bytes_cached += in_fronts;
  out.bytes_peak = std::max(out.bytes_peak, out.bytes_live);
  return out;
}

i64 set_memory_limit(i64 bytes) {
  if (bytes < 0) fail("set_memory_limit", "{} bytes are negative", bytes);
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  return std::exchange(k.memory_limit, bytes);
}

void reset_peak() {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  k.counters.bytes_peak = k.counters.bytes_live - front_bytes(k);
}

namespace testing {

void fail_after(i64 allocations) {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  k.fail_after = allocations;
  seams = k.fail_after >= 0 || k.poison;
}

void poison(bool on) {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  k.poison = on;
  seams = k.fail_after >= 0 || k.poison;
}

}  // namespace testing
}  // namespace waymark
