#include "core/random/dropout_mask.h"

#include <algorithm>

namespace waymark {

DropoutMask::DropoutMask(const Draw& draw, std::span<const i64> shape, double p)
    : draw_(draw),
      shape_(shape.begin(), shape.end()),
      grid_(draw_grid(draw, shape)),
      threshold_(bernoulli_threshold(p)) {
  if (const DrawBuffer* buffer = injected_buffer(draw)) {
    check_injected(draw, kB8, shape);
    injected_ = reinterpret_cast<const u8*>(buffer->bytes.data());
  }
}

void DropoutMask::range(i64 begin, i64 end, u8* keep) const {
  if (injected_)
    std::copy(injected_ + begin, injected_ + end, keep);
  else
    fill_dropout_keep(draw_, grid_, threshold_, begin, end, keep);
}

void DropoutMask::row(i64 lead, i64 row, i64 col, i64 n, u8* keep) const {
  if (injected_) {
    const i64 rows = static_cast<i64>(grid_.rows), cols = static_cast<i64>(grid_.cols);
    std::copy_n(injected_ + (lead * rows + row) * cols + col, n, keep);
  } else {
    dropout_keep_row(draw_.key, draw_.number, grid_.at.lead + static_cast<u64>(lead),
                     grid_.at.row + static_cast<u64>(row), grid_.at.col + static_cast<u64>(col), n, threshold_, keep);
  }
}

void DropoutMask::capture() const {
  if (!is_captured(draw_)) return;
  std::vector<u8> keep(static_cast<std::size_t>(grid_.numel()));
  range(0, grid_.numel(), keep.data());
  capture_draw(draw_, kB8, shape_, keep.data());
}

}  // namespace waymark
