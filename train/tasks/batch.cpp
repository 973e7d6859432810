#include "train/tasks/batch.h"

#include <algorithm>

#include "core/autograd/state.h"
#include "core/ops/shape.h"
#include "core/tensor/strided.h"

namespace waymark::train {

Batch unscored_batch(const std::vector<i64>& tokens) {
  const i64 length = static_cast<i64>(tokens.size());
  Batch batch{.tokens = make_empty({1, length}, kI64), .targets = make_empty({1, length}, kI64)};
  std::copy(tokens.begin(), tokens.end(), batch.tokens.data<i64>());
  std::fill_n(batch.targets.data<i64>(), length, kNotScored);
  batch.items = 1;
  batch.kept = length;
  return batch;
}

i64 count_scored(const Tensor& targets) {
  if (targets.dtype() != kI64) return targets.numel();
  i64 count = 0;
  const i64* values = targets.data<i64>();
  for_each_offset(targets, [&](i64 at) { count += values[at] != kNotScored; });
  return count;
}

namespace {
i64 count_true(const Tensor& keep) {
  i64 count = 0;
  const bool* values = keep.data<bool>();
  for_each_offset(keep, [&](i64 at) { count += values[at]; });
  return count;
}
i64 kept_of(const Tensor& tokens, const Tensor& keep) {
  if (!tokens.defined()) return 0;
  return keep.defined() ? count_true(keep) : tokens.numel();
}
}  // namespace

Batch slice(const Batch& batch, i64 first, i64 count) {
  const NoGrad no_grad;
  const auto part = [&](const Tensor& t) { return t.defined() ? narrow(t, 0, first, count) : t; };
  Batch out{.tokens = part(batch.tokens), .targets = part(batch.targets)};
  out.keep = part(batch.keep);
  out.positions = batch.positions.defined() && batch.positions.dim() == 2 ? part(batch.positions) : batch.positions;
  out.segments = part(batch.segments);
  out.pair = part(batch.pair);
  out.pair_keep = part(batch.pair_keep);
  out.shift = batch.shift;
  out.redraw = batch.redraw;
  out.items = count;
  out.kept = kept_of(out.tokens, out.keep) + kept_of(out.pair, out.pair_keep);
  out.scored = count_scored(out.targets);
  return out;
}

}  // namespace waymark::train
