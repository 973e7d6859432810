// The encodings themselves: closed-form oracles, initial values, parameter names and counts, options, sums, patterns.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/position/module.h"
#include "tests/error_text.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::make;
using test::sum_of;
using V = std::vector<double>;

namespace {

struct Holder : Module<Holder> {
  Holder(const std::string& spec, const EncodingSizes& sizes) : position(*this, sum_of(spec), sizes) {}
  PositionModule position;
};

// One head, d = 2, positions 0, 1, 2, clip = 1.
struct Oracle {
  explicit Oracle(const std::string& spec, const Tensor& values) : holder(spec, {2, 1, 2}) {
    q = make<double>({1, 1, 3, 2}, {1, 2, 0, 1, -1, 1}).requires_grad_();
    k = make<double>({1, 1, 3, 2}, {1, 0, 2, -1, 0, 3}).requires_grad_();
    holder.load_state_dict({{holder.named_parameters()[0].name, values}});
    const Positions p = Positions::range(3);
    ReferenceAttention call{.query = q, .key = k, .value = k, .query_positions = p.tensor(), .key_positions = p.tensor()};
    for (auto& [name, term] : holder.position.prepare({.queries = p, .keys = p}, q, k)) call.terms.push_back(term);
    scores = score_parts_reference(call).back().value;
    scores.backward(make<double>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
    gradient = holder.named_parameters()[0].tensor.grad().to_vector<double>();
  }
  test::DefaultF64 dtype;
  Holder holder;
  Tensor q, k, scores;
  V gradient;
};

i64 count(const std::string& spec, const EncodingSizes& sizes) {
  i64 total = 0;
  for (const Options& o : sum_of(spec))
    for (const ParameterSpec& p : parameters_of(o, sizes)) total += checked_numel("count", p.shape);
  return total;
}

}  // namespace

TEST_CASE("encodings: closed-form scores and gradients") {
  const Tensor rows = make<double>({3, 2}, {0.5, 0, 0, 1, -1, 0.5});
  {
    const Oracle m1("huang-m1(clip=1)", make<double>({1, 2}, {2, 0.5}));
    CHECK(m1.scores.to_vector<double>() == V{2, 0, 3, 0, -2, 1.5, -0.5, -1.5, 6});
    CHECK(m1.gradient == V{23, 5});
  }
  {
    const Oracle m2("huang-m2(clip=1)", make<double>({1, 3}, {0.5, 1, 3}));
    CHECK(m2.scores.to_vector<double>() == V{1, 0, 18, 0, -1, 9, -0.5, -1.5, 3});
    CHECK(m2.gradient == V{-31, 23, 36});
  }
  {
    const Oracle m3("huang-m3(clip=1)", rows);
    CHECK(m3.scores.to_vector<double>() == V{0, -3, 3, 0, -1, 1.5, -0.5, -1, 3});
    CHECK(m3.gradient == V{-23, -8, 1, 22, 4, 32});
  }
  {
    const Oracle shaw("shaw(clip=1)", rows);
    CHECK(shaw.scores.to_vector<double>() == V{3, 0, 6, 0, 0, 3.5, -1.5, -3.5, 4});
    CHECK(shaw.gradient == V{-15, 19, -8, 16, 5, 16});
  }
  {
    const Oracle m4("huang-m4(clip=1)", rows);
    CHECK(m4.scores.to_vector<double>() == V{3, -2.5, 7.5, 0.5, -1, 5, -1, -2.5, 7});
    CHECK(m4.gradient == V{12, 11, 3, 38, 9, 41});
    CHECK(m4.q.grad().to_vector<double>() == V{0, 10.5, 10, 21, 30.5, 28});
    CHECK(m4.k.grad().to_vector<double>() == V{-0.5, 14, -4, 23, -15, 34.5});
  }
}

TEST_CASE("encodings: closed-form value side of shaw") {
  const test::DefaultF64 dtype;
  Holder holder("shaw(clip=1, values=true)", {2, 1, 2});
  const Tensor rows = make<double>({3, 2}, {0.5, 0, 0, 1, -1, 0.5});
  holder.load_state_dict({{"position.key_table", zeros({3, 2})}, {"position.value_table", rows}});
  const Positions p = Positions::range(3);
  const Tensor q = zeros({1, 1, 3, 2}), v = make<double>({1, 1, 3, 2}, {1, 0, 0, 1, 2, 2});
  ReferenceAttention call{.query = q, .key = q, .value = v, .query_positions = p.tensor(), .key_positions = p.tensor()};
  for (auto& [name, term] : holder.position.prepare({.queries = p, .keys = p}, q, q)) call.terms.push_back(term);
  const V z = attention_reference(call).z.to_vector<double>(), expected = {1.0 / 3, 5.0 / 3, 5.0 / 6, 1.5, 4.0 / 3, 4.0 / 3};
  for (size_t i = 0; i < z.size(); ++i) CHECK(z[i] == doctest::Approx(expected[i]).epsilon(1e-14));
}

TEST_CASE("encodings: method 4 is s[(q + w)(k + w) - w·w]") {
  const test::DefaultF64 dtype;
  Holder holder("huang-m4(clip=2)", {6, 2, 3});
  test::randomise(holder);
  const Positions p = Positions::range(5);
  const Tensor q = randn({1, 2, 5, 3}), k = randn({1, 2, 5, 3}), table = holder.named_parameters()[0].tensor;
  ReferenceAttention call{.query = q, .key = k, .value = k, .query_positions = p.tensor(), .key_positions = p.tensor(),
                          .content_scale = 0.7, .table_scale = 0.7};
  for (auto& [name, term] : holder.position.prepare({.queries = p, .keys = p}, q, k)) call.terms.push_back(term);
  const NoGrad off;
  const Tensor scores = score_parts_reference(call).back().value;
  for (i64 h = 0; h < 2; ++h)
    for (i64 i = 0; i < 5; ++i)
      for (i64 j = 0; j < 5; ++j) {
        const i64 r = std::clamp<i64>(j - i, -2, 2) + 2;
        double s = 0;
        for (i64 t = 0; t < 3; ++t) {
          const double w = table.at<double>({r, t});
          s += 0.7 * ((q.at<double>({0, h, i, t}) + w) * (k.at<double>({0, h, j, t}) + w) - w * w);
        }
        CHECK(scores.at<double>({0, h, i, j}) == doctest::Approx(s).epsilon(1e-12));
      }
}

TEST_CASE("encodings: sinusoid and rope angles in f64, far out") {
  const test::DefaultF64 dtype;
  const auto row = [](const std::string& spec, i64 width, i64 p) {
    const Holder h(spec, {width, 1, width});
    return h.position.add_to_input(zeros({1, 1, width}), Positions::range(1, p)).to_vector<double>();
  };
  const auto close = [](const V& a, const V& b, double tolerance) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < tolerance);
  };
  close(row("sinusoid", 6, 1), {0.841470985, 0.540302306, 0.046399223, 0.998922976, 0.002154433, 0.999997679}, 6e-10);
  close(row("sinusoid", 6, 15962), {0.418935703, -0.908015901, -0.501608082, 0.865094985, 0.167637403, -0.985848721}, 6e-10);
  close(row("sinusoid(layout=concat)", 6, 1), {0.841470985, 0.046399223, 0.002154433, 0.540302306, 0.998922976, 0.999997679}, 6e-10);
  CHECK(row("sinusoid", 5, 3).size() == 5);

  const auto turned = [](const std::string& spec, i64 p) {
    const Holder h(spec, {4, 1, 4});
    const Tensor x = make<double>({1, 1, 1, 4}, {1, 2, 3, 4});
    const Positions at = Positions::range(1, p);
    return h.position.map_query_key(x, x, {.queries = at, .keys = at}).first.to_vector<double>();
  };
  close(turned("rope", 3), {-1.272232513, -1.838864985, 2.878668100, 4.088186636}, 6e-10);
  close(turned("rope(layout=halves)", 3), {-1.413352521, 1.879118067, -2.828857482, 4.058191135}, 6e-10);
  // Computed with 40 digits.
  close(row("sinusoid", 4, 15962), {0.41893570279372957, -0.908015901251032, 0.56565336028389516, -0.82464312038574474}, 1e-10);
  close(turned("rope", 15962), {-1.7458873068384911, -1.3970960997083344, -4.7365428022928149, -1.6016124006912935}, 1e-9);
  close(row("sinusoid", 4, 1000003), {0.4786854087960669, -0.87798649158500287, -0.33403724926884923, -0.94255987401379478}, 1e-10);
  close(turned("rope", 1000003), {-1.8353573091771367, -1.2772875743739388, -1.4915306249659874, -4.7723512438617268}, 1e-9);
  CHECK(turned("rope(fraction=0.5)", 7)[2] == 3);
  CHECK(turned("rope(interpolation=2)", 6) == turned("rope", 3));
}

TEST_CASE("encodings: initial values") {
  const test::DefaultF64 dtype;
  manual_seed(0);
  const auto moments = [](const std::string& spec) {
    const Holder h(spec, {64, 4, 16});
    const V v = h.named_parameters()[0].tensor.to_vector<double>();
    double mean = 0, square = 0;
    for (const double x : v) {
      mean += x / static_cast<double>(v.size());
      square += x * x / static_cast<double>(v.size());
    }
    return std::pair(mean, std::sqrt(std::max(0.0, square - mean * mean)));
  };
  for (const char* spec : {"learned", "shaw", "huang-m4"}) {
    CAPTURE(spec);
    CHECK(std::abs(moments(spec).first) < 0.005);
    CHECK(moments(spec).second == doctest::Approx(0.02).epsilon(0.15));
  }
  CHECK(moments("huang-m3").first == doctest::Approx(1).epsilon(0.01));
  CHECK(moments("huang-m3").second == doctest::Approx(0.02).epsilon(0.15));
  for (const char* spec : {"huang-m1", "huang-m2"})
    for (const double v : Holder(spec, {64, 4, 16}).named_parameters()[0].tensor.to_vector<double>()) CHECK(v == 1);
}

TEST_CASE("encodings: parameter names, shapes, no_decay, sharing a path") {
  const auto shapes = [](const std::string& spec) {
    std::string text;
    const Holder h(spec, {8, 2, 4});
    for (const NamedParameter& p : h.named_parameters())
      text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", p.name, p.tensor.shape(), p.no_decay ? " no_decay" : "");
    return text;
  };
  CHECK(shapes("none + sinusoid + rope") == "");
  CHECK(shapes("learned(max_len=9)") == "position.weight [9, 8]");
  CHECK(shapes("shaw(clip=3, values=true)") == "position.key_table [7, 4]; position.value_table [7, 4]");
  CHECK(shapes("shaw(clip=3, per_head=true)") == "position.key_table [2, 7, 4]");
  CHECK(shapes("huang-m1(clip=3)") == "position.scale [2, 4] no_decay");
  CHECK(shapes("huang-m2(clip=3)") == "position.scale [2, 7] no_decay");
  CHECK(shapes("huang-m3(clip=0)") == "position.table [1, 4] no_decay");
  CHECK(shapes("huang-m4(per_head=true)") == "position.table [2, 33, 4]");
  CHECK(shapes("huang-m4 + rope + huang-m2(clip=1)") == "position.scale [2, 3] no_decay; position.table [33, 4]");
  // Two owners: only that path is qualified. Either name loads where it is unambiguous.
  CHECK(shapes("huang-m1(clip=1) + huang-m2(clip=1) + shaw(clip=0)") ==
        "position.key_table [1, 4]; position.huang-m1.scale [2, 2] no_decay; position.huang-m2.scale [2, 3] no_decay");
  Holder one("huang-m1(clip=1)", {8, 2, 4});
  one.load_state_dict({{"position.huang-m1.scale", ones({2, 2})}});
  Holder two("huang-m1(clip=1) + huang-m2(clip=1)", {8, 2, 4});
  CHECK(test::has(error_text([&] { two.load_state_dict({{"position.scale", ones({2, 2})}, {"position.huang-m2.scale", ones({2, 3})}}); }),
                  "unexpected: position.scale"));
}

TEST_CASE("encodings: parameter counts at BERT-base size") {
  const EncodingSizes bert{768, 12, 64};
  CHECK(count("learned(max_len=512)", bert) == 393216);
  for (const char* spec : {"shaw(clip=511)", "huang-m3(clip=511)", "huang-m4(clip=511)"}) {
    CHECK(count(spec, bert) == 65472);
    CHECK(12 * count(spec, bert) == 785664);
  }
  CHECK(12 * count("shaw(clip=511, per_head=true)", bert) == 9427968);
  CHECK(12 * count("huang-m1(clip=511)", bert) == 73728);
  CHECK(12 * count("huang-m2(clip=511)", bert) == 147312);
  for (const char* spec : {"none", "sinusoid", "rope"}) CHECK(count(spec, bert) == 0);
}

TEST_CASE("encodings: options that do not fit are refused by name") {
  const auto problems = [](const std::string& spec, const EncodingSizes& sizes) {
    std::vector<std::string> list;
    check_sizes(sum_of(spec), sizes, list);
    return fmt::format("{}", fmt::join(list, "; "));
  };
  CHECK(problems("rope(fraction=0.3)", {8, 2, 4}) ==
        "rope: fraction=0.3 of a head width of 4 is 1.2 channels; needs an even number of at least 2");
  CHECK(problems("rope", {6, 2, 3}) == "rope: fraction=1 of a head width of 3 is 3 channels; needs an even number of at least 2");
  CHECK(problems("rope(fraction=0.5, ntk=2)", {8, 2, 4}) ==
        "rope: ntk=2 needs more than 2 turning channels: one frequency cannot be both lowest and highest");
  CHECK(problems("sinusoid(layout=concat)", {7, 1, 7}) == "sinusoid: layout=concat needs an even width, not 7; use layout=interleaved");
  CHECK(problems("sinusoid + rope + shaw", {8, 2, 4}) == "");
  const auto wrong = [](const std::string& spec) { return error_text([&] { resolve_encodings(spec, 2); }); };
  CHECK(wrong("shaw(clip=1048577)") == "position: shaw: option clip must be int 0..1048576, not int 1048577");
  CHECK(test::has(wrong("shaw(beyond=zeros)"), "Did you mean zero?"));
  CHECK(test::has(wrong("huang-m5"), "unknown position encoding huang-m5. Did you mean huang-m1, huang-m2 or huang-m3?"));
  CHECK(test::has(wrong("spe-sine + rope"), "the position encoding spe-sine is not part of this version. Known: none, sinusoid, "));
  CHECK(error_text([] { (void)encoding_info("spe-sine"); }) == "the position encoding spe-sine is not part of this version");
  CHECK(wrong("rope + huang-m3") ==
        "position: huang-m3 + rope: huang-m3 redefines the content product, which rope would map; use huang-m4 or shaw beside rope");
  CHECK(wrong("shaw + shaw(clip=2)") == "position: shaw appears twice in the sum");
  CHECK(wrong("[rope]*3") == "position: the pattern [rope]*3 names 3 layers, the model has 2");
  CHECK(wrong("sinusoid + rope, rope") ==
        "position: the input-site part must be the same in every layer, it is sinusoid(layout=interleaved, base=10000) and nothing");
  CHECK(resolve_encodings("rope, none", 2)[1][0].name() == "none");
  CHECK(resolve_encodings("learned", 1, {{"model.max_len", SpecValue(7)}})[0][0].integer("max_len") == 7);
  // The order in a sum does not matter.
  CHECK(sum_text(sum_of("rope + shaw(clip=2)"), false) == sum_text(sum_of("shaw(clip=2) + rope"), false));
}

TEST_CASE("encodings: learned has nothing beyond its table, and nothing for tokens without a position") {
  const test::DefaultF64 dtype;
  const Holder h("learned(max_len=4)", {2, 1, 2});
  const Tensor x = zeros({1, 2, 2});
  CHECK(error_text([&] { (void)h.position.add_to_input(x, Positions::range(2, 3)); }) ==
        "learned: position 4 at [1] is outside the table of 4 rows (max_len=4); raise max_len or use an encoding that extends "
        "(waymark explain learned)");
  const Tensor y = h.position.add_to_input(x, test::positions({-1, 3}));
  CHECK(y.at<double>({0, 0, 0}) == 0);
  CHECK(y.at<double>({0, 1, 1}) == h.named_parameters()[0].tensor.at<double>({3, 1}));
  sum(y).backward();
  CHECK(h.named_parameters()[0].tensor.grad().to_vector<double>() == V{0, 0, 0, 0, 0, 0, 1, 1});
  const Holder fixed("sinusoid", {2, 1, 2});
  CHECK(fixed.position.add_to_input(x, test::positions({-1, 0})).to_vector<double>() == V{0, 0, 0, 1});
}

TEST_CASE("encodings: beyond=error names the pair, and ignores masked ones") {
  const test::Rig rig("shaw(clip=2, beyond=error)");
  const Tensor x = test::tokens(1, 4);
  CHECK(error_text([&] { (void)rig.y(x, Positions::range(4)); }) ==
        "shaw: query 0 and key 3 of row 0 have the positions 0 and 3, 3 apart, beyond clip=2; raise clip, or use beyond=clip or zero");
  (void)rig.y(x, test::positions({0, 1, 2, -1}));
  (void)rig.y(x, Positions::range(4), make<bool>({1, 4}, {true, true, true, false}));
  const test::Rig causal("huang-m4(clip=2, beyond=error)", true);
  CHECK(error_text([&] { (void)causal.y(x, Positions::range(4)); }) ==
        "huang-m4: query 3 and key 0 of row 0 have the positions 3 and 0, 3 apart, beyond clip=2; raise clip, or use beyond=clip or zero");
}
