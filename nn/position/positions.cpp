#include "nn/position/positions.h"

#include <algorithm>

#include "core/tensor/strided.h"

namespace waymark::nn {

namespace {

Tensor dense_i64(const Tensor& t) {
  if (t.is_contiguous()) return t;
  const Tensor out = make_empty(t.shape(), kI64);
  i64* to = out.data<i64>();
  for_each_offset(t, [&](i64 at) { *to++ = t.data<i64>()[at]; });
  return out;
}

}  // namespace

Positions::Positions(const Tensor& values) {
  if (!values.defined()) return;
  if (values.dtype() != kI64) fail("positions", "must be i64, got {}", name_of(values.dtype()));
  if (values.dim() != 1 && values.dim() != 2) fail("positions", "must be [L] or [B, L], got {}", values.shape());
  values_ = dense_i64(values);
  const i64* p = values_.data<i64>();
  for (i64 i = 0; i < values_.numel(); ++i) {
    if (p[i] < kNone || p[i] > kLargest)
      fail("positions", "{} at {} is no position: legal are 0 ... {} and -1 (none)", p[i], position_text(values_.shape(), i),
           kLargest);
    largest_ = std::max(largest_, p[i]);
    any_none_ |= p[i] == kNone;
  }
}

Positions Positions::range(i64 length, i64 offset) {
  if (length < 0) fail("positions", "range of length {}: must be at least 0", length);
  if (offset < 0 || offset > kLargest || length > kLargest + 1 - offset)
    fail("positions", "range of length {} from {}: legal positions are 0 ... {}", length, offset, kLargest);
  const Tensor t = make_empty({length}, kI64);
  for (i64 i = 0; i < length; ++i) t.data<i64>()[i] = offset + i;
  return Positions(t);
}

Positions Positions::from_mask(const Tensor& keep) {
  if (!keep.defined()) fail("positions", "the mask is undefined");
  if (keep.dtype() != kB8 && keep.dtype() != kI64)
    fail("positions", "the mask must be b8, or i64 of 0 and 1, got {}", name_of(keep.dtype()));
  if (keep.dim() != 1 && keep.dim() != 2) fail("positions", "the mask must be [L] or [B, L], got {}", keep.shape());
  const Tensor t = make_empty(keep.shape(), kI64);
  const i64 length = keep.size(-1);
  const std::vector<i64> kept = keep.to_vector<i64>();
  i64 next = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (static_cast<i64>(i) % length == 0) next = 0;
    if (kept[i] != 0 && kept[i] != 1)
      fail("positions", "the mask has {} at {}: must be 0 or 1", kept[i], position_text(keep.shape(), static_cast<i64>(i)));
    t.data<i64>()[i] = kept[i] ? next++ : kNone;
  }
  return Positions(t);
}

Positions Positions::packed(const std::vector<i64>& lengths) {
  i64 total = 0;
  for (const i64 n : lengths) {
    if (n < 0) fail("positions", "a document of length {}: must be at least 0", n);
    total += n;
  }
  const Tensor t = make_empty({total}, kI64);
  i64* to = t.data<i64>();
  for (const i64 n : lengths)
    for (i64 i = 0; i < n; ++i) *to++ = i;
  return Positions(t);
}

void Positions::check_fits(std::string_view op, std::string_view what, i64 batch, i64 length) const {
  if (this->length() != length || (values_.dim() == 2 && rows() != batch && rows() != 1))
    fail(op, "{} {} do not fit {} tokens in {} rows: must be [{}] or [{}, {}]", what, values_.shape(), length, batch, length,
         batch, length);
}

i64 Positions::at(i64 row, i64 slot) const {
  return values_.data<i64>()[(rows() == 1 ? 0 : row) * length() + slot];
}

Positions Positions::of(i64 first, i64 count) const {
  if (count == 0 || !defined()) return *this;
  if (first < 0 || count < 0 || first > length() - count)
    fail("positions", "slots {} ... {} of {}", first, first + count - 1, length());
  const i64 n = rows();
  const Tensor part = make_empty(values_.dim() == 2 ? Shape{n, count} : Shape{count}, kI64);
  for (i64 b = 0; b < n; ++b) std::copy_n(values_.data<i64>() + b * length() + first, count, part.data<i64>() + b * count);
  return Positions(part);
}

void check_in_table(std::string_view encoding, const Positions& positions, i64 max_len) {
  if (positions.largest() < max_len) return;
  const Tensor& p = positions.tensor();
  for (i64 i = 0; i < p.numel(); ++i)
    if (const i64 v = p.data<i64>()[i]; v >= max_len)
      fail(encoding, "position {} at {} is outside the table of {} rows (max_len={}); raise max_len or use an encoding that extends "
           "(waymark explain {})", v, position_text(p.shape(), i), max_len, max_len, encoding);
}

Tensor causal_pairs(const Positions& queries, const Positions& keys) {
  const i64 rows = std::max(queries.rows(), keys.rows()), lq = queries.length(), lk = keys.length();
  const Tensor out = make_empty({rows, 1, lq, lk}, kB8);
  bool* to = out.data<bool>();
  const i64 *q = queries.tensor().data<i64>(), *k = keys.tensor().data<i64>();
  for (i64 b = 0; b < rows; ++b)
    for (i64 i = 0; i < lq; ++i, to += lk) {
      const i64 p = q[(queries.rows() == 1 ? 0 : b) * lq + i];
      const i64* other = k + (keys.rows() == 1 ? 0 : b) * lk;
      for (i64 j = 0; j < lk; ++j) to[j] = other[j] <= p;
    }
  return out;
}

void check_distinct(const Positions& positions, const Tensor& keep) {
  const i64 rows = keep.defined() ? keep.size(0) : positions.rows();
  std::vector<i64> seen;
  for (i64 b = 0; b < rows; ++b) {
    seen.clear();
    bool ascending = true;
    for (i64 j = 0; j < positions.length(); ++j) {
      const i64 p = positions.at(b, j);
      if (p < 0 || (keep.defined() && !keep.at<bool>({b, j}))) continue;
      ascending &= seen.empty() || seen.back() < p;
      seen.push_back(p);
    }
    if (ascending) continue;
    std::sort(seen.begin(), seen.end());
    const auto twice = std::adjacent_find(seen.begin(), seen.end());
    if (twice != seen.end())
      fail("attention", "row {} repeats position {} in a causal call: packed documents need documents(...)", b, *twice);
  }
}

}  // namespace waymark::nn
