// Cases of core/ops/normalisation.cpp; K60, V90, V91, V93, C10.
#include <random>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/normalisation.h"
#include "core/ops/reduce.h"
#include "core/parallel/parallel.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(normalisation_cases) {
  const auto shape = [](std::vector<i64> s) { return arg("normalized_shape", Argument(std::move(s))); };
  op_case("layer_norm", {input({2, 3, 5}), shape({5}), tensor_arg("weight", {5}), tensor_arg("bias", {5})});
  op_case("layer_norm", {input({3, 20}), shape({20})});
  op_case("layer_norm", {input({2, 3, 4}), shape({3, 4}), tensor_arg("weight", {3, 4}), arg("eps", 0.01)});
  op_case("layer_norm", {input({4, 3}), shape({3}), tensor_arg("bias", {3})});
  op_case("layer_norm", {input({0, 3}), shape({3}), tensor_arg("weight", {3}), tensor_arg("bias", {3})});
  op_case("layer_norm", {input({2, 0}), shape({0})});
  bad_input("layer_norm", "layer_norm: normalized_shape [5] is not the end of the input's shape [2, 3, 4]", {input({2, 3, 4}), shape({5})});
  bad_input("layer_norm", "layer_norm: normalized_shape must have at least one axis", {input({2}), shape({})});
  bad_input("layer_norm", "layer_norm: the weight must be [4], got [3]", {input({2, 4}), shape({4}), tensor_arg("weight", {3})});
  bad_input("layer_norm", "layer_norm: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {2, 4}, 9), shape({4})});

  op_case("rms_norm", {input({2, 3, 5}), shape({5}), tensor_arg("weight", {5}), arg("eps", 1e-6)});
  op_case("rms_norm", {input({3, 20}).away_from(0, 0.3), shape({20})}).f64_only("eps is the dtype's own");
  op_case("rms_norm", {input({2, 3, 4}), shape({3, 4}), arg("eps", 0.1)});
  op_case("rms_norm", {input({0, 3}), shape({3}), tensor_arg("weight", {3})});
  bad_input("rms_norm", "rms_norm: the weight must be [4], got [2, 4]", {input({2, 4}), shape({4}), tensor_arg("weight", {2, 4})});

  op_case("group_norm", {input({2, 6, 5}), arg("num_groups", 3), tensor_arg("weight", {6}), tensor_arg("bias", {6})});
  op_case("group_norm", {input({2, 4}).apart(), arg("num_groups", 2)});
  op_case("group_norm", {input({0, 4, 3}), arg("num_groups", 2), tensor_arg("weight", {4})});
  bad_input("group_norm", "group_norm: 6 channels cannot be cut into 4 equal groups", {input({2, 6, 5}), arg("num_groups", 4)});
  bad_input("group_norm", "group_norm: the input must be [N, C, ...], got [6]", {input({6}), arg("num_groups", 2)});
}

TEST_CASE("V90 V91 layer_norm of a row, its gradients with and without weights") {
  fused_and_twin([] {
    Tensor x = leaf({3}, {1, 2, 4});
    const Tensor y = layer_norm(x, {3});
    CHECK(y.to_vector<double>()[0] == doctest::Approx(-1.069042).epsilon(1e-6));
    y.select(0, 0).backward();
    check_values(x.grad(), {.229082, -.343620, .114538}, 1e-5);

    Tensor z = leaf({3}, {1, 2, 4}), w = leaf({3}, {1, .5, 2}), b = leaf({3}, {0, 0, 1});
    const Tensor out = make<double>({3}, {1, 2, 3}), v = layer_norm(z, {3}, w, b) * out;
    check_values(v, {-1.069042, -.267260, 11.017811}, 2e-6);
    v.sum().backward();
    check_values(z.grad(), {.572689, -.859054, .286366}, 1e-5);
    check_values(w.grad(), {-1.069042, -.534521, 4.008906}, 2e-6);
    check_values(b.grad(), {1, 2, 3});
  });
}

TEST_CASE("V93 group_norm") {
  Tensor x = leaf({1, 4}, {1, 2, 3, 5});
  const Tensor y = group_norm(x, 2);
  CHECK(y.to_vector<double>()[0] == doctest::Approx(-0.99998).epsilon(1e-6));
  y.select(1, 0).sum().backward();
  check_values(x.grad(), {4e-5, -4e-5, 0, 0}, 1e-2);
}

TEST_CASE("layer_norm of a constant row and of one feature") {
  fused_and_twin([] {
    Tensor x = leaf({2, 3}, {5, 5, 5, -1, -1, -1});
    const Tensor y = layer_norm(x, {3});
    check_values(y, {0, 0, 0, 0, 0, 0});
    y.sum().backward();
    check_values(x.grad(), {0, 0, 0, 0, 0, 0});
    Tensor one = leaf({2, 1}, {3, -7});
    const Tensor v = layer_norm(one, {1});
    check_values(v, {0, 0});
    v.sum().backward();
    check_values(one.grad(), {0, 0});
  });
}

TEST_CASE("C10 layer_norm in f32 of rows with a large mean") {
  fused_and_twin([] {
    const Tensor x = make_empty({1, 16}, kF32);
    for (i64 i = 0; i < 16; ++i) x.data<float>()[i] = static_cast<float>(10000 + static_cast<double>(i) * 1e-3);
    const double first = layer_norm(x, {16}).to_vector<double>()[0];
    CHECK(std::abs(first - -1.33133) < 1e-5);
    const Tensor exact = layer_norm(to(x, kF64), {16});
    for (size_t i = 0; i < 16; ++i)
      CHECK(std::abs(layer_norm(x, {16}).to_vector<double>()[i] - exact.to_vector<double>()[i]) < 1e-6);

    // One value of 1e4, the others from N(0, 1).
    std::mt19937_64 rng(5);
    std::normal_distribution<float> normal;
    const Tensor row = make_empty({1, 1024}, kF32);
    for (i64 i = 0; i < 1024; ++i) row.data<float>()[i] = i == 0 ? 1e4f : normal(rng);
    const auto a = layer_norm(row, {1024}).to_vector<double>(), b = layer_norm(to(row, kF64), {1024}).to_vector<double>();
    for (size_t i = 0; i < 1024; ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5);
  });
}

TEST_CASE("norms: parameter gradients do not depend on the number of threads") {
  const int threads = num_threads();
  const Tensor x = make_empty({3000, 24}, kF32), g = make_empty({3000, 24}, kF32);
  for (i64 i = 0; i < x.numel(); ++i) {
    x.data<float>()[i] = std::sin(static_cast<float>(i));
    g.data<float>()[i] = std::cos(0.3f * static_cast<float>(i));
  }
  Tensor w = make_empty({24}, kF32), b = make_empty({24}, kF32);
  w.fill_(1);
  b.fill_(0);
  w.requires_grad_();
  b.requires_grad_();
  std::vector<Tensor> first;
  for (const int n : {1, 2, 4}) {
    set_num_threads(n);
    w.set_grad(Tensor());
    b.set_grad(Tensor());
    layer_norm(x, {24}, w, b).backward(g);
    if (first.empty()) first = {w.grad().clone(), b.grad().clone()};
    CHECK(difference(w.grad(), first[0]) == "");
    CHECK(difference(b.grad(), first[1]) == "");
  }
  set_num_threads(threads);
}

TEST_CASE("layer_norm saves its input, the weight and three numbers a row") {
  Tensor x = leaf({4, 3}, {1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4}), w = leaf({3}, {1, 2, 3}), b = leaf({3}, {1, 2, 3});
  const auto bytes = [](const Tensor& y) {
    i64 n = 0;
    for (const Saved& s : ensure_meta(y).history.node->saved) n += s.bytes;
    return n;
  };
  CHECK(bytes(layer_norm(x, {3}, w, b)) == x.nbytes() + w.nbytes() + 4 * 3 * 8);
  CHECK(bytes(layer_norm(x.detach(), {3}, w.detach(), b)) == 0);
}

}  // namespace waymark::test
