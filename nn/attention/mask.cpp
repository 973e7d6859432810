#include "nn/attention/mask.h"

namespace waymark::nn {

Mask Mask::dense(const Tensor& allowed) {
  if (!allowed.defined()) fail("mask", "dense(): the array is undefined; all() allows every pair");
  if (allowed.dtype() != kB8) fail("mask", "dense(): the array must be b8 (true = allowed), got {}", name_of(allowed.dtype()));
  if (allowed.dim() < 2 || allowed.dim() > 4)
    fail("mask", "dense(): the array must be [L, M], [H, L, M] or [B, H, L, M], got {}", allowed.shape());
  Mask m;
  m.dense_ = allowed;
  return m;
}

Tensor Mask::pairs(i64 batch, i64 heads, i64 queries, i64 keys) const {
  if (is_all()) return {};
  if (!broadcasts_to(dense_.shape(), {batch, heads, queries, keys}))
    fail("mask", "dense({}) does not fit a call with {} rows, {} heads, {} queries and {} keys", dense_.shape(), batch, heads,
         queries, keys);
  return dense_;
}

std::string Mask::to_string() const { return is_all() ? "all()" : fmt::format("dense({})", dense_.shape()); }

}  // namespace waymark::nn
