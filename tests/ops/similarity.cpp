// Cases of core/ops/similarity.cpp; K23, K24, V89, V92.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/similarity.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(similarity_cases) {
  const auto x1 = [](Shape s) { return tensor_arg("x1", std::move(s)); };
  const auto x2 = [](Shape s) { return tensor_arg("x2", std::move(s)); };
  op_case("normalize", {input({3, 4, 5})});
  op_case("normalize", {input({6}), arg("dim", 0), arg("p", 3.0)});
  op_case("normalize", {input({3, 4}).away_from(0, 0.2), arg("p", 1.0), arg("dim", -1)});
  op_case("normalize", {input({3, 4}).range(0.3, 3).apart(), arg("p", std::numeric_limits<double>::infinity())});
  op_case("normalize", {input({0, 4})});
  bad_input("normalize", "normalize: p must be at least 1, got 0.5", {input({2, 2}), arg("p", 0.5)});
  bad_input("normalize", "normalize: dim 1 is outside [-1, 0] of a tensor with 1 axes*", {input({2})});
  op_case("cosine_similarity", {x1({3, 4, 5}), x2({3, 4, 5})});
  op_case("cosine_similarity", {x1({3, 1, 5}), x2({4, 5}), arg("dim", -1)});
  op_case("cosine_similarity", {x1({0, 5}), x2({0, 5})});
  bad_input("cosine_similarity", "cosine_similarity: dtypes differ: f64 x f32; convert one with to(...)", {x1({2, 2}), arg("x2", Argument(make_empty({2, 2}, kF32)))});
  op_case("pairwise_distance", {x1({4, 3}), x2({4, 3})});
  op_case("pairwise_distance", {x1({4, 3}).range(0, 1), x2({3}).range(1.5, 3), arg("p", 1.0), arg("keepdim", Argument(true))});
  op_case("pairwise_distance", {x1({3}).range(0, 1), x2({3}).range(1.5, 3), arg("p", 3.0)});
  bad_input("pairwise_distance", "pairwise_distance: needs a float tensor, got i64; convert it with .to(kF32)", {indices("x1", {2}, 2), indices("x2", {2}, 2)});
  op_case("cdist", {x1({2, 4, 3}), x2({5, 3})});
  op_case("cdist", {x1({30, 3}), x2({2, 3})}).tolerance(1e-5, 1e-6, "the expanded square loses digits");
  op_case("cdist", {x1({4, 3}).range(0, 1), x2({2, 3}).range(1.5, 3), arg("p", 1.0)});
  op_case("cdist", {x1({2, 3, 2}).range(0, 1), x2({2, 2, 2}).range(1.5, 3), arg("p", 2.5)});
  op_case("cdist", {x1({0, 3}), x2({2, 3})});
  op_case("cdist", {x1({2, 0}), x2({3, 0})});
  bad_input("cdist", "cdist: needs (..., P, M) and (..., R, M), got [2, 3] and [2, 4]", {x1({2, 3}), x2({2, 4})});
  const auto first = [](Shape s) { return tensor_arg("input1", std::move(s)); };
  const auto second = [](Shape s) { return tensor_arg("input2", std::move(s)); };
  op_case("cosine_embedding_loss", {first({4, 3}), second({4, 3}), arg("target", Argument(make<i64>({4}, {1, -1, 1, -1}))), arg("margin", -1.5)});
  op_case("cosine_embedding_loss", {first({3}), second({3}), arg("target", Argument(make<i64>({}, {1}))), arg("reduction", "sum")});
  bad_input("cosine_embedding_loss", "cosine_embedding_loss: needs (N, D), (N, D) and targets (N), or (D), (D) and one target; got [4, 3], [4, 3] and [3]",
            {first({4, 3}), second({4, 3}), indices("target", {3}, 2)});
}

TEST_CASE("V92 normalize, also of the zero vector") {
  Tensor x = leaf({1, 2}, {3, 4});
  const Tensor y = normalize(x) * make<double>({2}, {1, 2});
  check_values(y, {.6, 1.6});
  y.sum().backward();
  check_values(x.grad(), {-.064, .048});
  Tensor zero = leaf({1, 2}, {0, 0});
  const Tensor z = normalize(zero);
  check_values(z, {0, 0});
  z.sum().backward();
  check_values(zero.grad(), {1e12, 1e12});
}

TEST_CASE("cosine_similarity with the zero vector") {
  Tensor a = leaf({1, 2}, {0, 0});
  const Tensor y = cosine_similarity(a, make<double>({1, 2}, {1, 0}));
  check_values(y, {0});
  y.backward();
  check_values(a.grad(), {1e8, 0});
}

TEST_CASE("distances of equal points") {
  Tensor a = leaf({1, 2}, {1, 2});
  const Tensor b = make<double>({1, 2}, {1, 2});
  const Tensor y = cdist(a, b);
  check_values(y, {0});
  const Tensor g = grad(y.sum(), {a}, {.create_graph = true})[a];
  check_values(g, {0, 0});
  check_values(grad(g.sum(), {a})[a], {0, 0});
  const Tensor d = pairwise_distance(a, b);
  check_values(d, {1.41421e-6}, 1e-4);
  d.backward();
  check_values(a.grad(), {0.707107, 0.707107}, 1e-5);
  // Equal points with eps = 0: a removable singularity, too.
  Tensor c = leaf({2}, {1, 2});
  pairwise_distance(c, c.detach(), 2, 0).backward();
  check_values(c.grad(), {0, 0});
}

TEST_CASE("cdist beyond 25 rows equals the direct differences") {
  const Tensor a = make_empty({40, 3}, kF64), b = make_empty({7, 3}, kF64);
  for (i64 i = 0; i < 120; ++i) a.data<double>()[i] = std::sin(static_cast<double>(i));
  for (i64 i = 0; i < 21; ++i) b.data<double>()[i] = std::cos(static_cast<double>(i));
  const auto all = cdist(a, b).to_vector<double>();
  for (i64 i = 0; i < 40; ++i)
    for (i64 j = 0; j < 7; ++j) {
      double s = 0;
      for (i64 k = 0; k < 3; ++k) s += std::pow(a.at<double>({i, k}) - b.at<double>({j, k}), 2);
      CHECK(all[static_cast<size_t>(i * 7 + j)] == doctest::Approx(std::sqrt(s)).epsilon(1e-12));
    }
}

TEST_CASE("V89 cosine_embedding_loss") {
  Tensor a = leaf({2}, {1, 1});
  const Tensor y = cosine_embedding_loss(a, make<double>({2}, {1, 0}), make<i64>({}, {-1}), 0.5);
  check_values(y, {0.207107}, 1e-5);
  y.backward();
  check_values(a.grad(), {.353553, -.353553}, 2e-6);
}

}  // namespace waymark::test
