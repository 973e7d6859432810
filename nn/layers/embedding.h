// Embedding: a trained row per id.
#pragma once

#include <optional>

#include "nn/module/module.h"

namespace waymark::nn {

// weight [num_embeddings, embedding_dim], N(0, 1) as PyTorch's. ids i64 [...] -> [..., embedding_dim].
// The row padding_idx starts at 0 and gets no gradient.
class WAYMARK_API Embedding : public Module<Embedding> {
 public:
  Embedding(ModuleBase& parent, std::string_view name, i64 num_embeddings, i64 embedding_dim,
            std::optional<i64> padding_idx = {}, const Init& values = init::normal())
      : Embedding(&parent, name, num_embeddings, embedding_dim, padding_idx, values) {}
  Embedding(i64 num_embeddings, i64 embedding_dim, std::optional<i64> padding_idx = {},
            const Init& values = init::normal())
      : Embedding(nullptr, "", num_embeddings, embedding_dim, padding_idx, values) {}

  Tensor forward(const Tensor& ids) const;

  Tensor weight;

 private:
  Embedding(ModuleBase* parent, std::string_view name, i64 num_embeddings, i64 embedding_dim,
            std::optional<i64> padding_idx, const Init& values);
  std::optional<i64> padding_idx_;
};

}  // namespace waymark::nn
