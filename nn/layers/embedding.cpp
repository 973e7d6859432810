#include "nn/layers/embedding.h"

#include "core/ops/embedding.h"
#include "core/ops/inplace.h"
#include "core/ops/shape.h"

namespace waymark::nn {

Embedding::Embedding(ModuleBase* parent, std::string_view name, i64 num_embeddings, i64 embedding_dim,
                     std::optional<i64> padding_idx, const Init& values)
    : Module(parent, name), padding_idx_(padding_idx) {
  if (num_embeddings < 1 || embedding_dim < 1)
    fail("embedding", "{} rows of width {}: both must be at least 1", num_embeddings, embedding_dim);
  if (padding_idx_ && *padding_idx_ < 0) padding_idx_ = *padding_idx_ + num_embeddings;
  if (padding_idx_ && (*padding_idx_ < 0 || *padding_idx_ >= num_embeddings))
    fail("embedding", "padding_idx {} is outside the table of {} rows", *padding_idx, num_embeddings);
  weight = parameter("weight", {num_embeddings, embedding_dim}, values);
  if (padding_idx_) {
    const NoGrad off;
    zero_(select(weight, 0, *padding_idx_));
  }
}

Tensor Embedding::forward(const Tensor& ids) const { return embedding(ids, weight, padding_idx_); }

}  // namespace waymark::nn
