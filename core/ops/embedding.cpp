#include "core/ops/embedding.h"

#include <algorithm>
#include <cstring>

#include "core/kernels/segments.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "core/tensor/strided.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kEmbedding{
    .name = "embedding", .family = "embedding", .doc = "rows of a table, by number",
    .schema = "embedding(Tensor input, Tensor weight, *, int? padding_idx=None) -> Tensor", .formula = "y = W[ids]",
    .rule = "dW = Σ g over the places of each row; 0 for padding_idx", .saves = {{"indices", For{1}}, {"shape", For{1}}},
    .apply = [](OpCall& c) {
      std::optional<i64> padding;
      if (c.has("padding_idx")) padding = c.integer("padding_idx");
      c.result(embedding(c.tensor("input"), c.tensor("weight"), padding));
    }};
extern constexpr OpInfo kEmbeddingBackward{
    .name = "embedding_backward", .family = "embedding", .doc = "the gradient of a table: rows summed by their number",
    .schema = "embedding_backward(Tensor grad, Tensor indices, int rows, int padding_idx) -> Tensor",
    .formula = "dW[r] = Σ g at ids = r", .rule = "dg = gg[ids], 0 at padding_idx", .saves = {{"indices", For{0}}}};

namespace {

Shape rows_shape(const Tensor& ids, i64 width) {
  Shape shape = ids.shape();
  shape.push_back(width);
  return shape;
}

// dW of a table with `rows` rows; `skip`: a row that gets nothing, or -1.
Tensor scatter_rows(Arg g, const Tensor& ids, i64 rows, i64 skip) {
  const Tensor values = contiguous_value(*g);
  const i64 width = g->shape().back(), n = ids.numel();
  std::vector<i64> destination(ids.data<i64>(), ids.data<i64>() + n);
  if (skip >= 0) std::replace(destination.begin(), destination.end(), skip, i64{-1});
  const kernels::Segments segments = kernels::group_by_destination(destination, rows);
  Tensor dw = make_empty({rows, width}, g->dtype());
  visit_float(g->dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::sum_segments(segments, values.data<T>(), width, width, dw.data<T>(), width, false);
  });
  return record(kEmbeddingBackward, std::move(dw), {g}, [&](Saver& s) {
    return [ids = s.indices(ids), skip](Tensor gg, const Need&) -> Grads {
      return {embedding(*ids, gg, skip >= 0 ? std::optional<i64>(skip) : std::nullopt)};
    };
  });
}

}  // namespace

Tensor embedding(Arg ids, Arg weight, std::optional<i64> padding_idx) {
  check_defined("embedding", ids);
  check_defined("embedding", weight);
  if (ids->dtype() != kI64) fail_at(ids.loc(), "embedding", "the ids must be i64, got {}", name_of(ids->dtype()));
  if (weight->dim() != 2) fail_at(ids.loc(), "embedding", "the table must be [rows, width], got {}", weight->shape());
  const i64 rows = weight->shape()[0], width = weight->shape()[1], n = ids->numel();
  i64 skip = -1;
  if (padding_idx) {
    if (*padding_idx < -rows || *padding_idx >= rows)
      fail_at(ids.loc(), "embedding", "padding_idx {} is outside the table of {} rows", *padding_idx, rows);
    skip = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  }
  const Tensor index = contiguous_value(*ids);
  const i64* id = index.data<i64>();
  for (i64 i = 0; i < n; ++i)
    if (id[i] < 0 || id[i] >= rows)
      fail_at(ids.loc(), "embedding", "index {} at position {} is outside the table of {} rows", id[i],
              position_text(ids->shape(), i), rows);
  const Tensor table = contiguous_value(*weight);
  Tensor y = make_empty(rows_shape(*ids, width), weight->dtype());
  const i64 bytes = width * size_of(weight->dtype());
  if (bytes > 0)
    parallel_for(n, std::max<i64>(1, kGrain / std::max<i64>(width, 1)), [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i)
        std::memcpy(y.raw() + i * bytes, table.raw() + id[i] * bytes, static_cast<size_t>(bytes));
    });
  return record(kEmbedding, std::move(y), {ids, weight}, [&](Saver& s) {
    return [index = s.indices(index), rows, skip](Tensor g, const Need&) -> Grads {
      return {Tensor(), scatter_rows(g, *index, rows, skip)};
    };
  }, [&](Attrs& at) { if (padding_idx) at("padding_idx", *padding_idx); });
}

extern constexpr OpInfo kOneHot{
    .name = "one_hot", .family = "embedding", .doc = "a 1 at the place of each id, zeros elsewhere",
    .schema = "one_hot(Tensor input, int num_classes=-1) -> Tensor", .formula = "y[..., c] = [ids = c]",
    .rule = not_differentiable("one_hot turns integers into integers"),
    .apply = [](OpCall& c) { c.result(one_hot(c.tensor("input"), c.integer("num_classes", -1))); }};

Tensor one_hot(Arg ids, i64 num_classes) {
  check_defined("one_hot", ids);
  if (ids->dtype() != kI64) fail_at(ids.loc(), "one_hot", "the ids must be i64, got {}", name_of(ids->dtype()));
  if (num_classes < -1 || (num_classes == -1 && ids->numel() == 0))
    fail_at(ids.loc(), "one_hot", "num_classes = {} for {} ids: give the number of classes", num_classes, ids->numel());
  const Tensor index = contiguous_value(*ids);
  const i64* id = index.data<i64>();
  i64 largest = -1;
  for (i64 i = 0; i < index.numel(); ++i) {
    largest = std::max(largest, id[i]);
    if (id[i] < 0 || (num_classes >= 0 && id[i] >= num_classes))
      fail_at(ids.loc(), "one_hot", "class {} at position {} is outside [0, {})", id[i], position_text(ids->shape(), i),
              num_classes >= 0 ? fmt::to_string(num_classes) : "∞");
  }
  const i64 classes = num_classes >= 0 ? num_classes : largest + 1;
  Tensor y = make_empty(rows_shape(*ids, classes), kI64);
  fill_into(y, 0);
  for (i64 i = 0; i < index.numel(); ++i) y.data<i64>()[i * classes + id[i]] = 1;
  return record_nondiff(kOneHot, std::move(y), {ids});
}

}  // namespace waymark
