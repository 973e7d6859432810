// Internal: how a pass over many arrays of different sizes is cut into tasks. The cut depends on the sizes alone, so
// results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <vector>

#include "core/parallel/parallel.h"

namespace waymark::train {

struct Piece {
  size_t array = 0;
  i64 begin = 0, end = 0;
};

class Pieces {
 public:
  explicit Pieces(const std::vector<i64>& sizes) {
    i64 load = 0;
    for (size_t a = 0; a < sizes.size(); ++a) {
      for (i64 begin = 0; begin < sizes[a]; begin += kPiece) {
        if (load == 0) task_begin_.push_back(list_.size());
        list_.push_back({a, begin, std::min(begin + kPiece, sizes[a])});
        load += list_.back().end - begin;
        if (load >= kGrain) load = 0;
      }
    }
    task_begin_.push_back(list_.size());
  }

  const std::vector<Piece>& list() const { return list_; }
  // body(number of the piece, piece), each once; several pieces are one task.
  template <class F> void run(F&& body) const {
    parallel_tasks(static_cast<i64>(task_begin_.size()) - 1, [&](i64 task) {
      const size_t t = static_cast<size_t>(task);
      for (size_t p = task_begin_[t]; p < task_begin_[t + 1]; ++p) body(p, list_[p]);
    });
  }

 private:
  static constexpr i64 kPiece = 16384;
  std::vector<Piece> list_;
  std::vector<size_t> task_begin_;  // one more entry than tasks
};

}  // namespace waymark::train
