// Encodings of a program: functions of a pair, registered; and the family of score terms below them.
#include "nn/position/pair_encoding.h"

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/convert.h"
#include "core/ops/custom_pairs.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/error_text.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;
using test::Rig;
using test::tokens;

namespace {

double far(const Pair& p) { return static_cast<double>(p.key - p.query); }

// One of each stage. bias: -w·(δ − o)², per head.
PairEncoding window_encoding() {
  return {.name = "test-window",
          .stage = Stage::bias,
          .parameters = {{"offset", {kHeads}, init::normal(0, 2)}, {"width", {kHeads}, init::constant(0.1), true}},
          .value = [](const Pair& p, PairParameters w) {
            const size_t h = static_cast<size_t>(p.head);
            return -w[1][h] * (far(p) - w[0][h]) * (far(p) - w[0][h]);
          },
          .derivative = [](const Pair& p, PairParameters w, double g, PairGradients d) {
            const size_t h = static_cast<size_t>(p.head);
            const double x = far(p) - w[0][h];
            d[0][h] += g * 2 * w[1][h] * x;
            d[1][h] -= g * x * x;
          },
          .facts = {.sees_direction = true, .shift_invariant = true}};
}
// table: a·sin(b·p_i)·p_j: absolute positions, no parameter per head.
PairEncoding wave_encoding() {
  return {.name = "test-wave",
          .stage = Stage::table,
          .parameters = {{"wave", {2}, init::constant(0.5)}},
          .value = [](const Pair& p, PairParameters w) {
            return w[0][0] * std::sin(w[0][1] * static_cast<double>(p.query)) * std::cos(0.3 * static_cast<double>(p.key));
          },
          .derivative = [](const Pair& p, PairParameters w, double g, PairGradients d) {
            const double i = static_cast<double>(p.query), key = std::cos(0.3 * static_cast<double>(p.key));
            d[0][0] += g * std::sin(w[0][1] * i) * key;
            d[0][1] += g * w[0][0] * std::cos(w[0][1] * i) * i * key;
          },
          .facts = {.sees_direction = true}};
}
// multiply: exp(-r·|δ|), 1 at distance 0.
PairEncoding fade_encoding() {
  return {.name = "test-fade",
          .stage = Stage::multiply,
          .parameters = {{"rate", {}, init::constant(0.2), true}},
          .value = [](const Pair& p, PairParameters w) { return std::exp(-w[0][0] * std::abs(far(p))); },
          .derivative = [](const Pair& p, PairParameters w, double g, PairGradients d) {
            d[0][0] -= g * std::abs(far(p)) * std::exp(-w[0][0] * std::abs(far(p)));
          },
          .facts = {.shift_invariant = true}};
}

void register_all() {
  for (const PairEncoding& e : {window_encoding(), wave_encoding(), fade_encoding()})
    if (!find_encoding(e.name)) register_encoding(e);
}

}  // namespace

TEST_CASE("encodings of a program: their scores, by the function itself") {
  register_all();
  const Rig rig("test-window");
  const AttentionInput in{.x = tokens(2, 5), .positions = test::positions({0, 3, 4, -1, 9})};
  const Tensor offset = rig->position.named_parameters()[0].tensor, width = rig->position.named_parameters()[1].tensor;
  CHECK(rig->position.named_parameters()[0].name == "offset");
  CHECK(rig->position.named_parameters()[1].no_decay);
  bool found = false;
  for (const ScorePart& p : rig->score_parts(in)) {
    if (p.name != "test-window") continue;
    found = true;
    for (i64 b = 0; b < 2; ++b)
      for (i64 h = 0; h < 2; ++h)
        for (i64 i = 0; i < 5; ++i)
          for (i64 j = 0; j < 5; ++j) {
            const i64 pi = in.positions.at(b, i), pj = in.positions.at(b, j);
            const double x = static_cast<double>(pj - pi) - offset.at<double>({h});
            const double expected = pi < 0 || pj < 0 ? 0 : -width.at<double>({h}) * x * x;
            CHECK(p.value.at<double>({b, h, i, j}) == doctest::Approx(expected).epsilon(1e-13));
          }
  }
  CHECK(found);
  // A factor: content is s·m·c, and 1 for pairs without a position.
  const Rig fade("test-fade"), none("none");
  fade->load_state_dict(none->state_dict(), false);
  const double rate = fade->position.named_parameters()[0].tensor.item<double>();
  const Tensor with = fade->score_parts(in)[0].value, without = none->score_parts(in)[0].value;
  for (i64 i = 0; i < 5; ++i)
    for (i64 j = 0; j < 5; ++j) {
      const i64 pi = in.positions.at(0, i), pj = in.positions.at(0, j);
      const double m = pi < 0 || pj < 0 ? 1 : std::exp(-rate * std::abs(static_cast<double>(pj - pi)));
      CHECK(with.at<double>({1, 1, i, j}) == doctest::Approx(m * without.at<double>({1, 1, i, j})).epsilon(1e-12));
    }
}

TEST_CASE("encodings of a program: gradients of first and second order, in sums") {
  register_all();
  for (const char* spec : {"test-window", "test-wave", "test-fade", "test-fade + test-window + test-wave + rope", "test-window + huang-m4(clip=2)"}) {
    CAPTURE(spec);
    const Rig rig(spec);
    std::vector<Tensor> inputs = {tokens(2, 4).requires_grad_()};
    for (const NamedParameter& p : rig->named_parameters())
      if (p.name.find("position.") == 0 || p.name == "q_proj.weight") inputs.push_back(p.tensor);
    const Positions rows(make<i64>({2, 4}, {0, 2, 3, -1, 5, 6, 1, 0}));
    for (const Positions& p : {test::positions({0, 2, 3, -1}), rows}) {
      const TensorFunction f = [&](const std::vector<Tensor>& v) { return std::vector<Tensor>{rig.y(v[0], p)}; };
      const GradcheckReport one = gradcheck(f, inputs);
      CHECK_MESSAGE(one.passed, one.message);
      const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7, .all_elements = 8});
      CHECK_MESSAGE(two.passed, two.message);
    }
  }
}

TEST_CASE("encodings of a program: a third derivative is refused by name") {
  register_all();
  const Rig rig("test-window");
  const Tensor w = rig->position.named_parameters()[1].tensor, x = tokens(1, 3);
  const GradMap first = grad(std::vector<Tensor>{sum(rig.y(x, Positions::range(3)))}, {w}, {.create_graph = true});
  const GradMap second = grad(std::vector<Tensor>{sum(first.begin()->grad)}, {w}, {.create_graph = true});
  CHECK(has(error_text([&] { sum(second.begin()->grad).backward(); }), "custom_pairs: custom score terms have first and second derivatives, but no third ones"));
}

TEST_CASE("encodings of a program: f64 inside an f32 attention; several threads give the same bits") {
  register_all();
  AttentionConfig c;
  c.embed_dim = 8;
  c.num_heads = 2;
  c.position = "test-window + test-fade";
  const MultiHeadAttention attention(c);
  const Tensor x = randn({3, 70, 8}), g = randn({3, 70, 8});
  const int before = num_threads();
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    std::vector<Tensor> parameters;
    for (const NamedParameter& p : attention->named_parameters())
      if (p.name.find("position.") == 0) parameters.push_back(p.tensor);
    const Tensor y = attention({.x = x, .positions = Positions::range(70)}).y;
    CHECK(y.dtype() == kF32);
    std::vector<Tensor> now = {y.detach()};
    for (const GradMap::Entry& e : grad(std::vector<Tensor>{y}, parameters, {.seeds = {g}})) {
      CHECK(e.grad.dtype() == kF32);
      now.push_back(e.grad);
    }
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(test::difference(first[i], now[i]) == "");
  }
  set_num_threads(before);
}

TEST_CASE("encodings of a program: judged, listed, checked for shift and direction as ours") {
  register_all();
  const auto dense = Rig("none")->options();
  for (const char* name : {"test-window", "test-wave", "test-fade"}) {
    CHECK(judge(test::sum_of(name)[0], dense).ruling == Ruling::accept);
    CHECK(facts_of(test::sum_of(name)[0]).needs.has(Capability::pair));
  }
  const JudgeMatrix m = judge_matrix();
  CHECK(std::find(m.encodings.begin(), m.encodings.end(), "test-window") != m.encodings.end());
  CHECK(invariant_parameters(test::sum_of("test-window"), dense) == std::vector<std::string>{"k_proj.bias"});
  CHECK(invariant_parameters(test::sum_of("test-fade"), dense).empty());
  const Tensor x = tokens(1, 6);
  for (const auto& [name, moves] : {std::pair("test-window", false), {"test-wave", true}, {"test-fade", false}}) {
    const Rig rig(name);
    CHECK((largest_difference(rig.y(x, Positions::range(6)), rig.y(x, Positions::range(6, 30))) > 1e-6) == moves);
  }
}

TEST_CASE("encodings of a program: check_encoding finds what is wrong, registering refuses what cannot be") {
  for (const PairEncoding& e : {window_encoding(), wave_encoding(), fade_encoding()}) CHECK(check_encoding(e).empty());
  PairEncoding e = window_encoding();
  e.derivative = [](const Pair& p, PairParameters w, double g, PairGradients d) {
    window_encoding().derivative(p, w, g, d);
    d[1][static_cast<size_t>(p.head)] += p.key > p.query ? g : 0;
  };
  REQUIRE(check_encoding(e).size() == 1);
  CHECK(has(check_encoding(e)[0], "the derivative by width[0] at query 3, key 4, head 0 is "));
  e = wave_encoding();
  e.facts.shift_invariant = true;
  REQUIRE(check_encoding(e).size() == 1);
  CHECK(check_encoding(e)[0] == "the facts say shift_invariant, but values change when both positions move by 17");
  e = window_encoding();
  e.facts.sees_direction = false;
  CHECK(check_encoding(e).size() == 1);
  e = fade_encoding();
  e.facts.sees_direction = true;
  CHECK(check_encoding(e).size() == 1);

  const auto refused = [](auto change) {
    PairEncoding x = window_encoding();
    x.name = "test-refused";
    change(x);
    return error_text([&] { register_encoding(x); });
  };
  register_all();
  CHECK(refused([](PairEncoding& x) { x.name = "test-window"; }) == "there is a position encoding called test-window already");
  CHECK(refused([](PairEncoding& x) { x.name = "rope"; }) == "there is a position encoding called rope already");
  CHECK(refused([](PairEncoding& x) { x.stage = Stage::value; }) == "the stage of the position encoding test-refused must be multiply, table or bias");
  CHECK(refused([](PairEncoding& x) { x.value = nullptr; }) == "the position encoding test-refused has no value function");
  CHECK(refused([](PairEncoding& x) { x.derivative = nullptr; }) == "the position encoding test-refused has parameters, but no derivative function");
  CHECK(refused([](PairEncoding& x) { x.parameters[1].name = "offset"; }) == "the position encoding test-refused has two parameters called offset");
  for (const char* name : {"", "-", "--x", "1abc", "9", "Test", "a b"}) {
    CAPTURE(name);
    CHECK(has(refused([&](PairEncoding& x) { x.name = name; }), "is no name for a position encoding: use lower-case letters, digits, - and _, and begin with a letter"));
  }
  CHECK(!find_encoding("test-refused"));
}

TEST_CASE("encodings of a program: -inf forbids a pair, and a row of nothing else is empty") {
  if (!find_encoding("test-wall"))
    register_encoding(PairEncoding{.name = "test-wall",
                                   .value = [](const Pair& p, PairParameters) {
                                     return p.query == 3 || p.key > p.query ? -std::numeric_limits<double>::infinity() : 0.0;
                                   },
                                   .facts = {.sees_direction = true}});
  const Rig wall("test-wall"), causal("none", true);
  wall->load_state_dict(causal->state_dict());
  Tensor x = tokens(1, 5).detach().requires_grad_();
  const AttentionInput in{.x = x, .positions = Positions::range(5), .want_weights = true};
  const AttentionOutput a = (*wall)(in), b = (*causal)(in);
  for (i64 i = 0; i < 5; ++i)
    for (i64 j = 0; j < 5; ++j)
      CHECK(a.weights.at<double>({0, 1, i, j}) == doctest::Approx(i == 3 ? 0 : b.weights.at<double>({0, 1, i, j})).epsilon(1e-13));
  sum(mul(a.y, a.y)).backward();
  for (const double v : x.grad().to_vector<double>()) CHECK(std::isfinite(v));
  for (const NamedParameter& p : wall->named_parameters())
    if (p.tensor.grad().defined())
      for (const double v : p.tensor.grad().to_vector<double>()) CHECK(std::isfinite(v));
}

TEST_CASE("custom pairs: inputs of any shape and dtype, empty calls, scratch, the batch row") {
  // value = u[batch]·w[q_slot], by slots.
  Custom c;
  c.inputs = {make<double>({2}, {2, 3}).requires_grad_(), make<float>({3, 1}, {1, 10, 100}).requires_grad_()};
  c.scratch = 2;
  c.forward = [](const TileRef& t, Custom::In in, std::span<double> scratch, std::span<double> value) {
    CHECK(scratch.size() == 2);
    size_t at = 0;
    for (size_t j = 0; j < t.k_slot.size(); ++j)
      for (const i32 i : t.q_slot) value[at++] = in[0][static_cast<size_t>(t.batch)] * in[1][static_cast<size_t>(i)];
  };
  c.backward = [](const TileRef& t, Custom::In in, std::span<double>, std::span<const double> g, Custom::Out d) {
    size_t at = 0;
    for (size_t j = 0; j < t.k_slot.size(); ++j)
      for (const i32 i : t.q_slot) {
        d[0][static_cast<size_t>(t.batch)] += g[at] * in[1][static_cast<size_t>(i)];
        d[1][static_cast<size_t>(i)] += g[at++] * in[0][static_cast<size_t>(t.batch)];
      }
  };
  const Tensor q = tensor(std::vector<i64>{0, 1, 2}, kI64), k = tensor(std::vector<i64>{4, -1}, kI64);
  const Tensor v = custom_pairs(c, 7, 2, 1, q, k);
  CHECK(v.dtype() == kF64);
  CHECK(v.to_vector<double>() == std::vector<double>{2, 7, 20, 7, 200, 7, 3, 7, 30, 7, 300, 7});
  sum(v).backward();
  CHECK(c.inputs[0].grad().to_vector<double>() == std::vector<double>{111, 111});
  CHECK(c.inputs[1].grad().dtype() == kF32);
  CHECK(c.inputs[1].grad().to_vector<float>() == std::vector<float>{5, 5, 5});
  c.batched = false;
  CHECK(custom_pairs(c, 0, 2, 1, q, k).shape() == Shape{1, 1, 3, 2});
  CHECK(custom_pairs(c, 0, 2, 1, q, zeros({0}, kI64)).shape() == Shape{1, 1, 3, 0});
  const ScoreTerm term{"mine", Stage::value, c};
  CHECK(error_text([&] { check_term(term, kF64, {.batch = 1, .heads = 1, .queries = 2, .keys = 3, .width = 2, .value_width = 2}); }) == "attention: the term mine has a stage that its family does not have");
}
