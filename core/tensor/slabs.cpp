// Slabs of small objects: one free list per multiple of 32 bytes and thread, refilled from chunks that are never given
// back. Tracked objects have a word before them that says whether they live.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/tensor/allocator.h"
#include "core/tensor/poison.h"

namespace waymark {
namespace {

constexpr size_t kStep = 32, kPlain = 32, kTracked = 64;  // lists for up to 1 KiB, and for up to 2 KiB
constexpr size_t kLists = kPlain + kTracked;
constexpr size_t kHeader = 16;

struct FreeCell { FreeCell* next; };
using Lists = std::array<FreeCell*, kLists>;

size_t list_of(size_t bytes) { return (std::max<size_t>(bytes, 1) - 1) / kStep; }
size_t cell_bytes(size_t list) { return list < kPlain ? (list + 1) * kStep : (list - kPlain + 1) * kStep; }

// What the threads share.
struct Shared {
  std::mutex mutex;
  Lists orphans{};  // cells of ended threads
  struct Chunk {
    std::byte* begin;  // first object, behind its header
    size_t step, count;
  };
  std::vector<Chunk> tracked;
};
Shared& shared() {
  static auto* const immortal = new Shared;
  return *immortal;
}

u64& header_of(void* p) { return *reinterpret_cast<u64*>(static_cast<std::byte*>(p) - kHeader); }

constinit thread_local Lists lists{};
constinit thread_local bool lists_gone = false;  // objects freed later than this go to the orphans

void adopt(FreeCell*& target, FreeCell* list) {
  while (list) {
    FreeCell* next = list->next;
    list->next = target;
    target = list;
    list = next;
  }
}
// Hands this thread's cells on when it ends.
struct ListsOfThread {
  ~ListsOfThread() {
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    lists_gone = true;
    for (size_t i = 0; i < kLists; ++i) adopt(s.orphans[i], std::exchange(lists[i], nullptr));
  }
};

FreeCell* refill(size_t list) {
  if (!lists_gone) {
    thread_local const ListsOfThread registration;
    static_cast<void>(registration);
  }
  Shared& s = shared();
  const std::lock_guard lock(s.mutex);
  if (FreeCell* all = s.orphans[list]) {
    if (!lists_gone) {
      s.orphans[list] = nullptr;
      return all;
    }
    s.orphans[list] = std::exchange(all->next, nullptr);
    return all;
  }
  const bool tracked = list >= kPlain;
  const size_t size = cell_bytes(list), step = size + (tracked ? kHeader : 0);
  const size_t count = lists_gone ? 1 : std::max<size_t>(16384 / step, 8);
  const size_t bytes = (step * count + (tracked ? kHeader : 0) + 63) / 64 * 64;
  auto* chunk = static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  if (!chunk) throw std::bad_alloc();
  if (tracked) {
    chunk += kHeader;
    s.tracked.push_back({chunk, step, count});
  }
  FreeCell* made = nullptr;
  for (size_t i = count; i-- > 0;) {
    auto* cell = reinterpret_cast<FreeCell*>(chunk + i * step);
    if (tracked) header_of(cell) = 0;
    cell->next = made;
    made = cell;
    poison_memory(cell + 1, size - sizeof(FreeCell));
  }
  return made;
}

void* take_cell(size_t list) {
  FreeCell* cell = lists[list];
  if (!cell) [[unlikely]] cell = refill(list);
  lists[list] = cell->next;
  unpoison_memory(cell, cell_bytes(list));
  return cell;
}
void give_cell(void* p, size_t list) {
  auto* cell = static_cast<FreeCell*>(p);
  poison_memory(cell + 1, cell_bytes(list) - sizeof(FreeCell));
  if (lists_gone) [[unlikely]] {
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    cell->next = s.orphans[list];
    s.orphans[list] = cell;
    return;
  }
  cell->next = lists[list];
  lists[list] = cell;
}

}  // namespace

void* small_allocate(std::size_t bytes) {
  const size_t list = list_of(bytes);
  if (list >= kPlain) [[unlikely]] return ::operator new(bytes);
  return take_cell(list);
}
void small_free(void* p, std::size_t bytes) noexcept {
  const size_t list = list_of(bytes);
  if (list >= kPlain) [[unlikely]] return ::operator delete(p);
  give_cell(p, list);
}

void* tracked_allocate(std::size_t bytes) {
  const size_t list = list_of(bytes) + kPlain;
  if (list >= kLists) [[unlikely]] {
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + kHeader + 63) / 64 * 64));
    if (!memory) throw std::bad_alloc();
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    s.tracked.push_back({memory + kHeader, bytes, 1});
    header_of(memory + kHeader) = 1;
    return memory + kHeader;
  }
  void* p = take_cell(list);
  header_of(p) = 1;
  return p;
}
void tracked_free(void* p, std::size_t bytes) noexcept {
  header_of(p) = 0;
  const size_t list = list_of(bytes) + kPlain;
  if (list >= kLists) [[unlikely]] {
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    std::erase_if(s.tracked, [&](const Shared::Chunk& c) { return c.begin == p; });
    std::free(static_cast<std::byte*>(p) - kHeader);
    return;
  }
  give_cell(p, list);
}
void each_tracked(void (*visit)(void*, void*), void* context) {
  std::vector<void*> living;
  {
    Shared& s = shared();
    const std::lock_guard lock(s.mutex);
    for (const Shared::Chunk& c : s.tracked)
      for (size_t i = 0; i < c.count; ++i)
        if (void* p = c.begin + i * c.step; header_of(p)) living.push_back(p);
  }
  for (void* p : living) visit(p, context);
}

}  // namespace waymark
