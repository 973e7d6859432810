// Numbered cases: faults that users of other engines reported, each as its smallest reproduction. More of them stand
// beside the ops they concern; every number occurs once at the start of a test's name.
#include <cmath>
#include <functional>
#include <thread>

#include "core/engine/functional.h"
#include "core/engine/gradcheck.h"
#include "core/inspect/anomaly.h"
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/embedding.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/moments.h"
#include "core/ops/norm.h"
#include "core/ops/order.h"
#include "core/ops/pointwise.h"
#include "core/ops/pooling.h"
#include "core/ops/random_ops.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/relative.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/ops/similarity.h"
#include "core/ops/softmax.h"
#include "core/random/generator.h"
#include "tests/ops/rows.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

// first, first + step, ... in f64.
Tensor ramp(const Shape& shape, double first, double step) {
  Tensor t = make_empty(shape, kF64);
  for (i64 i = 0; i < t.numel(); ++i) t.data<double>()[i] = first + step * static_cast<double>(i);
  return t;
}

// What anomaly mode reports of backward through f(); it must raise.
template <class F> inspect::AnomalyReport anomaly_of(F f) {
  const inspect::AnomalyMode mode;
  try {
    f().backward();
  } catch (const inspect::AnomalyError& e) {
    return e.report();
  }
  FAIL("nothing was found");
  return {};
}

using Two = std::function<Tensor(const Tensor&, const Tensor&)>;
struct NamedTwo {
  const char* name;
  Two f;
};
// Every differentiable op of two tensors that broadcast.
const std::vector<NamedTwo>& binary_ops() {
  static const std::vector<NamedTwo> list = {
      {"add", F2(add)},
      {"sub", F2(sub)},
      {"mul", F2(mul)},
      {"div", F2(div)},
      {"pow", F2(pow)},
      {"maximum", F2(maximum)},
      {"minimum", F2(minimum)},
      {"fmax", F2(fmax)},
      {"fmin", F2(fmin)},
      {"atan2", F2(atan2)},
      {"hypot", F2(hypot)},
      {"logaddexp", F2(logaddexp)},
      {"xlogy", F2(xlogy)},
      {"xlog1py", F2(xlog1py)},
      {"copysign", F2(copysign)},
      {"remainder", F2(remainder)},
      {"fmod", F2(fmod)},
      {"lerp", [](const Tensor& a, const Tensor& b) { return lerp(a, b, 0.3); }},
      {"where", [](const Tensor& a, const Tensor& b) { return where(tensor(true), a, b); }},
      {"addcmul", [](const Tensor& a, const Tensor& b) { return addcmul(a, b, b, 2); }},
      {"addcdiv", [](const Tensor& a, const Tensor& b) { return addcdiv(a, a, b, 2); }},
      {"clamp", [](const Tensor& a, const Tensor& b) { return clamp(a, b, Tensor()); }},
  };
  return list;
}

}  // namespace

TEST_CASE("C02_standard_deviation_of_equal_and_of_single_values") {
  row({1, 1}, [](const Tensor& x) { return std(x); }, {0}, {0, 0});
  row({1}, [](const Tensor& x) { return std(x); }, {kNan}, {0});
  row({{1}, {2}}, [](const Tensor& x) { return std(x, 1); }, {kNan, kNan}, {0, 0});
  row({{1}, {2}}, [](const Tensor& x) { return std(x, 1, 0); }, {0, 0}, {0, 0});
  row({{1, 1}, {1, 1}}, [](const Tensor& x) { return std(x, 0).sum(); }, {0}, {0, 0, 0, 0});
}

TEST_CASE("C04_logsumexp_of_infinities") {
  for (const bool log_sum : {true, false}) {
    const auto f = [log_sum](const Tensor& x) {
      return log_sum ? logsumexp(x, 0) : logaddexp(x.select(0, 0), x.select(0, 1));
    };
    row({-kInf, -kInf}, f, {-kInf}, {0, 0});
    row({kInf, 1}, f, {kInf}, {1, 0});
    CHECK_VALUES(second_of({-kInf, -kInf}, f), {0, 0});
  }
  // A row of nothing among others.
  row({{-kInf, -kInf}, {0, 0}}, [](const Tensor& x) { return logsumexp(x, 1); }, {-kInf, std::log(2.0)},
      {0, 0, 0.5, 0.5});
}

TEST_CASE("C05_where_does_not_hide_a_NaN_of_the_other_branch") {
  row({-1, 4}, [](const Tensor& x) { return where(x > 0, sqrt(x), x); }, {-1, 2}, {kNan, 0.25});
  // The double where guards the input, too.
  row({-1, 4}, [](const Tensor& x) { return where(x > 0, sqrt(where(x > 0, x, 1)), x); }, {-1, 2}, {1, 0.25});
  // Anomaly mode names the forward sqrt, its place, and the branch that was not taken; of the double where it says nothing.
  const Tensor x = leaf({-1, 4});
  const inspect::AnomalyReport r = anomaly_of([&] { return where(x > 0, sqrt(x), x).sum(); });
  CHECK(!r.backward);
  CHECK(r.op == "sqrt");
  CHECK(r.level == 2);
  CHECK(r.places.at(0).starts_with("[0]"));
  CHECK(r.hint == "branch not taken here; guard the input as well: where(c, sqrt(where(c, x, 1)), 0)");
  const inspect::AnomalyMode mode;
  where(x > 0, sqrt(where(x > 0, x, 1)), x).sum().backward();
  CHECK(mode.reports().empty());
}

TEST_CASE("C06_power_corners") {
  const auto power = [](const Tensor& a, const Tensor& b) { return pow(a, b); };
  row_of_two({0, 0, 0, -2, 2}, {0, 1, 2, 3, -kInf}, power, {1, 0, 0, -8, 0}, {0, 1, 0, 12, kNan}, {0, 0, 0, kNan, 0});
  // In layouts that broadcast: the base 0 against all exponents.
  const Tensor base = leaf(0), exponent = leaf({0, 1, 2});
  backward_of(pow(base, exponent));
  CHECK_VALUES(base.grad(), {1});
  CHECK_VALUES(exponent.grad(), {0, 0, 0});
  CHECK_VALUES(second_of({0}, [](const Tensor& x) { return pow(x, 2); }), {2});
  CHECK_VALUES(second_of({0}, [](const Tensor& x) { return pow(x, 3); }), {0});
}

TEST_CASE("C08_prod_with_zeros_at_second_order") {
  const Tensor h = hessian([](const Tensor& x) { return prod(x); }, f64({0, 0, 2}));
  CHECK_VALUES(h, {0, 2, 0, 2, 0, 0, 0, 0, 0});
  const Tensor one = hessian([](const Tensor& x) { return prod(x); }, f64({3, 0, 2}));
  CHECK_VALUES(one, {0, 2, 0, 2, 0, 3, 0, 3, 0});
}

TEST_CASE("C09_ties_and_kinks_do_not_depend_on_the_layout") {
  const std::vector<std::function<Tensor(const Tensor&)>> list = {
      F1(relu),
      F1(abs),
      F1(relu6),
      F1(hardtanh),
      F1(hardsigmoid),
      F1(hardswish),
      F1(leaky_relu),
      [](const Tensor& x) { return clamp(x, 0, 1); },
      [](const Tensor& x) { return maximum(x, zeros_like(x)); },
      [](const Tensor& x) { return minimum(x, zeros_like(x)); },
      [](const Tensor& x) { return fmax(x, zeros_like(x)); },
      [](const Tensor& x) { return max(x); },
      [](const Tensor& x) { return max(x, 1).values; },
      [](const Tensor& x) { return min(x, 1).values; },
      [](const Tensor& x) { return amax(x, 1); },
      [](const Tensor& x) { return amin(x, {0, 1}); },
      [](const Tensor& x) { return median(x); },
      [](const Tensor& x) { return median(x, 1).values; },
      [](const Tensor& x) { return topk(x, 2, 1).values; },
      [](const Tensor& x) { return kthvalue(x, 2, 1).values; },
      [](const Tensor& x) { return sort(x, 1).values; },
      [](const Tensor& x) { return cummax(x, 1).values; },
      [](const Tensor& x) { return cummin(x, 1).values; },
      [](const Tensor& x) { return max_pool1d(x, 2, 1); },
      [](const Tensor& x) { return norm(x, kInf, 1); },
  };
  const Tensor values = f64({{0, 1, 1, 0, -3}, {3, 3, kNan, 0, 6}, {-1, -1, 1, 1, 0}});
  for (size_t i = 0; i < list.size(); ++i) {
    CAPTURE(i);
    const Tensor plain = values.clone().requires_grad_();
    const Tensor y = list[i](plain);
    const Tensor w = ramp(y.shape(), 1, 0.5);
    (y * w).sum().backward();
    const Tensor turned = values.t().clone().requires_grad_();
    const Tensor stepped = zeros({3, 10}, kF64);
    stepped.slice(1, 0, kNoBound, 2).copy_(values);
    stepped.requires_grad_();
    const Tensor yt = list[i](turned.t()), ys = list[i](stepped.slice(1, 0, kNoBound, 2));
    CHECK(difference(y.detach(), yt.detach()) == "");
    CHECK(difference(y.detach(), ys.detach()) == "");
    (yt * w).sum().backward();
    (ys * w).sum().backward();
    CHECK(mismatch(turned.grad().t(), plain.grad().to_vector<double>(), 0) == "");
    CHECK(mismatch(stepped.grad().slice(1, 0, kNoBound, 2), plain.grad().to_vector<double>(), 0) == "");
  }
}

TEST_CASE("C18_a_column_plus_a_row") {
  row_of_two({{1}, {2}, {3}}, {{1, 2, 3, 4}}, [](const Tensor& a, const Tensor& b) { return (a + b).sum(); }, {54},
             {4, 4, 4}, {3, 3, 3, 3});
}

TEST_CASE("C19_reversed_views_and_odd_strides_equal_their_copies") {
  const Tensor a = ramp({5, 7}, -1.3, 0.11), b = ramp({7, 3}, 0.4, -0.07);
  const auto same = [](const Tensor& x, const Tensor& y) {
    CHECK(x.shape() == y.shape());
    CHECK(mismatch(x, y.to_vector<double>(), 1e-13) == "");
  };
  const Tensor back = a.slice(1, kNoBound, kNoBound, -1), up = a.slice(0, kNoBound, kNoBound, -1);
  same(matmul(back, b), matmul(back.clone().contiguous(), b));
  same(matmul(up, b), matmul(up.contiguous(), b));
  same(matmul(b.t().slice(1, kNoBound, kNoBound, -1), up.t()), matmul(b.t().flip({1}), up.t().contiguous()));
  // [1, n] whose stride means nothing, and [n, 1].
  const Tensor row = a.as_strided({1, 7}, {1000, 1}, 0), column = a.as_strided({5, 1}, {7, 999}, 0);
  same(matmul(row, b), matmul(row.contiguous(), b));
  same(matmul(column, row), matmul(column.contiguous(), row.contiguous()));
  same(matmul(row.t(), column.t()), matmul(row.t().contiguous(), column.t().contiguous()));
  // Elementwise ops, scans and one-axis reductions: the same bits.
  for (const Tensor& v : {back, up, a.t(), a.slice(1, 1, kNoBound, 3), a.select(1, 2).expand({4, 5})}) {
    const Tensor c = v.clone().contiguous();
    CHECK(difference(exp(v).contiguous(), exp(c)) == "");
    CHECK(difference((v * v + 1).contiguous(), c * c + 1) == "");
    CHECK(difference(v.sum(0).contiguous(), c.sum(0)) == "");
    CHECK(difference(v.cumsum(1).contiguous(), c.cumsum(1)) == "");
    CHECK(difference(softmax(v, 1).contiguous(), softmax(c, 1)) == "");
    CHECK(difference(sort(v, 1).values.contiguous(), sort(c, 1).values) == "");
    CHECK(equal(v, c));
  }
}

TEST_CASE("C26_a_position_in_a_loss_says_why_it_has_no_gradient") {
  const Tensor x = leaf({1, 3, 2});
  const Tensor best = argmax(x);
  CHECK(!best.requires_grad());
  const std::string text = error_text([&] { best.to(kF64).backward(); });
  CHECK(text.starts_with("backward: the root does not require grad: its history ends at argmax ("));
  CHECK(has(text, "cases.cpp:"));
  CHECK_ERROR(tensor({1, 2}, {.requires_grad = true}), "requires_grad_: only f32 and f64 tensors have gradients, this one is i64");
  // Integer and truth results never require grad, whatever they come from.
  for (const Tensor& t : {x > 0, x.to(kI64), isnan(x), sort(x).indices, nonzero(x), one_hot(tensor({0, 1})),
                          count_nonzero(x), floor_divide(x, 2), bucketize(x, f64({1, 2}))})
    CHECK(!t.requires_grad());
}

TEST_CASE("C27_embedding_of_an_id_outside_the_table") {
  const Tensor table = zeros({3, 2});
  CHECK_ERROR(embedding(tensor({5}), table), "embedding: index 5 at position [0] is outside the table of 3 rows");
  CHECK_ERROR(embedding(tensor({{0, 1}, {2, -1}}), table),
              "embedding: index -1 at position [1, 1] is outside the table of 3 rows");
}

TEST_CASE("C29_scatter_with_duplicates_last_wins_and_gets_the_gradient") {
  const Tensor at = tensor({0, 0, 1, 0});
  row_of_two({10, 20, 30}, {1, 2, 3, 4}, [&](const Tensor& x, const Tensor& s) { return scatter(x, 0, at, s); },
             {4, 3, 30}, {0, 0, 1}, {0, 0, 1, 1});
  row_of_two({10, 20, 30}, {1, 2, 3, 4}, [&](const Tensor& x, const Tensor& s) { return index_put(x, {at}, s); },
             {4, 3, 30}, {0, 0, 1}, {0, 0, 1, 1});
  row_of_two({10, 20, 30}, {1, 2, 3, 4}, [&](const Tensor& x, const Tensor& s) { return index_copy(x, 0, at, s); },
             {4, 3, 30}, {0, 0, 1}, {0, 0, 1, 1});
  row_of_two({10, 20, 30}, {1, 2, 3, 4},
             [&](const Tensor& x, const Tensor& s) { return index_put(x, {at}, s, true); }, {17, 23, 30}, {1, 1, 1},
             {1, 1, 1, 1});
}

TEST_CASE("C49_every_binary_op_undoes_broadcasting") {
  // As if the operands had been expanded by hand.
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},      {{}, {3}},        {{3}, {}},           {{1}, {3}},    {{3}, {1}},    {{2, 3}, {3}},
      {{3}, {2, 3}}, {{2, 1}, {1, 3}}, {{2, 1, 3}, {4, 1}}, {{1, 1}, {3}}, {{0, 3}, {3}}, {{4, 0}, {4, 1}},
  };
  for (const auto& pair : shapes)
    for (const NamedTwo& op : binary_ops()) {
      INFO(op.name << " " << to_string(pair.first) << " " << to_string(pair.second));
      const Shape both = broadcast_shapes("test", pair.first, pair.second);
      const Tensor x = ramp(pair.first, 1.13, 0.3).requires_grad_(), y = ramp(pair.second, 0.71, 0.31).requires_grad_();
      const Tensor wide_x = x.detach().expand(both).clone().requires_grad_();
      const Tensor wide_y = y.detach().expand(both).clone().requires_grad_();
      const Tensor w = ramp(both, -0.4, 0.3);
      sum(op.f(x, y) * w).backward();
      sum(op.f(wide_x, wide_y) * w).backward();
      const auto gradient = [](const Tensor& t) { return t.grad().defined() ? t.grad() : zeros_like(t); };
      CHECK(x.grad().defined());
      CHECK(gradient(x).shape() == pair.first);
      CHECK(gradient(y).shape() == pair.second);
      CHECK(mismatch(gradient(x), sum_to_size(gradient(wide_x), pair.first).to_vector<double>(), 1e-12) == "");
      CHECK(mismatch(gradient(y), sum_to_size(gradient(wide_y), pair.second).to_vector<double>(), 1e-12) == "");
    }
}

TEST_CASE("C50_the_gradient_of_a_broadcast_scalar_is_a_sum") {
  const Tensor a = leaf({1, 2, 3, 4, 5}), s = leaf(10);
  backward_of(a + s);
  CHECK_VALUES(s.grad(), {5});
  CHECK(s.grad().shape() == Shape{});
  CHECK_VALUES(a.grad(), {1, 1, 1, 1, 1});
}

TEST_CASE("C53_ties_of_a_reduction_share_elementwise_ties_get_halves") {
  row({2, 2, 2, 1}, [](const Tensor& x) { return max(x); }, {2}, {1. / 3, 1. / 3, 1. / 3, 0});
  row({2, 2, 2, 1}, [](const Tensor& x) { return amax(x, 0); }, {2}, {1. / 3, 1. / 3, 1. / 3, 0});
  row_of_two({2, 1}, {2, 3}, F2(maximum), {2, 3}, {0.5, 0}, {0.5, 1});
}

TEST_CASE("C56_deep_and_wide_graphs_need_no_deep_stack") {
  // In a thread, whose stack is small: a chain of views, of closures' captures, and a node of 20,000 inputs.
  std::string problem;
  std::thread([&] {
    try {
      const i64 nodes = Node::live();
      {
        const Tensor x = leaf({1, 2});
        Tensor y = x;
        for (int i = 0; i < 20000; ++i) y = (i % 2 ? y.view({2, 1}) : y.view({2})) * 1.0;
        Tensor wide = x * 1;
        std::vector<Tensor> many(20000, wide);
        (y.sum() + stack(many).sum()).backward();
        problem = mismatch(x.grad(), {20001, 20001});
      }
      if (Node::live() != nodes) problem += " nodes leak";
    } catch (const std::exception& e) {
      problem = e.what();
    }
  }).join();
  CHECK(problem == "");
}

TEST_CASE("C57_one_tensor_as_both_operands") {
  for (const NamedTwo& op : binary_ops())
    for (const bool through_view : {false, true}) {
      INFO(op.name);
      const Tensor x = leaf({0.53, 2.1}), a = leaf({0.53, 2.1}), b = leaf({0.53, 2.1});
      if (std::string(op.name) == "addcdiv" && !through_view) continue;
      backward_of(op.f(x, through_view ? x.view({2}) : x));
      backward_of(op.f(a, b));
      const Tensor db = b.grad().defined() ? b.grad() : zeros_like(b);
      CHECK(mismatch(x.grad(), (a.grad() + db).to_vector<double>(), 1e-12) == "");
    }
}

TEST_CASE("C59_the_generator_can_be_seeded") {
  const RandomScope scope(42);
  const Tensor first = randn({8}), next = randn({8});
  CHECK(!equal(first, next));
  const RandomScope again(42);
  CHECK(equal(randn({8}), first));
  CHECK(equal(randn({8}), next));
  const RandomScope other(43);
  CHECK(!equal(randn({8}), first));
}

TEST_CASE("C60_a_draw_is_a_value") {
  const Tensor x = rand({1000});
  CHECK(x.to_vector<float>() == x.to_vector<float>());
  CHECK(equal(x + 0, x));
  const Tensor y = x.requires_grad_() * 1;
  CHECK(equal(y, x));
}

TEST_CASE("C69_the_gradient_of_a_relative_table_counts_pairs") {
  // 3 rows, clip 1, length 3: each row stands for 3 of the 9 pairs.
  const Tensor at = arange(3), rows = clamp(at.unsqueeze(0) - at.unsqueeze(1), -1, 1) + 1;
  const Tensor table = ramp({3, 2}, 0.5, 0.25).requires_grad_();
  backward_of(embedding(rows, table));
  CHECK_VALUES(table.grad(), {3, 3, 3, 3, 3, 3});
  const Tensor other = table.detach().clone().requires_grad_();
  backward_of(pair_gather(matmul(ones({3, 2}, kF64), other.t()), rows, PairSide::query));
  CHECK_VALUES(other.grad(), {3, 3, 3, 3, 3, 3});
}

TEST_CASE("C70_a_linear_attention_without_weight_divides_by_0") {
  // Features of query 0 are 0 for all keys.
  const Tensor q = leaf({{0, 0}, {1, 2}}), k = f64({{1, 0}, {0, 1}}), v = f64({{3}, {5}});
  const auto mixed = [&](double eps) {
    const Tensor weights = matmul(q, k.t());
    return matmul(weights, v) / (weights.sum(1, true) + eps);
  };
  CHECK_VALUES(mixed(0), {kNan, 13. / 3});
  CHECK_VALUES(mixed(1e-9), {0, 13. / 3});
  backward_of(mixed(1e-9));
  for (const double g : q.grad().to_vector<double>()) CHECK(std::isfinite(g));
  // Anomaly mode names the division and the row, whether the denominator is a bare sum or has an eps of 0.
  for (const bool bare : {true, false}) {
    const inspect::AnomalyReport r = anomaly_of([&] {
      const Tensor weights = matmul(q, k.t());
      return bare ? (matmul(weights, v) / weights.sum(1, true)).sum() : mixed(0).sum();
    });
    CAPTURE(bare);
    CHECK(!r.backward);
    CHECK(r.op == "div");
    CHECK(r.places.size() == 1);
    CHECK(r.places.at(0).starts_with("[0, 0]"));
    CHECK(r.hint == "denominator 0 at [0, 0]: the sum that it comes from has no positive term there; add eps");
  }
}

TEST_CASE("C73_masked_places_get_exactly_0") {
  const Tensor m = tensor({true, false});
  row({3, 1}, [&](const Tensor& x) { return exp(masked_fill(x, m, -kInf)); }, {0, std::exp(1.0)}, {0, std::exp(1.0)});
  row({3, 1}, [&](const Tensor& x) { return softmax(masked_fill(x, m, -kInf), 0); }, {0, 1}, {0, 0});
  // Multiplication by an infinite mask is no masking.
  CHECK_VALUES(f64({1, 0}) * -kInf, {-kInf, kNan});
}

TEST_CASE("C74_cross_entropy_of_an_impossible_target_and_p_log_p_at_0") {
  const Tensor second = tensor(1);
  row({0, -kInf}, [&](const Tensor& x) { return cross_entropy(x, second); }, {kInf}, {1, -1});
  row({0}, [](const Tensor& p) { return p * log(p); }, {kNan}, {kNan});
  const Tensor q = f64({0, 1});
  row({0.5, 0.5}, [&](const Tensor& p) { return xlogy(q, p); }, {0, std::log(0.5)}, {0, 2});
}

}  // namespace waymark::test
