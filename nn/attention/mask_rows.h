// Internal: the rule of every primitive, row by row. Nothing of size L·M is held.
#pragma once

#include <memory>

#include "nn/attention/mask.h"

namespace waymark::nn {

class MaskRows {
 public:
  // Error if the mask does not fit the call. Both must outlive it.
  MaskRows(const Mask& mask, const MaskCall& call);
  ~MaskRows();
  MaskRows(const MaskRows&) = delete;
  MaskRows& operator=(const MaskRows&) = delete;

  // Do batch rows, heads differ at all? (May say yes where they happen to be equal.)
  bool by_batch() const;
  bool by_head() const;
  // allowed[j] = 1 if query i may attend to key j, else 0, for all M keys.
  void row(i64 b, i64 h, i64 i, u8* allowed) const;

  struct Rule;

 private:
  std::unique_ptr<const Rule> rule_;
};

// Error if sizes, positions and keep bits of the call do not fit each other.
void check_mask_call(const MaskCall& call);

// What the rows of a call read, for attentions with rules of their own; b: batch row.
// Blocks of the tokens, floor((p + shift)/size); -1: no position. kept: 1 where the token is kept.
std::vector<i64> block_numbers(const Positions& positions, i64 b, i64 length, i64 size, i64 shift);
std::vector<u8> kept_tokens(const Tensor& keep, i64 b, i64 length);
// 1 for the first `count` kept ones.
std::vector<u8> first_kept(i64 count, const std::vector<u8>& kept);
// One more than the largest block of a kept token.
i64 count_blocks(const std::vector<i64>& blocks, const std::vector<u8>& kept);

}  // namespace waymark::nn
