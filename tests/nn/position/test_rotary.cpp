// rope and xpos: scores by their formula, layouts, options, far positions, limits, tokens without a position.
#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::largest_difference;
using test::make;
using test::Rig;
using test::tokens;

namespace {

struct Map : Module<Map> {
  Map(const std::string& spec, i64 head_dim) : position(*this, test::sum_of(spec), {2 * head_dim, 2, head_dim}) {}
  std::pair<Tensor, Tensor> operator()(const Tensor& q, const Tensor& k, const EncodingCall& call) const {
    return position.map_query_key(q, k, call);
  }
  std::pair<Tensor, Tensor> operator()(const Tensor& q, const Tensor& k, const Positions& p) const {
    return position.map_query_key(q, k, {.queries = p, .keys = p, .causal = true});
  }
  PositionModule position;
};
Tensor scores(const std::pair<Tensor, Tensor>& qk) { return matmul(qk.first, qk.second.mT()); }
Tensor random_heads(i64 batch, i64 length, i64 d) { return randn({batch, 2, length, d}, {.dtype = kF64, .stream = "test.heads"}); }

// Σ_t ζ_t^((p_i−p_j)/B)·[(q_a k_a + q_b k_b) cos(δω_t) + (q_b k_a − q_a k_b) sin(δω_t)], δ = p_j − p_i: the score in closed
// form, which depends on the difference alone. B = 0: without ζ.
double closed_form(const Tensor& q, const Tensor& k, i64 i, i64 j, i64 delta, bool halves, double base, double scale_base) {
  const i64 d = q.size(-1);
  double s = 0;
  for (i64 t = 0; t < d / 2; ++t) {
    const i64 a = halves ? t : 2 * t, b = halves ? t + d / 2 : 2 * t + 1;
    const double qa = q.at<double>({0, 0, i, a}), qb = q.at<double>({0, 0, i, b}), ka = k.at<double>({0, 0, j, a}),
                 kb = k.at<double>({0, 0, j, b});
    const double width = static_cast<double>(d), pair = static_cast<double>(t), far = static_cast<double>(delta);
    const double angle = far * std::pow(base, -2 * pair / width), zeta = (2 * pair + 0.4 * width) / (1.4 * width);
    s += (scale_base > 0 ? std::pow(zeta, -far / scale_base) : 1) *
         ((qa * ka + qb * kb) * std::cos(angle) + (qb * ka - qa * kb) * std::sin(angle));
  }
  return s;
}

}  // namespace

TEST_CASE("rope and xpos: the score in closed form") {
  const test::DefaultF64 dtype;
  const std::vector<i64> p = {0, 3, 4, 11, 12};
  const Tensor q = random_heads(1, 5, 6), k = random_heads(1, 5, 6);
  for (const bool halves : {false, true})
    for (const double scale_base : {0.0, 8.0}) {
      const std::string layout = halves ? "layout=halves" : "layout=interleaved";
      const Map map(scale_base > 0 ? "xpos(scale_base=8, base=50, " + layout + ")" : "rope(base=50, " + layout + ")", 6);
      const Tensor e = scores(map(q, k, test::positions(p)));
      for (i64 i = 0; i < 5; ++i)
        for (i64 j = 0; j < 5; ++j)
          CHECK(e.at<double>({0, 0, i, j}) ==
                doctest::Approx(closed_form(q, k, i, j, p[static_cast<size_t>(j)] - p[static_cast<size_t>(i)], halves, 50, scale_base)).epsilon(1e-10));
    }
}

TEST_CASE("rope: ntk divides the lowest frequency and leaves the highest; fraction leaves channels as they are") {
  const test::DefaultF64 dtype;
  // The turned unit vector of a pair shows its angle.
  const auto angle = [](const std::string& spec, i64 pair, i64 p) {
    const Map map(spec, 64);
    Tensor x = zeros({1, 2, 1, 64});
    x.at<double>({0, 0, 0, 2 * pair}) = 1;
    const Tensor y = map(x, x, test::positions({p})).first;
    return std::atan2(y.at<double>({0, 0, 0, 2 * pair + 1}), y.at<double>({0, 0, 0, 2 * pair}));
  };
  CHECK(angle("rope(ntk=4)", 0, 1) == doctest::Approx(1).epsilon(1e-12));
  CHECK(angle("rope(ntk=4)", 31, 400) == doctest::Approx(angle("rope", 31, 100)).epsilon(1e-10));
  CHECK(angle("rope(ntk=4)", 1, 1) == doctest::Approx(std::pow(41829.366, -2.0 / 64)).epsilon(1e-8));
  CHECK(angle("rope(interpolation=4)", 5, 4) == doctest::Approx(angle("rope", 5, 1)).epsilon(1e-12));
  CHECK(angle("rope(base=100)", 16, 1) == doctest::Approx(0.1).epsilon(1e-12));
  // A quarter of 8 channels: ω has one frequency, 1.
  const Map part("rope(fraction=0.25)", 8);
  const Tensor x = random_heads(1, 3, 8), y = part(x, x, Positions::range(3, 5)).first;
  CHECK(test::difference(y.narrow(3, 2, 6), x.narrow(3, 2, 6)) == "");
  CHECK(largest_difference(y.narrow(3, 0, 2), x.narrow(3, 0, 2)) > 0.1);
}

TEST_CASE("positions 8.4 no. 18: rope reads the position of a token, also behind a cache") {
  const Rig rig("rope", true);
  const Tensor q = random_heads(2, 9, 4), k = random_heads(2, 9, 4), v = random_heads(2, 9, 4);
  const Tensor full = rig->core(q, k, v, {.positions = Positions::range(9)}).z;
  // Fed in chunks of 1, 3 and 5, and token by token: the keys are those so far.
  for (const std::vector<i64>& chunks : {std::vector<i64>{1, 3, 5}, std::vector<i64>(9, 1)}) {
    i64 at = 0;
    for (const i64 n : chunks) {
      const i64 seen = at + n;
      const Tensor z = rig->core(q.narrow(2, at, n), k.narrow(2, 0, seen), v.narrow(2, 0, seen),
                                 {.context = k, .positions = Positions::range(n, at), .context_positions = Positions::range(seen)}).z;
      CHECK(largest_difference(z, full.narrow(2, at, n)) < 1e-12);
      at = seen;
    }
  }
}

TEST_CASE("positions 8.4 no. 19: halves is interleaved with permuted channels, and not the same without") {
  const test::DefaultF64 dtype;
  const auto permuted = [](const Tensor& x) {  // 0 2 4 1 3 5
    std::vector<Tensor> channels;
    for (const i64 c : {0, 2, 4, 1, 3, 5}) channels.push_back(x.narrow(3, c, 1));
    return cat(channels, 3);
  };
  const Tensor q = random_heads(2, 5, 6), k = random_heads(2, 5, 6);
  for (const std::string name : {"rope", "xpos"}) {
    const Map interleaved(name, 6), halves(name + "(layout=halves)", 6);
    const Positions p = Positions::range(5, 3);
    const auto a = interleaved(q, k, p), b = halves(permuted(q), permuted(k), p);
    CHECK(test::difference(permuted(a.first), b.first) == "");
    CHECK(test::difference(permuted(a.second), b.second) == "");
    CHECK(largest_difference(scores(a), scores(b)) < 1e-12);
    CHECK(largest_difference(scores(a), scores(halves(q, k, p))) > 0.01);
  }
}

TEST_CASE("positions 8.4 no. 20: rope turns queries and keys by their own positions, and never values") {
  const Rig rig("rope");
  const Tensor q = random_heads(1, 6, 4), k = random_heads(1, 6, 4), v = random_heads(1, 6, 4);
  const AttentionInput in{.positions = Positions::range(6, 40)};
  const auto out = rig->core(q, k, v, in);
  // The mixed values are the weights times the values as they came.
  CHECK(largest_difference(out.z, matmul(out.weights, v)) < 1e-13);
  // The weights are the softmax of scores that depend on p_j - p_i: a query is not off by a window.
  for (i64 i = 0; i < 6; ++i) {
    double total = 0;
    for (i64 j = 0; j < 6; ++j) total += std::exp(closed_form(q, k, i, j, j - i, false, 10000, 0) / 2);
    for (i64 j = 0; j < 6; ++j)
      CHECK(out.weights.at<double>({0, 0, i, j}) == doctest::Approx(std::exp(closed_form(q, k, i, j, j - i, false, 10000, 0) / 2) / total).epsilon(1e-10));
  }
}

TEST_CASE("positions 8.4 no. 21: angles are formed in f64, also for f32 tokens at far positions") {
  const test::DefaultF64 dtype;
  const Tensor q = random_heads(1, 3, 8), k = random_heads(1, 3, 8), q32 = to(q, kF32), k32 = to(k, kF32);
  for (const char* spec : {"rope", "rope(layout=halves, interpolation=3)", "xpos(scale_base=100000)"}) {
    CAPTURE(spec);
    const Map map(spec, 8);
    const Positions far = test::positions({1000003, 1000010, 1015962});
    const auto narrow = map(q32, k32, far), wide = map(to(q32, kF64), to(k32, kF64), far);
    CHECK(narrow.first.dtype() == kF32);
    CHECK(largest_difference(to(narrow.first, kF64), wide.first) < 2e-6);
    CHECK(largest_difference(to(narrow.second, kF64), wide.second) < 2e-6);
    // The scores are those near 0.
    const Tensor near = scores(map(q32, k32, test::positions({0, 7, 15959})));
    CHECK(largest_difference(to(scores(narrow), kF64), to(near, kF64)) < 1e-5);
  }
}

TEST_CASE("xpos: the centre is of the kept keys of a row, and cancels") {
  const test::DefaultF64 dtype;
  const Map map("xpos(scale_base=4)", 4);
  const Tensor x = full({2, 2, 3, 4}, 1.0);
  // Rows 0 ... 2 and 10 ... 12, the last of row 1 padded: centres 1 and 10.5.
  const Positions p(make<i64>({2, 3}, {0, 1, 2, 10, 11, 12}));
  const Tensor keep = make<bool>({2, 3}, {true, true, true, true, true, false});
  const auto [q, k] = map(x, x, {.queries = p, .keys = p, .causal = true, .query_keep = keep, .key_keep = keep});
  const auto length = [](const Tensor& t, i64 b, i64 i) { return std::hypot(t.at<double>({b, 0, i, 0}), t.at<double>({b, 0, i, 1})) / std::sqrt(2.0); };
  const double zeta = 0.4 / 1.4;
  CHECK(length(q, 0, 1) == doctest::Approx(1).epsilon(1e-12));
  CHECK(length(q, 0, 2) == doctest::Approx(std::pow(zeta, 1 / 4.0)).epsilon(1e-12));
  CHECK(length(k, 0, 2) == doctest::Approx(std::pow(zeta, -1 / 4.0)).epsilon(1e-12));
  CHECK(length(q, 1, 0) == doctest::Approx(std::pow(zeta, -0.5 / 4)).epsilon(1e-12));
  CHECK(test::difference(q.select(0, 1).select(1, 2), x.select(0, 1).select(1, 2)) == "");  // padded: as it was
  // Tokens without a position stay as they are.
  const auto none = map(x, x, test::positions({-1, 5, 9}));
  CHECK(test::difference(none.first.select(2, 0), x.select(2, 0)) == "");
  CHECK(test::difference(none.second.select(2, 0), x.select(2, 0)) == "");
  CHECK(length(none.first, 0, 1) == doctest::Approx(std::pow(zeta, -2 / 4.0)).epsilon(1e-12));
  // All without one.
  CHECK(test::difference(map(x, x, test::positions({-1, -1, -1})).first, x) == "");
  // Far away as near 0: the centre moves along.
  const Tensor r = random_heads(1, 3, 4);
  CHECK(largest_difference(scores(map(r, r, Positions::range(3))), scores(map(r, r, Positions::range(3, 1000000)))) < 1e-9);
}

TEST_CASE("xpos: limits, and what does not fit, are named") {
  const test::DefaultF64 dtype;
  const Tensor x = random_heads(1, 2, 4), x32 = to(x, kF32);
  const Map map("xpos", 4);
  (void)map(x32, x32, test::positions({0, 65390}));
  CHECK(error_text([&] { (void)map(x32, x32, test::positions({0, 65392})); }) ==
        "xpos: position 0 at [0, 0] is 32696 away from the centre 32696 of the keys; with scale_base=512 the factors fit f32 up to "
        "a distance of 32695; raise scale_base");
  (void)map(x, x, test::positions({0, 65392}));
  CHECK(test::has(error_text([&] { (void)map(x, x, test::positions({0, 600000})); }), "the factors fit f64 up to a distance of 286"));
  (void)Map("xpos(scale_base=8192)", 4)(x32, x32, test::positions({0, 65392}));
  // A padded token may stand anywhere.
  const Tensor keep = make<bool>({1, 2}, {true, false});
  const Positions far = test::positions({0, Positions::kLargest});
  const auto padded = map(x32, x32, {.queries = far, .keys = far, .causal = true, .query_keep = keep, .key_keep = keep});
  CHECK(test::difference(padded.first.select(2, 1), x32.select(2, 1)) == "");
  std::vector<std::string> problems;
  check_sizes(test::sum_of("xpos"), {6, 2, 3}, problems);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0] == "xpos: needs an even head width of at least 2, not 3");
  CHECK(test::has(error_text([] { Rig("xpos"); }), "xpos cannot run on dense: it needs a causal call; set causal"));
  CHECK(test::has(error_text([] { Rig("rope(apply=features)"); }), "apply=features acts behind the feature map of a linear attention"));
  CHECK(test::has(error_text([] { resolve_encodings("rope + xpos", 1); }), "only one of them may map queries and keys"));
}

TEST_CASE("xpos: gradients through the attention") {
  for (const char* spec : {"xpos(scale_base=3)", "xpos(scale_base=5, layout=halves, base=30) + huang-m4(clip=1)"}) {
    const Rig rig(spec, true);
    std::vector<Tensor> inputs = {tokens(2, 5).requires_grad_()};
    for (const NamedParameter& p : rig->named_parameters()) inputs.push_back(p.tensor);
    const Tensor keep = make<bool>({2, 5}, {true, true, true, true, true, false, true, true, true, true});
    const TensorFunction f = [&](const std::vector<Tensor>& v) {
      return std::vector<Tensor>{(*rig)({.x = v[0], .positions = test::positions({0, 2, -1, 3, 9}), .key_keep = keep}).y};
    };
    const GradcheckReport one = gradcheck(f, inputs);
    CHECK_MESSAGE(one.passed, one.message);
    const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7, .all_elements = 8});
    CHECK_MESSAGE(two.passed, two.message);
  }
}
