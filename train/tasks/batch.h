// Batch: what a model gets of some items of a task.
#pragma once

#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::train {

// A target that is not scored (PyTorch's ignore_index).
inline constexpr i64 kNotScored = -100;

struct Batch {
  Tensor tokens = {};    // i64 [B, L], padded with the task's pad id
  Tensor keep = {};      // b8 [B, L], false = padding; undefined: no padding
  Tensor positions = {}; // i64 [L] or [B, L]; undefined: 0 .. L-1
  Tensor segments = {};  // i64 [B, L]; undefined: none
  Tensor pair = {};      // i64 [B, L2]: tokens of the second text of a pair
  Tensor pair_keep = {};
  // classify, pair-classify: i64 [B]. tag, lm, mlm: i64 [B, L] with kNotScored. span: i64 [B, 2]. regress: [B].
  Tensor targets = {};
  // How sparse attentions are to be laid out, where that differs from the usual: borders of blocks moved by so many tokens;
  // random blocks and hashes by this draw number in place of their own.
  i64 shift = 0;
  std::optional<u64> redraw = {};
  i64 items = 0;   // B
  i64 kept = 0;    // tokens without padding, of both texts
  i64 scored = 0;  // targets that count
};

// Items [first, first + count) of the batch, as views. `scored` and `kept` are counted anew.
WAYMARK_API Batch slice(const Batch& batch, i64 first, i64 count);
// One item of these tokens, without padding and without anything scored.
WAYMARK_API Batch unscored_batch(const std::vector<i64>& tokens);
// The targets that are not kNotScored.
WAYMARK_API i64 count_scored(const Tensor& targets);

}  // namespace waymark::train
