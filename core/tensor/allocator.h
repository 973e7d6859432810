// The caching allocator of tensor memory, and the slabs of small objects (tensors, storages, graph nodes).
//
// Freed memory is kept in size classes and handed out again, so a training step in steady state asks the system for
// nothing (counters().allocations stands still). Large blocks gain most: above glibc's mmap ceiling every fresh
// allocation faults its pages in anew. Blocks of up to 1 KiB come from a front of the thread, without a lock. The
// allocator is never destroyed, so objects with static storage may outlive it.
// Under AddressSanitizer everything that is not handed out is poisoned, the bytes behind a block's end included.
#pragma once

#include "core/tensor/error.h"
#include "core/tensor/intrusive.h"
#include "core/tensor/types.h"

namespace waymark {

inline constexpr i64 kAlignment = 64;

// Neither the cache nor the system has the memory, or WAYMARK_MEMORY_LIMIT (bytes; suffix K, M, G) would be passed.
struct WAYMARK_API OutOfMemory : Error {
  OutOfMemory(std::string wanted_bytes, std::string reason);
  std::string wanted, why;  // "1.5 GiB", "live 9.8 GiB, limit 10.0 GiB"
};

// Uninitialised memory of at least 64 bytes, 64-byte aligned.
struct Memory {
  std::byte* data = nullptr;
  int size_class = -1;  // -1: not from this allocator
};
WAYMARK_API Memory take_memory(i64 bytes);  // throws OutOfMemory
WAYMARK_API void give_memory(Memory memory) noexcept;

// A piece of memory that several storages may share.
class WAYMARK_API Block : public RefCounted {
 public:
  // At least `bytes` bytes of uninitialised memory; throws OutOfMemory.
  static Intrusive<Block> allocate(i64 bytes);
  // Memory that is somebody else's; deleter(context) runs when the last storage is gone.
  static Intrusive<Block> borrow(void* data, i64 bytes, void (*deleter)(void*), void* context);
  static void destroy(Block* block);

  std::byte* data() const { return memory_.data; }
  i64 bytes() const { return bytes_; }
  bool borrowed() const { return memory_.size_class < 0; }

 private:
  friend class Storage;
  Block() = default;
  static Block* of(Memory memory, i64 bytes);  // takes the memory over; count 0
  static void forget(Block* block);            // without giving the memory back
  Memory memory_;
  i64 bytes_ = 0;
  void (*deleter_)(void*) = nullptr;
  void* context_ = nullptr;
};

// Memory of small objects: per-thread free lists by size; what an ended thread leaves is adopted by others.
WAYMARK_API void* small_allocate(std::size_t bytes);
WAYMARK_API void small_free(void* p, std::size_t bytes) noexcept;
// The same for objects that can be enumerated (graph nodes). visit(object, context) is called for each living one;
// no other thread may allocate or free such objects meanwhile.
WAYMARK_API void* tracked_allocate(std::size_t bytes);
WAYMARK_API void tracked_free(void* p, std::size_t bytes) noexcept;
WAYMARK_API void each_tracked(void (*visit)(void*, void*), void* context);

// Gives all cached memory back to the system (but what the fronts of other threads hold: at most 64 KiB each).
WAYMARK_API void release_cache();

struct MemoryCounters {
  i64 bytes_live = 0;    // in use by storages
  i64 bytes_peak = 0;    // largest bytes_live since reset_peak(), to within the small blocks
  i64 bytes_cached = 0;  // kept for later
  i64 allocations = 0;   // calls to the system for tensor memory
};
WAYMARK_API MemoryCounters memory_counters();
WAYMARK_API void reset_peak();
// Limits the bytes of live and cached tensor memory; returns the limit before.
WAYMARK_API i64 set_memory_limit(i64 bytes);

// Test seams. fail_after(n): the n-th allocation from now on throws (n = 0: the next one); -1 switches it off.
// poison(true): fresh memory is filled with signalling-NaN bytes, freed memory with 0x5A.
namespace testing {
WAYMARK_API void fail_after(i64 allocations);
WAYMARK_API void poison(bool on);
}  // namespace testing

}  // namespace waymark
