// Cases of core/ops/embedding.cpp and dropout.cpp; many rows to one destination.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/kernels/segments.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding.h"
#include "core/ops/reduce.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"
#include "tests/tensors.h"

namespace waymark::test {

OP_CASES(embedding_cases) {
  op_case("embedding", {indices("input", {2, 3}, 5), tensor_arg("weight", {5, 4})});
  op_case("embedding", {indices("input", {}, 5), tensor_arg("weight", {5, 1})});
  op_case("embedding", {indices("input", {0, 3}, 5), tensor_arg("weight", {5, 4})});
  op_case("embedding", {indices("input", {9}, 3), tensor_arg("weight", {3, 2}).no_grad(), arg("padding_idx", 0)});  // gradient: V69
  bad_input("embedding", "embedding: index 5 at position [0] is outside the table of 3 rows",
            {arg("input", Argument(make<i64>({1}, {5}))), tensor_arg("weight", {3, 2})});
  bad_input("embedding", "embedding: index -1 at position [1, 0] is outside the table of 3 rows",
            {arg("input", Argument(make<i64>({2, 1}, {0, -1}))), tensor_arg("weight", {3, 2})});
  op_case("one_hot", {indices("input", {2, 3}, 4), arg("num_classes", 4)});
  op_case("one_hot", {indices("input", {3}, 4)});
  bad_input("one_hot", "one_hot: class 3 at position [1] is outside [0, 3)",
            {arg("input", Argument(make<i64>({2}, {0, 3}))), arg("num_classes", 3)});
  op_case("dropout", {input({4, 5}), arg("p", 0.4)});
  op_case("dropout", {input({2, 3, 33}), arg("p", 0.5)});
  op_case("dropout", {input({3}), arg("p", 1.0)});
  op_case("dropout", {input({3}), arg("p", 0.0)});
  op_case("dropout", {input({3}), arg("p", 0.3), arg("training", Argument(false))});
  bad_input("dropout", "dropout: p = 1.5 is outside [0, 1]", {input({3}), arg("p", 1.5)});
}

TEST_CASE("V69 embedding with padding_idx: the gradient of that row is 0") {
  const Tensor w = make<double>({2, 1}, {1, 2}).requires_grad_();
  sum(embedding(make<i64>({3}, {0, 1, 0}), w, 0)).backward();
  CHECK(w.grad().to_vector<double>() == std::vector<double>{0, 1});
}

TEST_CASE("C28 rows added to one destination: exact, and the same bits for any number of threads") {
  const i64 n = 200000;
  const Tensor ids = make_empty({n}, kI64), g = make_empty({n, 3}, kF32);
  for (i64 i = 0; i < n; ++i) {
    ids.data<i64>()[i] = i % 2;
    for (i64 j = 0; j < 3; ++j) g.data<float>()[i * 3 + j] = 0.1F;
  }
  const int before = num_threads();
  std::vector<float> first;
  for (int threads : {1, 2, 3, 4}) {
    set_num_threads(threads);
    const Tensor w = make<float>({2, 3}, {0, 0, 0, 0, 0, 0}).requires_grad_();
    embedding(ids, w).backward(g);
    const auto got = w.grad().to_vector<float>();
    if (first.empty()) first = got;
    CHECK(got == first);
  }
  set_num_threads(before);
  // 100,000 × 0.1f; a plain f32 loop is off by 1e-3 relative.
  for (float v : first) CHECK(std::abs(v - 10000.000149F) < 0.01F);
}

TEST_CASE("dropout: stream by scope, the mask of a larger tensor begins with that of a smaller one") {
  manual_seed(42);
  const Tensor ones = make<double>({2, 6}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  // engine 10: kept elements, p = 1/2, seed 42, draw 0 of stream dropout
  const auto kept = dropout(ones, 0.5).to_vector<double>();
  CHECK(kept == std::vector<double>{0, 2, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2});
  {
    const Scope scope("encoder.layers.0");
    CHECK(dropout_stream() == "encoder.layers.0.dropout");
  }
  {
    const Scope scope("encoder.dropout");
    CHECK(dropout_stream() == "encoder.dropout");
  }
  CHECK(dropout(ones, 0.0).is(ones));
  CHECK(dropout(ones, 0.7, false).is(ones));
}

}  // namespace waymark::test
