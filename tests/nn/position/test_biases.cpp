// Biases of pairs: closed forms, initial values, bounds, options; and fourier, the trained input-site encoding.
#include "core/autograd/bounds.h"
#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/embedding.h"
#include "core/ops/reduce.h"
#include "core/ops/relative.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "nn/position/module.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"
#include "tests/test_level.h"
#include "train/optim/optimizer.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;
using test::positions;
using test::sum_of;
using Numbers = std::vector<double>;

namespace {

// Encodings with H heads, alone: their parameters, and the biases b_ij of a call in f64.
struct Biases : Module<Biases> {
  explicit Biases(const std::string& spec, i64 heads = 1, DType dtype = kF64)
      : default_(dtype), dtype_(dtype), heads_(heads), position(*this, sum_of(spec), {heads, heads, 1}) {}

  // [rows, H, Lq, Lk]
  Tensor operator()(const Positions& queries, const Positions& keys, bool causal = false) const {
    const i64 rows = std::max(queries.rows(), keys.rows());
    const Tensor q = zeros({rows, heads_, queries.length(), 1}, dtype_), k = zeros({rows, heads_, keys.length(), 1}, dtype_);
    ReferenceAttention call{.query = q, .key = k, .value = k, .query_positions = queries.tensor(), .key_positions = keys.tensor()};
    for (auto& [name, term] : position.prepare({.queries = queries, .keys = keys, .causal = causal}, q, k)) call.terms.push_back(term);
    return score_parts_reference(call).back().value;
  }
  // Of one pair and head.
  double at(i64 query, i64 key, i64 head = 0, bool causal = false) const {
    const NoGrad off;
    return (*this)(positions({query}), positions({key}), causal).at<double>({0, head, 0, 0});
  }
  Tensor parameter_of(const std::string& name) const {
    for (const NamedParameter& p : named_parameters())
      if (p.name == "position." + name) return p.tensor;
    fail("test", "no parameter {}", name);
  }

 private:
  test::DefaultF64 default_;
  DType dtype_;
  i64 heads_;

 public:
  PositionModule position;
};

std::string problems_of(const std::string& spec, const EncodingSizes& sizes = {8, 2, 4}) {
  std::vector<std::string> list;
  check_sizes(sum_of(spec), sizes, list);
  std::string text;
  for (const std::string& p : list) text += (text.empty() ? "" : "; ") + p;
  return text;
}

// The first distance of each t5 bucket, as Raffel's table of 32 buckets up to 128 has them.
Numbers first_distances(const Biases& t5, bool causal, i64 sign) {
  const auto bucket = [&](i64 delta) { return t5.at(delta < 0 ? -delta : 0, delta < 0 ? 0 : delta, 0, causal); };
  Numbers firsts;
  for (i64 n = 1; n <= 200; ++n)
    if (bucket(sign * n) != bucket(sign * (n - 1))) firsts.push_back(static_cast<double>(n));
  return firsts;
}

}  // namespace

TEST_CASE("biases: alibi falls by a slope per head, on both sides") {
  const Biases alibi("alibi", 8);
  for (i64 h = 0; h < 8; ++h) {
    CHECK(alibi.at(7, 3, h) == -4 * std::exp2(-static_cast<double>(h + 1)));
    CHECK(alibi.at(3, 7, h) == alibi.at(7, 3, h));
    CHECK(alibi.at(5, 5, h) == 0);
  }
  const Biases one_sided("alibi(symmetric=false)", 4);
  CHECK(one_sided.at(7, 3, 1) == -4 * std::exp2(-4));
  CHECK(one_sided.at(3, 7, 1) == 0);
  // The first heads get the slopes of a model with so many, the others nothing.
  const Biases two("alibi(heads=2)", 4);
  CHECK(two.at(1, 0, 0) == -std::exp2(-4));
  CHECK(two.at(1, 0, 1) == -std::exp2(-8));
  CHECK(two.at(1, 0, 2) == 0);
  CHECK(problems_of("alibi(heads=3)") == "alibi: heads=3 of a model with 2 heads; needs 0 to 2, or all");
  CHECK(problems_of("alibi(heads=0)") == "");
}

TEST_CASE("positions 8.4 no. 14: slopes of 1 to 16 heads, odd numbers among them") {
  // Exponents of the authors' code, ofirpress/attention_with_linear_biases: slope 2^-x.
  const std::vector<Numbers> exponents = {
      {8}, {4, 8}, {4, 8, 2}, {2, 4, 6, 8}, {2, 4, 6, 8, 1}, {2, 4, 6, 8, 1, 3}, {2, 4, 6, 8, 1, 3, 5}, {1, 2, 3, 4, 5, 6, 7, 8},
      {1, 2, 3, 4, 5, 6, 7, 8, 0.5}, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5}, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5},
      {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5}, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5},
      {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5},
      {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8}};
  for (size_t n = 1; n <= 16; ++n) {
    CAPTURE(n);
    const Biases alibi("alibi", static_cast<i64>(n));
    for (size_t h = 0; h < n; ++h)
      CHECK(alibi.at(1, 0, static_cast<i64>(h)) == doctest::Approx(-std::exp2(-exponents[n - 1][h])).epsilon(1e-14));
  }
}

TEST_CASE("positions 8.4 no. 15: no causal short cut in a bidirectional call: the largest bias is on the diagonal") {
  for (const std::string spec : {"alibi", "kerple-log", "kerple-power", "sandwich(dim=32)"}) {
    CAPTURE(spec);
    Biases biases(spec, 3);
    const NoGrad off;
    const Tensor b = biases(Positions::range(6), Positions::range(6));
    CHECK(largest_difference(b, b.mT().clone()) == 0);
    for (i64 h = 0; h < 3; ++h)
      for (i64 i = 0; i < 6; ++i)
        for (i64 j = 0; j < 6; ++j) {
          if (i == j) CHECK(b.at<double>({0, h, i, j}) == 0);
          else CHECK(b.at<double>({0, h, i, j}) < 0);
        }
  }
}

TEST_CASE("biases: kerple, closed forms and gradients") {
  const Biases log("kerple-log"), power("kerple-power");
  log.parameter_of("p").detach().fill_(1.5);
  log.parameter_of("a").detach().fill_(0.5);
  CHECK(log.at(4, 0) == doctest::Approx(-1.64791843300216454).epsilon(1e-15));
  CHECK(log.at(0, 4) == log.at(4, 0));
  power.parameter_of("p").detach().fill_(1.5);
  power.parameter_of("a").detach().fill_(0.5);
  CHECK(power.at(0, 4) == doctest::Approx(-4).epsilon(1e-15));
  CHECK(power.at(3, 3) == 0);
  // dp and da for distances 0, 1, 4: at 0 both are 0, whatever ln 0 is.
  const Tensor g = make<double>({1, 1, 1, 3}, {5, 1, 2});
  log(positions({0}), positions({0, 1, 4})).backward(g);
  CHECK(log.parameter_of("p").grad().item<double>() == doctest::Approx(-(std::log(1.5) + 2 * std::log(3.0))).epsilon(1e-14));
  CHECK(log.parameter_of("a").grad().item<double>() == doctest::Approx(-(1.5 / 1.5 + 2 * 1.5 * 4 / 3)).epsilon(1e-14));
  power(positions({0}), positions({0, 1, 4})).backward(g);
  CHECK(power.parameter_of("p").grad().item<double>() == doctest::Approx(-2 * 0.5 * 8 * std::log(4.0)).epsilon(1e-14));
  CHECK(power.parameter_of("a").grad().item<double>() == doctest::Approx(-(1 + 2 * 8)).epsilon(1e-14));
}

TEST_CASE("property 15: kerple leaves its bound when the gradient asks for it; a value outside is evaluated at the bound") {
  for (const char* name : {"kerple-log", "kerple-power"}) {
    const std::string spec = name;
    CAPTURE(spec);
    Biases biases(spec, 2);
    const Tensor p = biases.parameter_of("p"), a = biases.parameter_of("a");
    CHECK(bounds_of(p) == Bounds{0.01, spec == "kerple-power" ? 2 : test::kInf});
    CHECK(bounds_of(a) == Bounds{0.01, test::kInf});
    // Loaded values stay as they are; the forward takes the bound.
    p.detach().fill_(0.01);
    a.detach().fill_(0.01);
    const double at_bound = biases.at(9, 0);
    biases.load_state_dict({{"position.p", full({2}, 0.005)}, {"position.a", full({2}, -3.0)}});
    CHECK(biases.at(9, 0) == at_bound);
    CHECK(p.at<double>({0}) == 0.005);
    CHECK(at_bound < 0);

    // Larger biases are wanted: p and a stay at their bounds. Smaller ones: they leave them.
    train::SGD optimizer({p, a}, {.lr = 0.1});
    const auto step = [&](double sign) {
      optimizer.zero_grad();
      (biases(positions({0}), positions({3, 7})).sum() * sign).backward();
      CHECK(largest_difference(p.grad(), zeros({2})) > 1e-5);
      optimizer.step();
    };
    step(-1);
    for (const Tensor& t : {p, a})
      for (const double v : t.to_vector<double>()) CHECK(v == 0.01);
    step(1);
    for (const Tensor& t : {p, a})
      for (const double v : t.to_vector<double>()) CHECK(v > 0.0101);
    if (spec == "kerple-power") {
      p.detach().fill_(1.999);
      step(1);
      CHECK(p.to_vector<double>() == Numbers{2, 2});
    }
  }
}

TEST_CASE("biases: sandwich and fire, computed with 30 digits") {
  const Biases sandwich("sandwich", 8);
  const std::pair<i64, double> brackets[] = {{1, -1.44661850510051506}, {2, -5.20199263062909470}, {4, -13.7603259944639364},
                                             {8, -17.1339862192036589}, {16, -22.3406879203141861}, {64, -32.8718187022561808},
                                             {256, -42.4357042107863452}};
  for (const auto& [delta, bracket] : brackets)
    for (i64 h = 0; h < 8; ++h) CHECK(sandwich.at(0, delta, h) == doctest::Approx(bracket / static_cast<double>(h + 1)).epsilon(1e-13));
  CHECK(sandwich.at(70, 70) == 0);

  // A network that passes its input on shows the share of the distance.
  Biases fire("fire(hidden=1)");
  for (const char* name : {"mlp.0.weight", "mlp.2.weight"}) fire.parameter_of(name).detach().fill_(1);
  for (const char* name : {"mlp.0.bias", "mlp.2.bias"}) fire.parameter_of(name).detach().fill_(0);
  CHECK(fire.at(3, 0) == doctest::Approx(0.0663359609997010544).epsilon(1e-14));
  CHECK(fire.at(600, 0) == doctest::Approx(0.999999756742777866).epsilon(1e-14));
  CHECK(fire.at(600, 599) == doctest::Approx(0.0231848895803087277).epsilon(1e-14));
  CHECK(fire.at(512, 511) == fire.at(3, 2));
  CHECK(fire.at(513, 512) < fire.at(3, 2));
  // Keys to the right of an early query may be farther than the share 1.
  CHECK(fire.at(0, 5000) > 1);
  CHECK(fire.at(7, 7) == 0);
}

TEST_CASE("biases: fire, a tie belongs to the threshold, and each gradient has its closed form") {
  Biases fire("fire(hidden=1, init_threshold=4)");
  for (const char* name : {"mlp.0.weight", "mlp.2.weight"}) fire.parameter_of(name).detach().fill_(1);
  for (const char* name : {"mlp.0.bias", "mlp.2.bias"}) fire.parameter_of(name).detach().fill_(0);
  const Tensor c = fire.parameter_of("c"), threshold = fire.parameter_of("threshold");
  for (const double sign : {1.0, -1.0})
    for (const i64 query : {2, 4, 9}) {
      CAPTURE(query);
      c.detach().fill_(sign * 0.3);
      threshold.detach().fill_(sign);
      fire.zero_grad();
      fire(positions({query, 10}), positions({1})).sum().backward();
      const auto share = [&](double p) {
        const double n = std::max(4.0, p), y = std::log(0.3 * (p - 1) + 1), u = std::log(0.3 * n + 1) + 1e-6;
        const double dc = (p - 1) / ((1 + 0.3 * (p - 1)) * u) - y * n / (u * u * (1 + 0.3 * n));
        return std::pair(dc, 4.0 >= p ? -y * 0.3 / (u * u * (1 + 0.3 * n)) : 0.0);
      };
      const auto [dc, dt] = share(static_cast<double>(query));
      const auto [dc10, dt10] = share(10);
      CHECK(c.grad().item<double>() == doctest::Approx(sign * (dc + dc10)).epsilon(1e-12));
      CHECK(threshold.grad().item<double>() == doctest::Approx(sign * 4 * (dt + dt10)).epsilon(1e-12));
    }
}

TEST_CASE("biases: fire's two ways agree at the threshold, and rows of a batch are on their own") {
  Biases fire("fire(hidden=5, init_threshold=6)", 2);
  test::randomise(fire);
  const NoGrad off;
  // The second row reaches past the threshold, the first does not: pair by pair it must be the same.
  const Positions both(make<i64>({2, 4}, {0, 3, -1, 6, 2, 7, 11, 5}));
  const Tensor together = fire(both, both), alone = fire(positions({0, 3, -1, 6}), positions({0, 3, -1, 6}));
  CHECK(largest_difference(together.narrow(0, 0, 1), alone) < 1e-14);
  for (i64 h = 0; h < 2; ++h) {
    CHECK(together.at<double>({1, h, 1, 2}) == doctest::Approx(fire.at(7, 11, h)).epsilon(1e-14));
    CHECK(together.at<double>({0, h, 2, 1}) == 0);
    CHECK(together.at<double>({0, h, 1, 2}) == 0);
  }
}

TEST_CASE("biases: positions far apart need no table of all differences between them") {
  const i64 far = Positions::kLargest;
  for (const std::string spec : {"t5", "alibi", "kerple-log", "kerple-power", "sandwich", "fire(hidden=4)", "fire(hidden=4, init_threshold=1e10)"}) {
    CAPTURE(spec);
    Biases biases(spec, 2);
    test::randomise(biases);
    const Positions p(make<i64>({2, 4}, {0, far, 17, -1, 5, 6, 8, 3}));
    const Tensor b = biases(p, p);
    for (i64 i = 0; i < 4; ++i)
      for (i64 j = 0; j < 4; ++j) {
        const bool none = p.at(0, i) < 0 || p.at(0, j) < 0;
        const double expected = none ? 0 : biases.at(p.at(0, i), p.at(0, j), 1);
        CHECK(b.at<double>({0, 1, i, j}) == doctest::Approx(expected).epsilon(1e-13));
        CHECK(b.at<double>({1, 1, i, j}) == doctest::Approx(biases.at(p.at(1, i), p.at(1, j), 1)).epsilon(1e-13));
        CHECK(std::isfinite(b.at<double>({0, 0, i, j})));
      }
    if (biases.parameters().empty()) continue;
    b.sum().backward();
    for (const NamedParameter& q : biases.named_parameters())
      for (const double g : q.tensor.grad().to_vector<double>()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("biases: t5 has the buckets of its authors") {
  Biases t5("t5");
  const NoGrad off;
  const Tensor table = t5.parameter_of("bias");
  for (i64 i = 0; i < 32; ++i) table.detach().at<double>({i, 0}) = static_cast<double>(i);
  const Numbers open = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91};
  CHECK(first_distances(t5, false, -1) == open);
  CHECK(first_distances(t5, false, 1) == open);
  CHECK(t5.at(0, 1) == 17);
  CHECK(t5.at(0, 100000) == 31);
  CHECK(t5.at(100000, 0) == 15);
  CHECK(first_distances(t5, true, -1) ==
        Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113});
  CHECK(first_distances(t5, true, 1).empty());
  CHECK(t5.at(113, 0, 0, true) == 31);
  // The direction may be fixed.
  const Biases always("t5(bidirectional=true)"), never("t5(bidirectional=false)");
  always.parameter_of("bias").detach().copy_(table.detach());
  never.parameter_of("bias").detach().copy_(table.detach());
  CHECK(always.at(113, 0, 0, true) == 15);
  CHECK(never.at(113, 0, 0, false) == 31);
}

TEST_CASE("positions 8.4 no. 7: no bucket beyond the table, up to ten times max_distance; exact integer arithmetic") {
  for (const auto& table : {std::pair<i64, i64>{8, 16}, {8, 9}, {4, 64}, {6, 40}, {8, 50}, {10, 12}, {8, 27}, {9, 128}})
    for (const bool causal : {false, true}) {
      const i64 buckets = table.first, max_distance = table.second;
      // In the last of them the logarithm falls short of a whole number at 8, 16 and 64.
      const bool odd = buckets % 2 != 0;
      if (odd && !causal) continue;
      CAPTURE(buckets);
      CAPTURE(max_distance);
      CAPTURE(causal);
      Biases t5(fmt::format("t5(buckets={}, max_distance={}, bidirectional={})", buckets, max_distance, odd ? "false" : "auto"));
      const NoGrad off;
      for (i64 i = 0; i < buckets; ++i) t5.parameter_of("bias").detach().at<double>({i, 0}) = static_cast<double>(i);
      const i64 all = 10 * max_distance, n = causal ? buckets : buckets / 2, m = n / 2;
      const Tensor row = t5(positions({all}), Positions::range(2 * all + 1), causal);
      const auto power = [](i64 base, i64 exponent) {
        i64 x = 1;
        for (i64 e = 0; e < exponent; ++e) x *= base;
        return x;
      };
      for (i64 delta = -all; delta <= all; ++delta) {
        const i64 distance = causal ? std::max<i64>(-delta, 0) : std::abs(delta);
        i64 bucket = distance;
        // m + the largest k with (distance/m)^(n-m) >= (max_distance/m)^k, at most n - 1
        if (distance >= m)
          for (bucket = m; bucket + 1 < n; ++bucket) {
            const i64 k = bucket + 1 - m, at = std::min(distance, max_distance);
            if (power(at, n - m) * power(m, k) < power(max_distance, k) * power(m, n - m)) break;
          }
        if (!causal && delta > 0) bucket += n;
        CHECK(row.at<double>({0, 0, 0, delta + all}) == static_cast<double>(bucket));
      }
    }
}

TEST_CASE("positions 8.4 no. 8: distance 0 takes no logarithm of 0") {
  for (const std::string spec : {"t5", "t5(buckets=2, max_distance=2, bidirectional=false)", "t5(buckets=4, max_distance=4)"})
    for (const bool causal : {false, true}) {
      CAPTURE(spec);
      Biases t5(spec);
      {
        const NoGrad off;
        const Tensor table = t5.parameter_of("bias").detach();
        for (i64 i = 0; i < table.size(0); ++i) table.at<double>({i, 0}) = static_cast<double>(i + 1);
      }
      CHECK(t5.at(5, 5, 0, causal) == 1);
    }
  for (const std::string spec : {"kerple-log", "kerple-power", "fire", "sandwich", "alibi"}) {
    CAPTURE(spec);
    Biases biases(spec);
    const Tensor b = biases(positions({3}), positions({3}));
    CHECK(std::isfinite(b.item<double>()));
    if (biases.parameters().empty()) continue;
    b.backward();
    for (const NamedParameter& p : biases.named_parameters())
      for (const double g : p.tensor.grad().to_vector<double>()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("positions 8.4 no. 9: a t5 whose buckets do not fit its distances is refused, with the option and its value") {
  CHECK(problems_of("t5(buckets=32, max_distance=16)") == "t5: buckets=32 is more than max_distance=16: some would stay empty");
  CHECK(problems_of("t5(buckets=7)") ==
        "t5: buckets=7 must be even, half of them for each direction; or set bidirectional=false");
  CHECK(problems_of("t5(buckets=7, bidirectional=false)") == "");
  CHECK(problems_of("t5(buckets=2)") == "t5: buckets=2 leaves no bucket for small distances; needs at least 4");
  CHECK(problems_of("t5(buckets=2, bidirectional=false)") == "");
  CHECK(has(error_text([] { resolve_encodings("t5(buckets=1)", 1); }), "option buckets must be int 2..1048576, not int 1"));
  CHECK(has(error_text([] { test::Rig("t5(buckets=32, max_distance=16)"); }), "buckets=32 is more than max_distance=16"));
}

TEST_CASE("positions 8.4 no. 13: a bucket knows differences, and no length") {
  for (const bool causal : {false, true}) {
    Biases t5("t5(buckets=8, max_distance=20)", 2);
    test::randomise(t5);
    const NoGrad off;
    const Tensor large = t5(Positions::range(60), Positions::range(60), causal);
    for (const i64 length : {1, 5, 33}) {
      const Tensor small = t5(Positions::range(length), Positions::range(length), causal);
      CHECK(test::difference(small, large.narrow(2, 0, length).narrow(3, 0, length).clone()) == "");
    }
  }
}

TEST_CASE("biases and fourier: initial values, names, what decays, sizes") {
  const test::DefaultF64 dtype;
  manual_seed(3);
  const auto shapes = [](const std::string& spec) {
    std::string text;
    const Biases h(spec, 4);
    for (const NamedParameter& p : h.named_parameters())
      text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", p.name, p.tensor.shape(), p.no_decay ? " no_decay" : "");
    return text;
  };
  CHECK(shapes("alibi + sandwich") == "");
  CHECK(shapes("t5") == "position.bias [32, 4] no_decay");
  CHECK(shapes("kerple-log") == "position.p [4] no_decay; position.a [4] no_decay");
  CHECK(shapes("fire(hidden=3)") ==
        "position.mlp.0.weight [3, 1]; position.mlp.0.bias [3] no_decay; position.mlp.2.weight [4, 3]; position.mlp.2.bias [4] no_decay; "
        "position.c [] no_decay; position.threshold [] no_decay");
  CHECK(shapes("fourier(features=6, hidden=5)") ==
        "position.frequencies [3, 1]; position.mlp.0.weight [5, 6]; position.mlp.0.bias [5] no_decay; position.mlp.2.weight [4, 5]; "
        "position.mlp.2.bias [4] no_decay");
  CHECK(has(shapes("kerple-log + kerple-power"), "position.kerple-power.p [4]"));
  CHECK(has(shapes("fourier + fire"), "position.fire.mlp.2.bias [4]"));

  const auto spread = [](const Tensor& t) {
    double square = 0, low = test::kInf, high = -test::kInf;
    for (const double v : t.to_vector<double>()) {
      square += v * v / static_cast<double>(t.numel());
      low = std::min(low, v);
      high = std::max(high, v);
    }
    return std::array<double, 3>{std::sqrt(square), low, high};
  };
  CHECK(spread(Biases("t5(buckets=64)", 32).parameter_of("bias"))[0] == doctest::Approx(0.02).epsilon(0.1));
  for (const std::string spec : {"kerple-log", "kerple-power"}) {
    const Biases kerple(spec, 512);
    const auto p = spread(kerple.parameter_of("p")), a = spread(kerple.parameter_of("a"));
    CHECK(p[1] >= 0.01);
    CHECK(p[2] > 1.9);
    CHECK(p[2] <= 2);
    CHECK(a[1] >= 0.01);
    CHECK(a[2] > 0.9);
    CHECK(a[2] <= 1);
  }
  Biases fire("fire", 4);
  CHECK(fire.parameter_of("c").item<double>() == 0.1);
  CHECK(fire.parameter_of("threshold").item<double>() == 1);
  CHECK(spread(fire.parameter_of("mlp.2.weight"))[2] <= 1 / std::sqrt(32.0));
  CHECK(spread(fire.parameter_of("mlp.2.weight"))[0] == doctest::Approx(1 / std::sqrt(3 * 32.0)).epsilon(0.15));
  // Features of positions 1/γ apart look alike: the s.d. of the frequencies is 1/γ.
  CHECK(spread(Biases("fourier(features=2048, gamma=5)").parameter_of("frequencies"))[0] == doctest::Approx(0.2).epsilon(0.06));
  CHECK(problems_of("fourier(features=5)") == "fourier: features=5 must be even: sines and cosines come in pairs");
  CHECK(problems_of("fourier", {7, 1, 7}) == "fourier: features=7 must be even: sines and cosines come in pairs");
  CHECK(problems_of("sandwich(dim=7)") == "sandwich: dim=7 must be even: sines and cosines come in pairs");
  CHECK(problems_of("fourier + sandwich + fire + t5 + alibi + kerple-log") == "");
}

TEST_CASE("fourier: closed form, one row per distinct position, nothing for tokens without one") {
  Biases fourier("fourier(features=4, hidden=2)", 2);
  test::randomise(fourier);
  const auto get = [&](const char* name) { return fourier.parameter_of(name).to_vector<double>(); };
  const Numbers w = get("frequencies"), w0 = get("mlp.0.weight"), b0 = get("mlp.0.bias"), w2 = get("mlp.2.weight"), b2 = get("mlp.2.bias");
  const auto expected = [&](double p, size_t channel) {
    const double phi[4] = {std::cos(p * w[0]) / 2, std::cos(p * w[1]) / 2, std::sin(p * w[0]) / 2, std::sin(p * w[1]) / 2};
    double y = b2[channel];
    for (size_t h = 0; h < 2; ++h) {
      double a = b0[h];
      for (size_t t = 0; t < 4; ++t) a += w0[4 * h + t] * phi[t];
      y += w2[2 * channel + h] * 0.5 * a * (1 + std::erf(a / std::sqrt(2.0)));
    }
    return y;
  };
  const Positions p(make<i64>({2, 3}, {7, -1, 1000003, 0, 7, 7}));
  const Tensor y = fourier.position.add_to_input(zeros({2, 3, 2}), p);
  for (i64 b = 0; b < 2; ++b)
    for (i64 i = 0; i < 3; ++i)
      for (i64 e = 0; e < 2; ++e) {
        const double want = p.at(b, i) < 0 ? 0 : expected(static_cast<double>(p.at(b, i)), static_cast<size_t>(e));
        CHECK(y.at<double>({b, i, e}) == doctest::Approx(want).epsilon(1e-9));
      }
  std::vector<Tensor> inputs = {test::tokens(2, 3, 2).requires_grad_()};
  for (const Tensor& t : fourier.parameters()) inputs.push_back(t);
  const Positions small(make<i64>({2, 3}, {7, -1, 3, 0, 7, 7}));
  const GradcheckReport report =
      gradcheck([&](const std::vector<Tensor>& v) { return std::vector<Tensor>{fourier.position.add_to_input(v[0], small)}; }, inputs);
  CHECK_MESSAGE(report.passed, report.message);
}

TEST_CASE("tables: every row of a clipped table that is gathered gets its share of the gradient") {
  const test::DefaultF64 dtype;
  // C = 1, L = 3: each of the three rows serves three pairs.
  const Tensor table = randn({3, 2}).requires_grad_(), p = Positions::range(3).tensor();
  sum(embedding(pair_rows({-1, 1}, p, p), table)).backward();
  CHECK(table.grad().to_vector<double>() == Numbers{3, 3, 3, 3, 3, 3});
}

TEST_CASE("biases in f32 are those in f64, rounded, far out, too") {
  for (const char* name : {"t5", "alibi", "kerple-log", "kerple-power", "sandwich", "fire", "fire(init_threshold=10)"}) {
    const std::string spec = name;
    CAPTURE(spec);
    Biases single(spec, 3, kF32), exact(spec, 3);
    exact.position.load_state_dict(single.position.state_dict());
    const NoGrad off;
    for (const i64 offset : {0, 1000000}) {
      const Tensor a = single(Positions::range(40, offset), Positions::range(70)), b = exact(Positions::range(40, offset), Positions::range(70));
      CHECK(a.dtype() == kF32);
      const Numbers x = a.to_vector<double>(), y = b.to_vector<double>();
      for (size_t i = 0; i < x.size(); ++i) CHECK(std::abs(x[i] - y[i]) <= 2e-6 * std::abs(y[i]) + 1e-6);
    }
  }
}
