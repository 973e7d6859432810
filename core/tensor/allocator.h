// The caching allocator of tensor memory, and the slabs of small objects (tensors, storages, graph nodes).
//
// Freed memory is kept in size classes and handed out again, so a training step in steady state asks the system for
// nothing (counters().allocations stands still). Large blocks gain most: above glibc's mmap ceiling every fresh
// allocation faults its pages in anew. The allocator is never destroyed, so objects with static storage may outlive it.
#pragma once

#include "core/tensor/intrusive.h"
#include "core/tensor/types.h"

namespace waymark {

inline constexpr i64 kAlignment = 64;

// A piece of memory, 64-byte aligned, shared by one or several storages.
class WAYMARK_API Block : public RefCounted {
 public:
  // At least `bytes` bytes of uninitialised memory. Error ("<op>: cannot get 1.5 GiB for ...") when neither the cache
  // nor the system has them, or the limit WAYMARK_MEMORY_LIMIT (bytes; suffix K, M, G) would be passed.
  static Intrusive<Block> allocate(i64 bytes);
  // Memory that is somebody else's; deleter(context) runs when the last storage is gone.
  static Intrusive<Block> borrow(void* data, i64 bytes, void (*deleter)(void*), void* context);
  static void destroy(Block* block);

  std::byte* data() const { return data_; }
  i64 bytes() const { return bytes_; }

 private:
  Block() = default;
  std::byte* data_ = nullptr;
  i64 bytes_ = 0;
  int size_class_ = -1;  // -1: borrowed
  void (*deleter_)(void*) = nullptr;
  void* context_ = nullptr;
};

// Memory of small objects: per-thread free lists by size; what an ended thread leaves is adopted by others.
WAYMARK_API void* small_allocate(std::size_t bytes);
WAYMARK_API void small_free(void* p, std::size_t bytes) noexcept;

// Gives all cached memory back to the system.
WAYMARK_API void release_cache();

struct MemoryCounters {
  i64 bytes_live = 0;    // in use by storages
  i64 bytes_peak = 0;    // largest bytes_live since reset_peak()
  i64 bytes_cached = 0;  // kept for later
  i64 allocations = 0;   // calls to the system for tensor memory
};
WAYMARK_API MemoryCounters memory_counters();
WAYMARK_API void reset_peak();

// Test seams. fail_after(n): the n-th allocation from now on throws (n = 0: the next one); -1 switches it off.
// poison(true): fresh memory is filled with signalling-NaN bytes, freed memory with 0x5A.
namespace testing {
WAYMARK_API void fail_after(i64 allocations);
WAYMARK_API void poison(bool on);
}  // namespace testing

}  // namespace waymark
