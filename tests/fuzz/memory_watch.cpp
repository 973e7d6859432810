#include "tests/fuzz/memory_watch.h"

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "core/tensor/allocator.h"

namespace waymark::test {
namespace {

std::atomic<long> live{0};   // bytes since the watch began
std::atomic<long> limit{0};  // 0: nobody watches

void on_malloc(const volatile void*, std::size_t bytes) {
  const long most = limit.load(std::memory_order_relaxed);
  if (most == 0) return;
  const long now = live.fetch_add(static_cast<long>(bytes), std::memory_order_relaxed) + static_cast<long>(bytes);
  if (now <= most) return;
  limit = 0;
  std::fprintf(stderr, "the input took %ld bytes of memory; the limit is %ld\n", now, most);
  std::abort();
}
void on_free(const volatile void* p) {
  if (limit.load(std::memory_order_relaxed) == 0 || p == nullptr) return;
  live.fetch_sub(static_cast<long>(__sanitizer_get_allocated_size(p)), std::memory_order_relaxed);
}

}  // namespace

MemoryWatch::MemoryWatch(std::size_t input_bytes, std::size_t spare) {
  static const bool installed = __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) != 0;
  if (!installed) std::abort();
  release_cache();  // else a tensor could come from memory that an earlier input left
  live = 0;
  limit = static_cast<long>(2 * input_bytes + spare);
}
MemoryWatch::~MemoryWatch() { limit = 0; }

}  // namespace waymark::test
