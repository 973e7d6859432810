// Losses of tasks (nn/loss/loss.h): values by hand, gradients to second order, and what holds for all of them.
#include "nn/loss/loss.h"

#include <functional>

#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/join.h"
#include "core/ops/loss.h"
#include "core/ops/random_ops.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "tests/ops/values.h"

using namespace waymark;
using namespace waymark::test;
namespace loss = waymark::nn::loss;

namespace {

Tensor ids(const Shape& shape, std::initializer_list<i64> v) { return make<i64>(shape, v); }
Tensor logits(const Shape& shape) { return randn(shape, {.dtype = kF64, .requires_grad = true}); }
constexpr i64 kNot = -100;

// A loss of float leaves, with what belongs to it.
struct Case {
  std::string name;
  std::vector<Tensor> leaves;
  TensorFunction f;
};
std::vector<Case> all_losses() {
  std::vector<Case> list;
  const auto add = [&](std::string name, std::vector<Tensor> leaves, TensorFunction f) {
    list.push_back({std::move(name), std::move(leaves), std::move(f)});
  };
  const Tensor y = ids({5}, {1, kNot, 0, 3, 2}), tokens = ids({2, 3}, {0, 2, kNot, kNot, 1, 2});
  const Tensor w = f64({0.5, 2, 0, 1, 3}), rows = f64({2, 0.25});
  add("cross_entropy", {logits({5, 4})}, [=](auto& v) { return std::vector{loss::cross_entropy(v[0], y)}; });
  add("cross_entropy, all options", {logits({2, 3, 3})}, [=](auto& v) {
    return std::vector{
        loss::cross_entropy(v[0], tokens, {.weight = f64({0.5, 1, 2}), .item_weight = rows, .label_smoothing = 0.1})};
  });
  for (const auto kl : {loss::Kl::symmetric, loss::Kl::forward, loss::Kl::reverse}) {
    const std::string tail = fmt::format(", kl {}", static_cast<int>(kl));
    add("kl_div" + tail, {logits({2, 3, 4}), logits({2, 3, 4})}, [=](auto& v) {
      return std::vector{loss::kl_div(
          v[0], v[1],
          {.kl = kl, .mask = make<bool>({2, 3}, {true, false, true, true, true, false}), .item_weight = rows})};
    });
    add("sar" + tail, {logits({5, 4}), logits({5, 4})},
        [=](auto& v) { return std::vector{loss::sar(v[0], v[1], y, {.alpha = 0.7, .kl = kl, .item_weight = w})}; });
    add("sar_span" + tail, {logits({3, 5}), logits({3, 5}), logits({3, 5}), logits({3, 5})}, [=](auto& v) {
      const loss::SpanTargets t{ids({3}, {1, kNot, 0}), ids({3}, {2, 4, 0}),
                                make<bool>({3, 5}, {true, true, true, true, false, true, true, true, true, true, true,
                                                    true, false, false, false})};
      return std::vector{
          loss::sar_span({v[0], v[1]}, {v[2], v[3]}, t, {.alpha = 1.5, .kl = kl, .item_weight = f64({1, 2, 0.5})})};
    });
  }
  add("r_drop, tokens, ce first", {logits({2, 3, 3}), logits({2, 3, 3})},
      [=](auto& v) { return std::vector{loss::r_drop(v[0], v[1], tokens, {.alpha = 2, .ce = loss::Scored::first})}; });
  add("sar_regression", {logits({4}), logits({4})}, [=](auto& v) {
    return std::vector{
        loss::sar_regression(v[0], v[1], f64({1, -1, 0.5, 2}), {.alpha = 0.3, .item_weight = f64({1, 0, 2, 1})})};
  });
  add("span_qa", {logits({2, 4}), logits({2, 4})}, [=](auto& v) {
    return std::vector{
        loss::span_qa({v[0], v[1]}, {ids({2}, {1, 0}), ids({2}, {2, kNot}),
                                     make<bool>({2, 4}, {true, true, true, false, true, true, false, true})})};
  });
  add("span_qa, pad_logits", {logits({2, 4}), logits({2, 4})}, [=](auto& v) {
    return std::vector{loss::span_qa({v[0], v[1]}, {ids({2}, {1, 3}), ids({2}, {2, 3})}, {.pad_logits = true})};
  });
  return list;
}

std::vector<Tensor> gradients(const Tensor& value, const std::vector<Tensor>& leaves) {
  const GradMap map = grad({value}, leaves, {.allow_unused = true});
  std::vector<Tensor> out;
  for (const Tensor& t : leaves) out.push_back(map.contains(t) ? map[t] : zeros_like(t));
  return out;
}
void check_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  check_values(a, b.to_vector<double>(), tolerance);
}

}  // namespace

TEST_CASE("losses of tasks: gradients to second order") {
  for (const Case& c : all_losses()) {
    INFO(c.name);
    const GradcheckReport first = gradcheck(c.f, c.leaves),
                          second = gradgradcheck(c.f, c.leaves, {.rtol = 1e-5, .atol = 1e-7});
    CHECK_MESSAGE(first.passed, first.message);
    CHECK_MESSAGE(second.passed, second.message);
    // The composed twins give the same.
    const Tensor fused = c.f(c.leaves)[0];
    const std::vector<Tensor> g = gradients(fused, c.leaves);
    const ExplainMode explain;
    const Tensor composed = c.f(c.leaves)[0];
    check_close(composed, fused);
    const std::vector<Tensor> h = gradients(composed, c.leaves);
    for (size_t i = 0; i < g.size(); ++i) {
      const auto a = g[i].to_vector<double>(), b = h[i].to_vector<double>();
      for (size_t k = 0; k < a.size(); ++k) CHECK(std::abs(a[k] - b[k]) < 1e-13);
    }
  }
}

// u = (0, 0), v = (ln 3, 0): KL(p‖q) = 0.143841, KL(q‖p) = 0.130812, CE(u, 0) = ln 2, CE(v, 0) = ln 4/3.
TEST_CASE("SAR by hand: directions, cross-entropy of one or both, detach") {
  const Tensor u = leaf({1, 2}, {0, 0}), v = leaf({1, 2}, {std::log(3.0), 0}), y = ids({1}, {0});
  const double pq = 0.5 * std::log(4.0 / 3), qp = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  const double ce_u = std::log(2.0), ce_v = std::log(4.0 / 3);
  CHECK(loss::sar(u, v, y).item<double>() == doctest::Approx((ce_u + ce_v) / 2 + (pq + qp) / 2).epsilon(1e-12));
  CHECK(loss::r_drop(u, v, y, {.alpha = 5}).item<double>() ==
        doctest::Approx((ce_u + ce_v) / 2 + 5 * (pq + qp) / 2).epsilon(1e-12));
  CHECK(loss::sar(u, v, y, {.kl = loss::Kl::forward, .ce = loss::Scored::first}).item<double>() ==
        doctest::Approx(ce_u + pq).epsilon(1e-12));
  CHECK(loss::sar(u, v, y, {.kl = loss::Kl::reverse}).item<double>() ==
        doctest::Approx((ce_u + ce_v) / 2 + qp).epsilon(1e-12));
  // α = 0 is plain cross-entropy on both passes.
  CHECK(loss::sar(u, v, y, {.alpha = 0}).item<double>() == doctest::Approx((ce_u + ce_v) / 2).epsilon(1e-12));
  // The divergence gives u nothing, its cross-entropy does: ½ (p − e) = (−¼, ¼).
  const auto g = gradients(loss::sar(u, v, y, {.detach = loss::Detach::first}), {u, v});
  check_values(g[0], {-0.25, 0.25}, 1e-12);
  check_values(g[1], {0.5 * (0.75 - 1) + 0.227995, 0.5 * 0.25 - 0.227995}, 1e-5);
  check_values(gradients(loss::kl_div(u, v, {.detach = loss::Detach::first}), {u, v})[0], {0, 0});
  // Regression: ½ (1 + 4) + 0.3·1.
  CHECK(loss::sar_regression(f64({1}), f64({2}), f64({0}), {.alpha = 0.3}).item<double>() ==
        doctest::Approx(2.8).epsilon(1e-12));
}

TEST_CASE("an answer span by hand: probabilities among kept positions, the mean of both ends") {
  const Tensor start = leaf({1, 3}, {0, 0, 9}), end = leaf({1, 3}, {std::log(3.0), 0, -4});
  const loss::SpanTargets t{ids({1}, {1}), ids({1}, {0}), make<bool>({1, 3}, {true, true, false})};
  const Tensor y = loss::span_qa({start, end}, t);
  CHECK(y.item<double>() == doctest::Approx((std::log(2.0) + std::log(4.0 / 3)) / 2).epsilon(1e-12));
  const auto g = gradients(y, {start, end});
  check_values(g[0], {0.25, -0.25, 0}, 1e-12);
  check_values(g[1], {0.5 * (0.75 - 1), 0.125, 0}, 1e-12);
  // Over all positions, as BERT.
  const double all = std::log(2 + std::exp(9.0)), all_end = std::log(4 + std::exp(-4.0)) - std::log(3.0);
  CHECK(loss::span_qa({start, end}, t, {.pad_logits = true}).item<double>() ==
        doctest::Approx((all + all_end) / 2).epsilon(1e-12));
  // Of two rows, one whose start is not scored: separate means.
  const Tensor s2 = cat({start, start}, 0), e2 = cat({end, end}, 0);
  const loss::SpanTargets t2{ids({2}, {1, kNot}), ids({2}, {0, 1}),
                             make<bool>({2, 3}, {true, true, false, true, true, false})};
  CHECK(loss::span_qa({s2, e2}, t2).item<double>() ==
        doctest::Approx(0.5 * std::log(2.0) + 0.5 * (std::log(4.0 / 3) + std::log(4.0)) / 2).epsilon(1e-12));
}

TEST_CASE("losses are means: repeating the batch, cutting it, weights") {
  const Tensor u = logits({5, 4}), v = logits({5, 4}), y = ids({5}, {1, kNot, 0, 3, 2});
  const Tensor twice_u = cat({u, u}, 0), twice_v = cat({v, v}, 0), twice_y = cat({y, y}, 0);
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& t, const Tensor& w, std::string_view reduction) {
    return loss::sar(a, b, t, {.alpha = 2, .item_weight = w, .reduction = reduction});
  };
  const Tensor one = f(u, v, y, {}, "mean");
  const auto g = gradients(one, {u, v});
  SUBCASE("the batch twice") {
    const Tensor two = f(twice_u, twice_v, twice_y, {}, "mean");
    check_close(two, one);
    const auto h = gradients(two, {u, v});
    for (size_t i = 0; i < 2; ++i) check_close(h[i], g[i], 1e-11);
  }
  SUBCASE("parts of unequal size") {
    Tensor sum = f(u.narrow(0, 0, 2), v.narrow(0, 0, 2), y.narrow(0, 0, 2), {}, "sum");
    sum = add(sum, f(u.narrow(0, 2, 3), v.narrow(0, 2, 3), y.narrow(0, 2, 3), {}, "sum"));
    check_close(div(sum, 4), one);  // 4 of 5 are scored
  }
  SUBCASE("weight 2 is twice, weight 0 is removed") {
    const Tensor weighted = f(u, v, y, f64({1, 1, 2, 0, 1}), "mean");
    const Tensor rows = ids({4}, {0, 2, 2, 4});
    const Tensor picked = f(u.index_select(0, rows), v.index_select(0, rows), y.index_select(0, rows), {}, "mean");
    check_close(weighted, picked);
    const auto a = gradients(weighted, {u, v}), b = gradients(picked, {u, v});
    for (size_t i = 0; i < 2; ++i) check_close(a[i], b[i], 1e-11);
    // Class weights beside them.
    const loss::CrossEntropyOptions o{.weight = f64({1, 2, 3, 4}), .item_weight = f64({1, 1, 2, 0, 1})};
    const Tensor ce =
        waymark::cross_entropy(u.index_select(0, rows), y.index_select(0, rows), {.weight = f64({1, 2, 3, 4})});
    check_close(loss::cross_entropy(u, y, o), ce);
  }
  SUBCASE("an integer mask of items, and weights of leading axes") {
    const Tensor tokens = u.reshape({5, 1, 4}).expand({5, 2, 4}),
                 targets = ids({5, 2}, {1, 2, 0, 0, 3, 1, 2, 2, kNot, 1});
    check_close(loss::cross_entropy(tokens, targets, {.item_weight = ids({5}, {1, 0, 1, 1, 0})}),
                loss::cross_entropy(tokens, targets, {.item_weight = ids({5, 2}, {1, 1, 0, 0, 1, 1, 1, 1, 0, 0})}));
  }
}

TEST_CASE("what is not scored does not matter, whatever it holds") {
  for (const Case& c : all_losses()) {
    INFO(c.name);
    const Tensor value = c.f(c.leaves)[0];
    const std::vector<Tensor> g = gradients(value, c.leaves);
    // Elements whose gradient is exactly 0 everywhere are those of rows and places that are not scored.
    std::vector<Tensor> dirty;
    i64 dropped = 0;
    for (size_t i = 0; i < g.size(); ++i) {
      const Tensor nothing = eq(g[i], 0);
      for (const bool b : nothing.to_vector<bool>()) dropped += b;
      dirty.push_back(c.leaves[i].detach().masked_fill(nothing, kNan).requires_grad_());
    }
    if (c.name != "span_qa, pad_logits") CHECK(dropped > 0);
    const Tensor again = c.f(dirty)[0];
    check_close(again, value);
    const std::vector<Tensor> h = gradients(again, dirty);
    for (size_t i = 0; i < g.size(); ++i) check_close(h[i], g[i]);
  }
}

TEST_CASE("nothing scored: an error, or 0 with gradient 0") {
  const Tensor u = logits({2, 3}), v = logits({2, 3}), none = ids({2}, {kNot, kNot});
  CHECK_ERROR(loss::cross_entropy(u, none),
              "cross_entropy: none of the 2 items is scored, so there is no mean; pass empty = \"zero\" for 0");
  CHECK_ERROR(loss::kl_div(u, v, {.item_weight = f64({0, 0})}),
              "kl_div: none of the 2 items is scored, so there is no mean; pass empty = \"zero\" for 0");
  for (const Tensor& y :
       {loss::sar(u, v, none, {.empty = "zero"}),
        loss::kl_div(u, v, {.mask = make<bool>({2}, {false, false}), .empty = "zero"}),
        loss::sar_span({u, u}, {v, v}, {none, none, make<bool>({2, 3}, {true, true, true, false, false, false})},
                       {.empty = "zero"}),
        loss::cross_entropy(u, none, {.reduction = "sum"})}) {
    CHECK(y.item<double>() == 0);
    for (const Tensor& g : gradients(y, {u, v})) CHECK(g.to_vector<double>() == Numbers(6, 0));
  }
}

TEST_CASE("large logits and many classes") {
  for (const i64 classes : {2, 10, 1000})
    for (const DType dtype : {kF64, kF32}) {
      const Tensor u = mul(sub(rand({4, classes}, dtype), 0.5), 160).requires_grad_(),
                   v = mul(sub(rand({4, classes}, dtype), 0.5), 160).requires_grad_();
      const Tensor y = ids({4}, {0, 1, 0, 1});
      const Tensor value = loss::sar(u.detach().requires_grad_(), v, y);
      CHECK(std::isfinite(value.item<double>()));
      const Tensor a = u.detach().requires_grad_();
      for (const Tensor& g : gradients(loss::sar(a, v, y), {a}))
        for (const double x : g.to_vector<double>()) CHECK(std::isfinite(x));
      // Equal passes: cross-entropy alone, to the last bit.
      CHECK(loss::sar(a, a, y).item<double>() == loss::cross_entropy(a, y).item<double>());
      CHECK(loss::kl_div(a, clone(a)).item<double>() == 0);
      // Symmetric in its passes.
      CHECK(loss::sar(a, v, y).item<double>() == doctest::Approx(loss::sar(v, a, y).item<double>()).epsilon(1e-6));
    }
}

TEST_CASE("losses refuse what does not fit") {
  const Tensor u = logits({2, 3}), y = ids({2}, {0, 1}),
               keep = make<bool>({2, 3}, {true, true, false, true, true, true});
  CHECK_ERROR(loss::cross_entropy(u, ids({3}, {0, 1, 2})),
              "cross_entropy: the target must be [2] for logits [2, 3], got [3]");
  CHECK_ERROR(loss::cross_entropy(u, f64({0, 1})), "cross_entropy: the target must be class ids (i64)");
  CHECK_ERROR(loss::cross_entropy(u, y, {.item_weight = f64({1, 2, 3})}),
              "cross_entropy: item_weight [3] must have the shape of the items [2], or its leading axes");
  CHECK_ERROR(loss::cross_entropy(u, y, {.item_weight = f64({1, -2})}),
              "cross_entropy: item_weight has -2; weights are finite and >= 0");
  CHECK_ERROR(loss::cross_entropy(u, y, {.reduction = "none"}),
              "cross_entropy: reduction is \"mean\" or \"sum\", not \"none\"");
  CHECK_ERROR(loss::cross_entropy(u, y, {.empty = "nan"}),
              "cross_entropy: empty is \"error\" or \"zero\", not \"nan\"");
  CHECK_ERROR(loss::sar(u, logits({2, 4}), y), "sar: the two passes must give one shape, got [2, 3] and [2, 4]");
  CHECK_ERROR(loss::r_drop(u, u, y, {.alpha = -1}), "r_drop: alpha = -1: must be finite and >= 0");
  CHECK_ERROR(loss::kl_div(u, u, {.mask = y}), "kl_div: the mask must be b8 [2], got i64 [2]");
  CHECK_ERROR(loss::sar_regression(f64({1}), f64({1}), f64({1}), {.kl = loss::Kl::forward}),
              "sar_regression: a squared distance has no direction: kl must be symmetric");
  CHECK_ERROR(loss::span_qa({u, u}, {y, y}),
              "span_qa: keep is undefined: which positions are no padding? pad_logits = true takes all");
  CHECK_ERROR(loss::span_qa({u, u}, {ids({2}, {2, 0}), y, keep}), "span_qa: start position 2 of row 0 is not kept");
  CHECK_ERROR(loss::span_qa({u, u}, {y, ids({2}, {0, 3}), keep}),
              "span_qa: end position 3 of row 1 is outside [0, 3) and is not ignore_index (-100)");
  CHECK_ERROR(loss::kl_of("both"), "loss: kl is \"both\"; it must be one of symmetric, forward, reverse");
}
