// Positions: where the tokens of a call stand. They are data that travels with the tokens; nothing infers them from a
// length.
//
//   Positions::range(64)                  0 ... 63, for every row of the batch
//   Positions::range(4, 60)               60 ... 63: the next tokens after a cache
//   Positions::from_mask(keep)            kept tokens counted from 0, padding has none: left = right padding
//   Positions::packed({3, 5})             0 1 2 0 1 2 3 4: documents behind each other
//
// A value is -1 (positionless: a memory slot, a representative) or 0 ... 2^31 - 2; anything else is an Error.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::nn {

class WAYMARK_API Positions {
 public:
  static constexpr i64 kNone = -1, kLargest = (i64{1} << 31) - 2;

  Positions() = default;  // not given
  // i64 [L] (shared by the batch) or [B, L].
  Positions(const Tensor& values);  // NOLINT: implicit on purpose
  static Positions range(i64 length, i64 offset = 0);
  // keep: b8 or i64 0/1, [L] or [B, L].
  static Positions from_mask(const Tensor& keep);
  static Positions packed(const std::vector<i64>& lengths);

  bool defined() const { return values_.defined(); }
  const Tensor& tensor() const { return values_; }
  i64 length() const { return values_.size(-1); }
  // Rows: 1 if shared by the batch.
  i64 rows() const { return values_.dim() == 2 ? values_.size(0) : 1; }
  // Error unless they fit x's [B, L]; `what` names them in the message.
  void check_fits(std::string_view op, std::string_view what, i64 batch, i64 length) const;

  // Of all values; largest() of none is -1.
  i64 largest() const { return largest_; }
  bool any_positionless() const { return any_none_; }
  i64 at(i64 row, i64 slot) const;
  // Of the slots first ... first + count - 1; count 0, or not given: all.
  Positions of(i64 first, i64 count) const;

 private:
  Tensor values_;
  i64 largest_ = kNone;
  bool any_none_ = false;
};

// Error that names the encoding, a position and the way out, if there is one at or beyond max_len.
WAYMARK_API void check_in_table(std::string_view encoding, const Positions& positions, i64 max_len);
// p_j <= p_i, so that a key without position is seen by all and a query without one sees only those: b8 [1|B, 1, Lq, Lk].
WAYMARK_API Tensor causal_pairs(const Positions& queries, const Positions& keys);
// In a causal call, two kept tokens of a row at the same position would see each other's documents: Error that names
// documents(...). keep: b8 [B, L] or undefined.
WAYMARK_API void check_distinct(const Positions& positions, const Tensor& keep);

}  // namespace waymark::nn
