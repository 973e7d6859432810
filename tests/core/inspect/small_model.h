// A small language model and its loss on fixed tokens, for the tests of recorder, anomaly mode and stepper.
#pragma once

#include "core/ops/loss.h"
#include "core/random/generator.h"
#include "models/language_model.h"
#include "tests/tensors.h"

namespace waymark::test {

inline Tensor leaf(const Shape& shape, std::initializer_list<double> values, const char* name = "x") {
  Tensor t = make<double>(shape, values);
  t.requires_grad_();
  set_name(t, name);
  return t;
}

struct SmallModel {
  RandomScope random{7};
  models::LanguageModel model;
  Tensor tokens = make<i64>({2, 4}, {0, 1, 2, 3, 3, 1, 0, 4}), targets = make<i64>({8}, {1, 2, 3, 0, 1, 0, 4, 2});

  explicit SmallModel(std::string position = "huang-m4(clip=2)", bool tied = false)
      : model({.vocab_size = 5,
               .encoder = {.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 12, .position = std::move(position)},
               .tie_embeddings = tied}) {}
  Tensor loss() {
    models::EncoderCall call;
    call.positions = nn::Positions::range(4);
    return cross_entropy(model(tokens, call).reshape({8, 5}), targets);
  }
};

}  // namespace waymark::test
