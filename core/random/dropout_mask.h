// DropoutMask: the keep decisions of one dropout draw, wherever they come from, for kernels that apply them on the fly.
#pragma once

#include <span>
#include <vector>

#include "core/random/draws.h"
#include "core/random/playback.h"

namespace waymark {

// A mask of `shape` is never stored: every call decides anew, the same way each time, from any thread. An injected draw
// (b8 of that shape, 1 = keep) is read instead.
class WAYMARK_API DropoutMask {
 public:
  // Errors: p outside [0, 1], coordinates beyond 2^32, an injected draw of another shape or dtype.
  DropoutMask(const Draw& draw, std::span<const i64> shape, double p);

  // keep[i] = 1 or 0 for flat position begin + i.
  void range(i64 begin, i64 end, u8* keep) const;
  // keep[i] for element (lead, row, col + i) of the array, indices of the array and not coordinates of the draw.
  void row(i64 lead, i64 row, i64 col, i64 n, u8* keep) const;
  // Hands the mask to the capture of its stream, if there is one; once, in forward.
  void capture() const;

 private:
  Draw draw_;
  std::vector<i64> shape_;
  DrawGrid grid_;
  u64 threshold_;
  const u8* injected_ = nullptr;
};

}  // namespace waymark
