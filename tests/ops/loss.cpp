// Cases of core/ops/cross_entropy.cpp and loss.cpp; K55 to K59, V80 to V88, V94, C12, C30, C74.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/loss.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/parallel/parallel.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(cross_entropy_cases) {
  const auto ids = [](Shape shape, i64 classes) { return indices("target", std::move(shape), classes); };
  op_case("cross_entropy", {input({6, 5}), ids({6}, 5)});
  op_case("cross_entropy", {input({5}), ids({}, 5)});
  op_case("cross_entropy", {input({2, 4, 3}), ids({2, 3}, 4), arg("reduction", "none"), arg("label_smoothing", 0.1)});
  op_case("cross_entropy", {input({3, 20}), ids({3}, 20), tensor_arg("weight", {20}).range(0.2, 2).no_grad(), arg("label_smoothing", 0.3)});
  op_case("cross_entropy", {input({6, 3}), ids({6}, 3), arg("ignore_index", 1), arg("reduction", "sum")});
  op_case("cross_entropy", {input({6, 3}), ids({6}, 3), arg("ignore_index", 0), tensor_arg("weight", {3}).range(0.2, 2).no_grad(), arg("empty", "zero")});
  op_case("cross_entropy", {input({0, 3}), ids({0}, 3), arg("empty", "zero")});
  op_case("cross_entropy", {input({0, 3}), ids({0}, 3), arg("reduction", "none")});
  op_case("cross_entropy", {input({4, 5}), tensor_arg("target", {4, 5}).range(0, 1), arg("label_smoothing", 0.2)});
  op_case("cross_entropy", {input({2, 4, 3}), tensor_arg("target", {2, 4, 3}).range(0, 1), tensor_arg("weight", {4}).range(0.2, 2).no_grad(), arg("reduction", "none")});

  bad_input("cross_entropy", "cross_entropy: class 3 at position [0] is outside [0, 3) and is not ignore_index (-100)",
            {input({1, 3}), arg("target", Argument(make<i64>({1}, {3})))});
  bad_input("cross_entropy", "cross_entropy: class -1 at position [1, 0] is outside [0, 3) and is not ignore_index (-100)",
            {input({2, 3, 2}), arg("target", Argument(make<i64>({2, 2}, {0, 1, -1, 5})))});
  bad_input("cross_entropy", "cross_entropy: the target must be [2] for the input [2, 3], got [3]", {input({2, 3}), ids({3}, 3)});
  bad_input("cross_entropy", "cross_entropy: the target must be class ids (i64) or probabilities of the input's dtype, got b8", {input({2, 3}), mask("target", {2})});
  bad_input("cross_entropy", "cross_entropy: target probabilities must have the input's shape [2, 3], got [2]", {input({2, 3}), tensor_arg("target", {2})});
  bad_input("cross_entropy", "cross_entropy: the weight must be [3], got [2]", {input({2, 3}), ids({2}, 3), tensor_arg("weight", {2})});
  bad_input("cross_entropy", "cross_entropy: the class weight is a constant, it has no gradient; detach() it", {input({2, 3}), ids({2}, 3), tensor_arg("weight", {3})});
  bad_input("cross_entropy", "cross_entropy: label_smoothing 1.5 is outside [0, 1]", {input({2, 3}), ids({2}, 3), arg("label_smoothing", 1.5)});
  bad_input("cross_entropy", "cross_entropy: reduction is \"mean\", \"sum\" or \"none\", not \"avg\"", {input({2, 3}), ids({2}, 3), arg("reduction", "avg")});
  bad_input("cross_entropy", "cross_entropy: empty is \"error\" or \"zero\", not \"nan\"", {input({2, 3}), ids({2}, 3), arg("empty", "nan")});
  bad_input("cross_entropy", "cross_entropy: the input is 0-d; it needs a class axis: [C], [N, C] or [N, C, ...]", {input({}), ids({}, 3)});
  bad_input("cross_entropy", "cross_entropy: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {2, 3}, 3), ids({2}, 3)});

  op_case("nll_loss", {input({6, 5}), ids({6}, 5), tensor_arg("weight", {5}).range(0.2, 2).no_grad()});
  op_case("nll_loss", {input({2, 4, 3}), ids({2, 3}, 4), arg("reduction", "none"), arg("ignore_index", 2)});
  op_case("nll_loss", {input({4}), ids({}, 4), arg("reduction", "sum")});
  op_case("nll_loss", {input({0, 4}), ids({0}, 4), arg("empty", "zero")});
  bad_input("nll_loss", "nll_loss: class 4 at position [] is outside [0, 4) and is not ignore_index (-100)",
            {input({4}), arg("target", Argument(make<i64>({}, {4})))});
  bad_input("nll_loss", "nll_loss: the target must be class ids (i64), got f64", {input({2, 3}), tensor_arg("target", {2, 3})});
}

OP_CASES(loss_cases) {
  const auto target = [](Shape shape) { return tensor_arg("target", std::move(shape)); };
  for (const char* op : {"mse_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss"}) {
    // Differences away from the kinks: x in [3, 4], t in [0.2, 0.8].
    for (const char* reduction : {"mean", "sum", "none"})
      op_case(op, {input({3, 4}).range(3, 4), target({3, 4}).range(0.2, 0.8), arg("reduction", reduction)});
    op_case(op, {input({}).range(3, 4), target({}).range(0.2, 0.8)});
    op_case(op, {input({2, 0}), target({2, 0}), arg("reduction", "sum")});
    bad_input(op, std::string(op) + ": dtypes differ: f64 x i64; convert one with to(...)", {input({2}), indices("target", {2}, 2)});
    bad_input(op, std::string(op) + ": needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {2}, 2), target({2})});
  }
  op_case("smooth_l1_loss", {input({3, 4}).range(0.1, 0.5), target({3, 4}).range(0.6, 0.9), arg("beta", 0.85)});
  op_case("huber_loss", {input({3, 4}).range(0.1, 0.5), target({3, 4}).range(0.6, 0.9), arg("delta", 0.85)});
  op_case("kl_div", {input({3, 4}), target({3, 4}), arg("log_target", Argument(true)), arg("reduction", "batchmean")});
  bad_input("kl_div", "kl_div: reduction is \"mean\", \"sum\", \"batchmean\" or \"none\", not \"batch\"", {input({2}), target({2}), arg("reduction", "batch")});
  bad_input("smooth_l1_loss", "smooth_l1_loss: beta must not be negative, got -1", {input({2}), target({2}), arg("beta", -1)});
  bad_input("huber_loss", "huber_loss: delta must be positive, got 0", {input({2}), target({2}), arg("delta", 0)});

  op_case("binary_cross_entropy", {input({3, 4}).range(0.1, 0.9), target({3, 4}).range(0.1, 0.9), tensor_arg("weight", {4})});
  op_case("binary_cross_entropy", {input({5}).range(0.1, 0.9), target({5}).range(0.1, 0.9), arg("reduction", "none")});
  bad_input("binary_cross_entropy",
            "binary_cross_entropy: the input must lie in [0, 1], got 1.5 at position [1]; for logits use binary_cross_entropy_with_logits",
            {arg("input", Argument(make<double>({2}, {0.5, 1.5}))), target({2})});
  bad_input("binary_cross_entropy", "binary_cross_entropy: the target must have the input's shape [2], got [1]", {input({2}).range(0, 1), target({1})});
  op_case("binary_cross_entropy_with_logits", {input({3, 4}), target({3, 4}).range(0.1, 0.9)});
  op_case("binary_cross_entropy_with_logits", {input({3, 4}), target({3, 4}).range(0.1, 0.9), tensor_arg("weight", {3, 1}),
                                               tensor_arg("pos_weight", {4}).range(0.5, 2), arg("reduction", "sum")});
  bad_input("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits: the target must have the input's shape [2], got []",
            {input({2}), target({})});
}

namespace {

Tensor rows() { return leaf({2, 3}, {1, 2, 3, 1, 1, 1}); }
Tensor targets() { return make<i64>({2}, {2, 0}); }
Tensor weights() { return make<double>({3}, {1, 2, 3}); }
// Value and gradient, for the fused op, its composed rule and the twin.
template <class F> void check_loss(F loss, const Tensor& x0, double value, const Numbers& gradient, double relative = 1e-5) {
  fused_and_twin([&] {
    for (const bool create_graph : {false, true}) {
      Tensor x = x0.detach().clone();
      x.requires_grad_();
      const Tensor y = loss(x);
      check_values(y, {value}, relative);
      y.backward({.create_graph = create_graph});
      const Numbers got = x.grad().to_vector<double>();
      REQUIRE(got.size() == gradient.size());
      for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - gradient[i]) <= 1e-6);
    }
  });
}

}  // namespace

TEST_CASE("V80 to V84 cross_entropy of class ids: smoothing, weights, ignored targets") {
  check_loss([](const Tensor& x) { return cross_entropy(x, targets()); }, rows(), 0.753109,
        {.045015, .122364, -.167380, -.333333, .166667, .166667});
  check_loss([](const Tensor& x) { return cross_entropy(x, make<i64>({1}, {2}), {.label_smoothing = 0.1}); },
        leaf({1, 3}, {1, 2, 3}), 0.507606, {.056697, .211395, -.268092});
  check_loss([](const Tensor& x) { return cross_entropy(x, targets(), {.weight = weights()}); }, rows(), 0.580358,
        {.067523, .183546, -.251069, -.166667, .083333, .083333});
  check_loss([](const Tensor& x) { return cross_entropy(x, targets(), {.weight = weights(), .label_smoothing = 0.3}); }, rows(),
        0.732183, {.035771, .115192, -.150962, -.091667, .058333, .033333});
  const Tensor one_ignored = make<i64>({2}, {2, -100});
  check_loss([&](const Tensor& x) { return cross_entropy(x, one_ignored); }, rows(), 0.407606, {.090031, .244728, -.334759, 0, 0, 0});
  check_loss([&](const Tensor& x) { return cross_entropy(x, one_ignored, {.reduction = "sum"}); }, rows(), 0.407606,
        {.090031, .244728, -.334759, 0, 0, 0});
  fused_and_twin([&] { check_values(cross_entropy(rows(), one_ignored, {.reduction = "none"}), {0.407606, 0}, 1e-5); });
  // An ignored row may hold anything.
  Tensor wild = leaf({2, 2}, {0, 0, kNan, kInf});
  cross_entropy(wild, make<i64>({2}, {1, -100})).backward();
  check_values(wild.grad(), {0.5, -0.5, 0, 0});
}

TEST_CASE("V85 cross_entropy of probabilities") {
  check_loss([](const Tensor& x) { return cross_entropy(x, make<double>({1, 3}, {.2, .3, .5})); }, leaf({1, 3}, {1, 2, 3}), 1.107606,
        {-.109969, -.055272, .165241});
}

TEST_CASE("V86 large logits; positions beyond the batch") {
  check_loss([](const Tensor& x) { return cross_entropy(x, make<i64>({1}, {0})); }, leaf({1, 2}, {1000, -1000}), 0, {0, 0});
  const Tensor x = make_empty({2, 5, 7}, kF64), t = make_empty({2, 7}, kI64);
  x.zero_();
  t.zero_();
  const Tensor y = cross_entropy(x, t, {.reduction = "none"});
  CHECK(y.shape() == Shape{2, 7});
  check_values(y, Numbers(14, std::log(5.0)));
}

TEST_CASE("C12 a mean over nothing is an Error, or 0 on request") {
  const Tensor ignored = make<i64>({2}, {-100, -100}), none = make<i64>({0}, {}), empty = make<double>({0, 3}, {});
  CHECK(error_text([&] { (void)cross_entropy(rows(), ignored); }) ==
        "cross_entropy: none of the 2 targets is kept (ignore_index -100): there is no mean; pass empty = \"zero\" for 0");
  CHECK(error_text([&] { (void)cross_entropy(empty, none); }) ==
        "cross_entropy: none of the 0 targets is kept (ignore_index -100): there is no mean; pass empty = \"zero\" for 0");
  CHECK(error_text([&] { (void)nll_loss(rows(), ignored); }) ==
        "nll_loss: none of the 2 targets is kept (ignore_index -100): there is no mean; pass empty = \"zero\" for 0");
  CHECK(error_text([&] { (void)cross_entropy(rows(), targets(), {.weight = make<double>({3}, {0, 1, 0})}); }) ==
        "cross_entropy: the kept targets have total weight 0: there is no mean; pass empty = \"zero\" for 0");
  check_loss([&](const Tensor& x) { return cross_entropy(x, ignored, {.empty = "zero"}); }, rows(), 0, Numbers(6, 0.0));
  check_loss([&](const Tensor& x) { return nll_loss(x, ignored, {.empty = "zero"}); }, rows(), 0, Numbers(6, 0.0));
  check_loss([&](const Tensor& x) { return cross_entropy(x, targets(), {.weight = make<double>({3}, {0, 1, 0}), .empty = "zero"}); },
             rows(), 0, Numbers(6, 0.0));
  check_loss([&](const Tensor& x) { return cross_entropy(x, none, {.empty = "zero"}); }, empty, 0, {});
  check_loss([&](const Tensor& x) { return cross_entropy(x, ignored, {.reduction = "sum"}); }, rows(), 0, Numbers(6, 0.0));
}

TEST_CASE("C30 a class outside the range is an Error before anything is computed") {
  const Tensor x = rows();
  CHECK(error_text([&] { (void)cross_entropy(x, make<i64>({2}, {0, 3})); }) ==
        "cross_entropy: class 3 at position [1] is outside [0, 3) and is not ignore_index (-100)");
  CHECK(error_text([&] { (void)cross_entropy(x, make<i64>({2}, {-1, 0})); }) ==
        "cross_entropy: class -1 at position [0] is outside [0, 3) and is not ignore_index (-100)");
}

TEST_CASE("nll_loss of log_softmax is cross_entropy") {
  const Tensor x = rows();
  const Tensor a = cross_entropy(x, targets(), {.weight = weights()}), b = nll_loss(log_softmax(x, 1), targets(), {.weight = weights()});
  CHECK(a.item<double>() == doctest::Approx(b.item<double>()).epsilon(1e-14));
  Tensor logp = leaf({2, 3}, {-1, -2, -3, -4, -5, -6});
  nll_loss(logp, targets(), {.weight = weights()}).backward();
  check_values(logp.grad(), {0, 0, -0.75, -0.25, 0, 0});
}

TEST_CASE("V87 binary cross-entropy") {
  Tensor p = leaf({1}, {0});
  const Tensor y = binary_cross_entropy(p, make<double>({1}, {1}));
  check_values(y, {100});
  y.backward();
  check_values(p.grad(), {-1e12}, 1e-7);
  Tensor x = leaf({3}, {100, -1000, 0});
  const Tensor z = binary_cross_entropy_with_logits(x, make<double>({3}, {1, 0, 0.5}));
  check_values(z, {0.231049}, 1e-5);
  z.backward();
  for (const double g : x.grad().to_vector<double>()) CHECK(std::abs(g) < 1e-40);
  Tensor w = leaf({2}, {0, 0});
  const Tensor v = binary_cross_entropy_with_logits(w, make<double>({2}, {1, 0}), {}, "mean", make<double>({1}, {3}));
  check_values(v, {1.386294}, 1e-6);
  v.backward();
  check_values(w.grad(), {-.75, .25});
}

TEST_CASE("V88 kl_div with terms of 0") {
  Tensor x = leaf({1, 3}, {-1, -1, -2});
  const Tensor y = kl_div(x, make<double>({1, 3}, {0, .5, .5}), "batchmean");
  check_values(y, {0.806853}, 1e-6);
  y.backward();
  check_values(x.grad(), {0, -.5, -.5});
  Tensor q = leaf({2}, {-1, -1}), t = leaf({2}, {-kInf, 0});
  const Tensor v = kl_div(q, t, "sum", true);
  check_values(v, {1});
  v.backward();
  check_values(q.grad(), {0, -1});
  check_values(t.grad(), {0, 2});
}

TEST_CASE("V94 mse_loss, also of nothing") {
  Tensor x = leaf({2}, {2, 1});
  const Tensor y = mse_loss(x, make<double>({2}, {0, 1}));
  check_values(y, {2});
  y.backward();
  check_values(x.grad(), {2, 0});
  check_values(mse_loss(make<double>({0}, {}), make<double>({0}, {})), {kNan});
}

TEST_CASE("cross_entropy in f32 of many rows has the same bits for any number of threads") {
  const int threads = num_threads();
  const i64 n = 4000, c = 65;
  Tensor x = make_empty({n, c}, kF32), t = make_empty({n}, kI64);
  for (i64 i = 0; i < n * c; ++i) x.data<float>()[i] = 3 * std::sin(0.1f * static_cast<float>(i));
  for (i64 i = 0; i < n; ++i) t.data<i64>()[i] = i % 7 == 0 ? -100 : i % c;
  x.requires_grad_();
  std::vector<Tensor> first;
  for (const int k : {1, 2, 4}) {
    set_num_threads(k);
    x.set_grad(Tensor());
    const Tensor y = cross_entropy(x, t);
    y.backward();
    if (first.empty()) first = {y.detach(), x.grad().clone()};
    CHECK(difference(y.detach(), first[0]) == "");
    CHECK(difference(x.grad(), first[1]) == "");
  }
  set_num_threads(threads);
}

}  // namespace waymark::test
