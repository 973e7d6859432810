#include "core/tensor/count.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace waymark {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

struct Totals {
  std::mutex mutex;
  std::vector<detail::ThreadCounts*> threads;
  detail::ThreadCounts ended;  // of threads that have ended, and of what their last destructors do
};
Totals& totals() {
  static auto* const immortal = new Totals;
  return *immortal;
}

constinit thread_local detail::ThreadCounts my_counts;
constinit thread_local bool ended_here = false;

// Its destructor hands the counts of a thread over when the thread ends.
struct CountsOfThread {
  CountsOfThread() {
    Totals& t = totals();
    const std::lock_guard lock(t.mutex);
    t.threads.push_back(&my_counts);
    my_counts.registered = true;
  }
  ~CountsOfThread() {
    Totals& t = totals();
    const std::lock_guard lock(t.mutex);
    std::erase(t.threads, &my_counts);
    my_counts.registered = false;
    ended_here = true;
    for (size_t i = 0; i < my_counts.cells.size(); ++i)
      t.ended.cells[i].fetch_add(my_counts.cells[i].load(kRelaxed), kRelaxed);
  }
};

}  // namespace

namespace detail {

ThreadCounts& thread_counts() { return my_counts; }

void count_slowly(Count what, i64 by) {
  if (ended_here) {
    totals().ended.cells[static_cast<size_t>(what)].fetch_add(by, kRelaxed);
    return;
  }
  thread_local const CountsOfThread registration;
  static_cast<void>(registration);
  std::atomic<i64>& cell = my_counts.cells[static_cast<size_t>(what)];
  cell.store(cell.load(kRelaxed) + by, kRelaxed);
}

}  // namespace detail

i64 counted(Count what) {
  const auto i = static_cast<size_t>(what);
  Totals& t = totals();
  const std::lock_guard lock(t.mutex);
  i64 sum = t.ended.cells[i].load(kRelaxed);
  for (const detail::ThreadCounts* c : t.threads) sum += c->cells[i].load(kRelaxed);
  return sum;
}

}  // namespace waymark
