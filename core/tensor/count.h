// Counts of live objects and of events, kept per thread: the thread that counts is the only one that writes its cell,
// so counting costs no locked instruction. A total is the sum over all threads, ended ones included; it is exact when
// no other thread counts at the same time.
#pragma once

#include <array>
#include <atomic>

#include "core/tensor/types.h"

namespace waymark {

enum class Count : u8 { nodes, tensors, storages, ops, how_many };

namespace detail {
struct ThreadCounts {
  std::array<std::atomic<i64>, static_cast<size_t>(Count::how_many)> cells{};
  bool registered = false;  // its cells are part of the totals
};
// Not inline: a shared library and its users must see one variable.
WAYMARK_API ThreadCounts& thread_counts();
WAYMARK_API void count_slowly(Count what, i64 by);
}  // namespace detail

inline void count(Count what, i64 by = 1) {
  detail::ThreadCounts& mine = detail::thread_counts();
  if (!mine.registered) [[unlikely]] return detail::count_slowly(what, by);
  std::atomic<i64>& cell = mine.cells[static_cast<size_t>(what)];
  cell.store(cell.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
WAYMARK_API i64 counted(Count what);

}  // namespace waymark
