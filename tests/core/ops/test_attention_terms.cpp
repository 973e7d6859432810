// Families of score terms that the encodings of the library use in part only: values by hand, gradients, neutral pairs,
// what is refused.
#include <doctest/doctest.h>

#include <iterator>
#include <set>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/create.h"
#include "core/ops/reduce.h"
#include "core/ops/random_ops.h"
#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

using namespace waymark;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;

namespace {

// B = 2, H = 2, Lq = 3, Lk = 4, d = 3.
struct TermRig {
  TermRig() {
    for (Tensor* t : {&q, &k, &v}) *t = randn({2, 2, t == &q ? 3 : 4, 3}, kF64);
  }
  ReferenceAttention call(std::vector<ScoreTerm> terms) const {
    return {.query = q, .key = k, .value = v, .terms = std::move(terms), .query_positions = query_positions, .key_positions = key_positions,
            .content_scale = 0.7, .table_scale = 0.4};
  }
  // The summands of the terms beside the content, by name.
  Tensor part(const std::vector<ScoreTerm>& terms, const std::string& name) const {
    for (const ScorePart& p : score_parts_reference(call(terms)))
      if (p.name == name) return p.value;
    fail("test", "no part {}", name);
  }
  std::string refused(ScoreTerm term) const { return error_text([&] { (void)attention_reference(call({std::move(term)})); }); }

  Tensor q, k, v;
  Tensor query_positions = make<i64>({3}, {0, 2, -1}), key_positions = make<i64>({2, 4}, {0, 1, 2, 5, -1, 2, 0, 1});
};

void check_gradients(const std::function<std::vector<ScoreTerm>(const std::vector<Tensor>&)>& terms, std::vector<Tensor> inputs, bool second = true) {
  const TermRig rig;
  for (Tensor& t : inputs) t.requires_grad_();
  const TensorFunction f = [&](const std::vector<Tensor>& v) { return std::vector<Tensor>{attention_reference(rig.call(terms(v))).z}; };
  const GradcheckReport one = gradcheck(f, inputs);
  CHECK_MESSAGE(one.passed, one.message);
  if (!second) return;
  const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7});
  CHECK_MESSAGE(two.passed, two.message);
}

// f = w_h·(p_q − 2·p_k) + c, over two inputs.
Custom custom_of(const Tensor& w, const Tensor& c) {
  Custom custom;
  custom.inputs = {w, c};
  custom.scratch = 1;
  custom.forward = [](const TileRef& t, Custom::In in, std::span<double> scratch, std::span<double> value) {
    for (size_t j = 0; j < t.k_pos.size(); ++j)
      for (size_t i = 0; i < t.q_pos.size(); ++i) {
        scratch[0] = static_cast<double>(t.q_pos[i] - 2 * t.k_pos[j]);
        value[j * t.q_pos.size() + i] = in[0][static_cast<size_t>(t.head)] * scratch[0] + in[1][0];
      }
  };
  custom.backward = [](const TileRef& t, Custom::In, std::span<double>, std::span<const double> g, Custom::Out out) {
    for (size_t j = 0; j < t.k_pos.size(); ++j)
      for (size_t i = 0; i < t.q_pos.size(); ++i) {
        out[0][static_cast<size_t>(t.head)] += g[j * t.q_pos.size() + i] * static_cast<double>(t.q_pos[i] - 2 * t.k_pos[j]);
        out[1][0] += g[j * t.q_pos.size() + i];
      }
  };
  return custom;
}

}  // namespace

TEST_CASE("attention terms: values of each family, pair by pair") {
  const TermRig rig;
  const Tensor kappa = randn({2, 2, 4}, kF64), x = randn({1, 2, 3, 5}, kF64), y = randn({2, 1, 4, 5}, kF64), reset = randn({2, 2}, kF64);
  const Tensor left = make<i64>({1, 4}, {0, 4, 2, 2}), right = make<i64>({2, 4}, {1, 0, 1, 1, 0, 0, 1, 0}), second = randn({1, 1, 3, 2}, kF64);
  const Tensor table = randn({1, 2, 3, 6}, kF64), beta = randn({2, 3}, kF64), w = randn({2}, kF64), c = randn({1}, kF64);
  const auto bias = rig.part({{"content_bias", Stage::table, KeyBias{kappa}}}, "content_bias");
  const auto product = rig.part({{"p", Stage::table, RowProduct{.x = x, .y = y}}}, "p");
  const auto with_reset = rig.part({{"p", Stage::table, RowProduct{.x = x, .y = y, .reset = reset}}}, "p");
  const auto factors = rig.part({{"p", Stage::table, RowProduct{.x = x, .y = second, .left = left, .right = right}}}, "p");
  const auto by_position = rig.part({{"bias", Stage::bias, PairTable{table, false}}}, "bias");
  const auto distances = rig.part({{"bias", Stage::bias, Distance{beta, PairIndex{-1, 1}, reset}}}, "bias");
  const auto multiplier = rig.part({{"m", Stage::multiply, custom_of(w, c)}}, "m");
  const auto own = rig.part({{"bias", Stage::bias, custom_of(w, c)}}, "bias");
  const PairIndex classes{.query_class = make<i64>({1, 3}, {7, 3, 3}), .key_class = make<i64>({2, 4}, {3, 7, 7, 3, 0, 0, 3, 3})};
  const auto segments = rig.part({{"bias", Stage::bias, Distance{beta, classes}}}, "bias");
  std::set<i64> seen;
  for (const i64 p : rig.query_positions.to_vector<i64>())
    for (const i64 r : rig.key_positions.to_vector<i64>())
      if (p >= 0 && r >= 0) seen.insert(r - p);
  const PairIndex listed{.lo = *seen.begin(), .hi = *seen.rbegin(), .listed = {seen.begin(), seen.end()}};
  const Tensor of_listed = randn({1, static_cast<i64>(seen.size())}, kF64);
  const auto far = rig.part({{"bias", Stage::bias, Distance{of_listed, listed}}}, "bias");
  for (i64 b = 0; b < 2; ++b)
    for (i64 h = 0; h < 2; ++h)
      for (i64 i = 0; i < 3; ++i)
        for (i64 j = 0; j < 4; ++j) {
          const i64 p = rig.query_positions.at<i64>({i}), r = rig.key_positions.at<i64>({b, j});
          const bool none = p < 0 || r < 0;
          const double settled = p < 0 ? reset.at<double>({h, 1}) : reset.at<double>({h, 0});
          CHECK(bias.at<double>({b, h, i, j}) == doctest::Approx(0.4 * kappa.at<double>({b, h, j})));
          double dot = 0;
          for (i64 e = 0; e < 5; ++e) dot += x.at<double>({0, h, i, e}) * y.at<double>({b, 0, j, e});
          CHECK(product.at<double>({b, h, i, j}) == doctest::Approx(none ? 0 : 0.4 * dot));
          CHECK(with_reset.at<double>({b, h, i, j}) == doctest::Approx(0.4 * (none ? settled : dot)));
          const double picked = x.at<double>({0, h, i, left.at<i64>({0, j})}) * second.at<double>({0, 0, i, right.at<i64>({b, j})});
          CHECK(factors.at<double>({b, h, i, j}) == doctest::Approx(none ? 0 : 0.4 * picked));
          CHECK(by_position.at<double>({b, h, i, j}) == (none ? 0 : table.at<double>({0, h, p, r})));
          CHECK(distances.at<double>({b, h, i, j}) == (none ? settled : beta.at<double>({h, std::clamp<i64>(r - p, -1, 1) + 1})));
          const double f = w.at<double>({h}) * static_cast<double>(p - 2 * r) + c.at<double>({0});
          CHECK(multiplier.at<double>({b, h, i, j}) == doctest::Approx(none ? 1 : f));
          CHECK(own.at<double>({b, h, i, j}) == doctest::Approx(none ? 0 : f));
          // Classes count for tokens without a position, too.
          CHECK(segments.at<double>({b, h, i, j}) == beta.at<double>({h, classes.query_class.at<i64>({0, i}) != classes.key_class.at<i64>({b, j})}));
          const i64 place = none ? 0 : std::distance(seen.begin(), seen.find(r - p));
          CHECK(far.at<double>({b, h, i, j}) == (none ? 0 : of_listed.at<double>({0, place})));
        }
}

TEST_CASE("attention terms: gradients of each family") {
  check_gradients([](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"b", Stage::content, KeyBias{v[0]}}, {"c", Stage::table, KeyBias{v[1]}}}; },
                  {randn({2, 2, 4}, kF64), randn({1, 1, 4}, kF64)});
  check_gradients([](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"p", Stage::content, RowProduct{.x = v[0], .y = v[1], .reset = v[2]}}}; },
                  {randn({1, 2, 3, 2}, kF64), randn({2, 1, 4, 2}, kF64), randn({1, 2}, kF64)});
  const Tensor left = make<i64>({1, 4}, {0, 1, 2, 2}), right = make<i64>({2, 4}, {1, 0, 1, 1, 0, 0, 1, 0});
  check_gradients([&](const std::vector<Tensor>& v) {
    return std::vector<ScoreTerm>{{"p", Stage::content, RowProduct{.x = v[0], .y = v[1], .left = left, .right = right}}};
  }, {randn({2, 2, 3, 3}, kF64), randn({1, 1, 3, 2}, kF64)});
  check_gradients([](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"t", Stage::content, PairTable{v[0], false}}}; }, {randn({1, 2, 3, 6}, kF64)});
  check_gradients([](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"b", Stage::multiply, Distance{v[0], PairIndex{-1, 1}, v[1]}}}; },
                  {randn({2, 3}, kF64), randn({2, 2}, kF64)});
  check_gradients([](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"cope", Stage::gate, Prefix{v[0]}}}; }, {randn({3, 3}, kF64)});
  for (const Stage stage : {Stage::multiply, Stage::table, Stage::bias})
    check_gradients([&](const std::vector<Tensor>& v) { return std::vector<ScoreTerm>{{"f", stage, custom_of(v[0], v[1])}}; },
                    {randn({2}, kF64), randn({1}, kF64)}, false);
}

TEST_CASE("attention terms: what does not fit is refused by name") {
  const TermRig rig;
  const Tensor beta = zeros({2, 3}, kF64);
  CHECK(has(rig.refused({"b", Stage::bias, KeyBias{zeros({2, 2, 4}, kF64)}}), "the term b has a stage that its family does not have"));
  CHECK(has(rig.refused({"b", Stage::table, KeyBias{zeros({2, 2, 3}, kF64)}}), "the term b has a tensor of shape [2, 2, 3]; needs [1|B, 1|H, Lk]"));
  CHECK(has(rig.refused({"b", Stage::bias, Distance{beta, PairIndex{0, 3}}}), "the term b uses the rows 0 ... 3 of a table of 3"));
  CHECK(has(rig.refused({"b", Stage::bias, Distance{beta, PairIndex{-1, 1}, zeros({2, 3}, kF64)}}), "needs [1|H, 2]"));
  CHECK(has(rig.refused({"b", Stage::bias, Distance{beta, PairIndex{.lo = -9, .hi = 9, .listed = {-9, 8, 9}}}}),
            " of two positions is not among the 3 that the index lists"));
  CHECK(has(rig.refused({"b", Stage::bias, Distance{beta, PairIndex{.query_class = zeros({1, 3}, kI64)}}}), "needs key classes as i64 [1|2, 4], got an undefined tensor"));
  CHECK(has(rig.refused({"p", Stage::table, RowProduct{zeros({1, 2, 3, 5}, kF64), zeros({1, 2, 4, 6}, kF64)}}), "multiplies rows of width 5 and 6"));
  CHECK(has(rig.refused({"p", Stage::table, RowProduct{.x = zeros({1, 2, 3, 5}, kF64), .y = zeros({1, 2, 3, 5}, kF64), .left = zeros({1, 4}, kI64)}}),
            "has one of left and right"));
  CHECK(has(rig.refused({"p", Stage::table, RowProduct{.x = zeros({1, 2, 3, 5}, kF64), .y = zeros({1, 2, 3, 5}, kF64),
                                                       .left = full({1, 4}, 5, kI64), .right = zeros({1, 4}, kI64)}}),
            "reads the channel 5 of 5 (left)"));
  CHECK(has(rig.refused({"t", Stage::bias, PairTable{zeros({1, 2, 3, 3}, kF64)}}), "needs [1|B, 1|H, Lq, Lk]"));
  CHECK(has(rig.refused({"t", Stage::bias, PairTable{zeros({1, 2, 3, 3}, kF64), false}}), "position 5 is outside a table of 3 positions"));
  CHECK(has(rig.refused({"g", Stage::gate, Prefix{zeros({3, 2}, kF64)}}), "needs [max_pos, d]"));
  CHECK(has(rig.refused({"f", Stage::bias, Custom{}}), "the term f has no forward function"));
  CHECK(has(rig.refused({"b", Stage::table, KeyBias{zeros({2, 2, 4}, kF32)}}), "the term b is f32, the queries are f64"));
  CHECK(has(error_text([&] {
              (void)attention_reference(rig.call({{"one", Stage::gate, Prefix{zeros({3, 3}, kF64)}}, {"two", Stage::gate, Prefix{zeros({3, 3}, kF64)}}}));
            }),
            "two terms gate the scores; the second is two"));
  ReferenceAttention bare = rig.call({{"b", Stage::bias, Distance{beta, PairIndex{-1, 1}}}});
  bare.query_positions = Tensor();
  CHECK(has(error_text([&] { (void)attention_reference(bare); }), "the term b reads positions, and the call has none"));
  bare.terms = {{"k", Stage::table, KeyBias{zeros({1, 2, 4}, kF64)}}, {"g", Stage::gate, Prefix{zeros({3, 3}, kF64)}}};
  CHECK(attention_reference(bare).z.shape() == Shape{2, 2, 3, 3});
}
