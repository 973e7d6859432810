// Internal: PointerIndex numbers distinct pointers in the order in which they are first seen. Open addressing; what the walk over
// a graph spends most of its time on.
#pragma once

#include <vector>

#include "core/tensor/types.h"

namespace waymark {

class PointerIndex {
 public:
  PointerIndex() : table_(64) {}
  // The number of p, and whether it is new.
  std::pair<u32, bool> add(const void* p) {
    if (2 * (count_ + 1) > table_.size()) grow();
    Entry& e = place_of(p);
    if (e.pointer) return {e.number, false};
    e = {p, static_cast<u32>(count_++)};
    return {e.number, true};
  }
  static constexpr u32 kNone = 0xFFFFFFFF;
  u32 find(const void* p) const {
    const Entry& e = const_cast<PointerIndex*>(this)->place_of(p);
    return e.pointer ? e.number : kNone;
  }
  size_t size() const { return count_; }

 private:
  struct Entry {
    const void* pointer = nullptr;
    u32 number = 0;
  };
  Entry& place_of(const void* p) {
    const size_t mask = table_.size() - 1;
    size_t i = (reinterpret_cast<std::uintptr_t>(p) * 0x9E3779B97F4A7C15U) >> shift_ & mask;
    while (table_[i].pointer && table_[i].pointer != p) i = (i + 1) & mask;
    return table_[i];
  }
  void grow() {
    std::vector<Entry> old(table_.size() * 2);
    old.swap(table_);
    --shift_;
    for (const Entry& e : old)
      if (e.pointer) place_of(e.pointer) = e;
  }

  std::vector<Entry> table_;
  int shift_ = 64 - 6;  // the upper bits of the product, as many as the table has
  size_t count_ = 0;
};

}  // namespace waymark
