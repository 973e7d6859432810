// Mask: which (query, key) pairs a call allows, as a value.
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace waymark::nn {

// Copies share what they hold. Padding is not a mask: it is the call's key_keep and query_keep.
class WAYMARK_API Mask {
 public:
  Mask() = default;  // every pair
  static Mask all() { return {}; }
  // b8, true = allowed; its axes, counted from the right, are [B, H, L, M] and expand. Costs O(L·M).
  static Mask dense(const Tensor& allowed);

  bool is_all() const { return !dense_.defined(); }
  // Does it forbid every key behind its query, whatever the call? Then the call is causal.
  bool implies_causal() const { return false; }
  // The allowed pairs as b8, expandable to [B, H, L, M]; undefined: all. Error if it does not fit these sizes.
  Tensor pairs(i64 batch, i64 heads, i64 queries, i64 keys) const;
  // all(), dense([2, 1, 8, 8])
  std::string to_string() const;

 private:
  Tensor dense_;
};

}  // namespace waymark::nn
