// Attention as a module: names, masks, empty rows, key heads, qk_norm, scale, hostile calls; a program's own encoding.
#include <limits>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/module/summary.h"
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
using V = std::vector<double>;

namespace {

std::string shapes(const ModuleBase& m) {
  std::string text;
  for (const NamedParameter& p : m.named_parameters()) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", p.name, p.tensor.shape());
  return text;
}

}  // namespace

TEST_CASE("attention: parameter names and shapes") {
  struct Root : Module<Root> {
    MultiHeadAttention attention{*this, "attention", {.embed_dim = 6, .num_heads = 4, .head_dim = 5, .num_kv_heads = 2,
                                                      .position = "learned(max_len=7) + huang-m4(clip=1)", .attention = "dense(qk_norm=rms)"}};
  } root;
  CHECK(shapes(root) ==
        "attention.q_proj.weight [20, 6]; attention.q_proj.bias [20]; attention.k_proj.weight [10, 6]; attention.k_proj.bias [10]; "
        "attention.v_proj.weight [10, 6]; attention.v_proj.bias [10]; attention.out_proj.weight [6, 20]; attention.out_proj.bias [6]; "
        "attention.position.weight [7, 6]; attention.position.table [3, 5]; attention.attention.q_norm.weight [5]; "
        "attention.attention.k_norm.weight [5]");
  const MultiHeadAttention bare({.embed_dim = 4, .num_heads = 2, .bias = false, .out_proj = false});
  CHECK(shapes(*bare) == "q_proj.weight [4, 4]; k_proj.weight [4, 4]; v_proj.weight [4, 4]");
  CHECK(bare({.x = ones({1, 3, 4})}).y.shape() == Shape{1, 3, 4});
}

TEST_CASE("attention: two tokens by hand") {
  const test::DefaultF64 dtype;
  const ProjectedAttention a(nullptr, "", resolve_attention({.embed_dim = 1, .scale = 1}));
  const Tensor q = make<double>({1, 1, 2, 1}, {1, 2}).requires_grad_(), k = make<double>({1, 1, 2, 1}, {0, 1}),
               v = make<double>({1, 1, 2, 1}, {10, 20});
  const auto r = a.core(q, k, v, {});
  CHECK(r.weights.at<double>({0, 0, 0, 1}) == doctest::Approx(0.731059).epsilon(1e-6));
  CHECK(r.z.at<double>({0, 0, 0, 0}) == doctest::Approx(17.310586).epsilon(1e-7));
  CHECK(r.z.at<double>({0, 0, 1, 0}) == doctest::Approx(18.807971).epsilon(1e-7));
  r.z.select(2, 0).sum().backward();
  CHECK(q.grad().at<double>({0, 0, 0, 0}) == doctest::Approx(1.966119).epsilon(1e-6));
}

TEST_CASE("attention: a row without keys is zero, with finite gradients") {
  for (const char* spec : {"none", "huang-m4(clip=2)", "shaw(clip=1, values=true)", "huang-m3(clip=1)", "rope"}) {
    CAPTURE(spec);
    const Rig rig(spec);
    const Tensor x = tokens(2, 3).requires_grad_(), keep = make<bool>({2, 3}, {false, false, false, true, true, true});
    const AttentionOutput out = (*rig)({.x = x, .positions = Positions::range(3), .key_keep = keep, .want_weights = true});
    CHECK(largest_difference(out.y[0], rig->out_proj->bias.expand({3, 8})) == 0);
    CHECK(largest_difference(out.weights[0], zeros({2, 3, 3})) == 0);
    out.y.sum().backward();
    CHECK(largest_difference(x.grad()[0], zeros({3, 8})) == 0);
    for (const NamedParameter& p : rig->named_parameters())
      if (p.tensor.grad().defined())
        for (const double g : p.tensor.grad().to_vector<double>()) CHECK(std::isfinite(g));
    // Every pair masked: the same by a mask.
    const Tensor none = (*rig)({.x = x, .positions = Positions::range(3), .mask = Mask::dense(zeros({3, 3}, kB8))}).y;
    CHECK(largest_difference(none[1], rig->out_proj->bias.expand({3, 8})) == 0);
  }
}

TEST_CASE("attention: masks go with causality and padding") {
  const Rig rig("huang-m4(clip=2)", true);
  const Tensor x = tokens(2, 4), keep = make<bool>({2, 4}, {true, true, false, true, true, true, true, true});
  const Tensor pairs = make<bool>({4, 4}, {true, true, true, true, false, true, true, true, true, true, true, true, true, false, true, true});
  const auto w = (*rig)({.x = x, .positions = Positions::range(4), .key_keep = keep, .mask = Mask::dense(pairs), .want_weights = true}).weights;
  for (i64 b = 0; b < 2; ++b)
    for (i64 h = 0; h < 2; ++h)
      for (i64 i = 0; i < 4; ++i)
        for (i64 j = 0; j < 4; ++j) {
          const bool allowed = j <= i && pairs.at<bool>({i, j}) && keep.at<bool>({b, j}) && keep.at<bool>({b, i});
          CHECK((w.at<double>({b, h, i, j}) > 0) == allowed);
        }
  // Per head and per row, counted from the right.
  const Tensor per_head = zeros({2, 4, 4}, kB8);
  per_head[1].fill_(true);
  const auto by_head = (*rig)({.x = x, .positions = Positions::range(4), .mask = Mask::dense(per_head), .want_weights = true}).weights;
  CHECK(largest_difference(by_head.select(1, 0), zeros({2, 4, 4})) == 0);
  CHECK(by_head.at<double>({1, 1, 0, 0}) == doctest::Approx(1));
  CHECK(Mask().to_string() == "all()");
  CHECK(Mask::dense(per_head).to_string() == "dense(input)");
  CHECK(error_text([&] { (void)(*rig)({.x = x, .positions = Positions::range(4), .mask = Mask::dense(zeros({3, 4, 4}, kB8))}); }) ==
        "mask: dense([3, 4, 4]) does not fit a call with 2 rows, 2 heads, 4 queries and 4 keys");
  CHECK(error_text([] { (void)Mask::dense(ones({2, 2})); }) == "mask: dense: the array must be b8 (true = allowed), got f64");
  // Positionless queries see only positionless keys; those are seen by all.
  const auto some = (*rig)({.x = x, .positions = test::positions({-1, 5, 3, -1}), .want_weights = true}).weights;
  const std::vector<i64> visible = {1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1};
  for (i64 i = 0; i < 16; ++i) CHECK((some.at<double>({0, 0, i / 4, i % 4}) > 0) == (visible[static_cast<size_t>(i)] != 0));
}

TEST_CASE("attention: groups of heads share keys and values") {
  AttentionConfig c;
  c.num_kv_heads = 1;
  for (const char* spec : {"none", "shaw(clip=1, values=true)", "huang-m3(clip=1, per_head=true)", "huang-m4(clip=2)", "rope"}) {
    CAPTURE(spec);
    const Rig shared(spec, true, c), plain(spec, true);
    // The plain attention with the one head of keys and values twice.
    StateDict state = shared->state_dict();
    for (auto& [name, t] : state)
      if (name.find("k_proj") == 0 || name.find("v_proj") == 0) {
        const Tensor twice = make_empty(t.dim() == 2 ? Shape{8, 8} : Shape{8}, kF64);
        twice.narrow(0, 0, 4).copy_(t);
        twice.narrow(0, 4, 4).copy_(t);
        t = twice;
      }
    plain->load_state_dict(state);
    const Tensor x = tokens(2, 5);
    CHECK(largest_difference(shared.y(x, Positions::range(5)), plain.y(x, Positions::range(5))) < 1e-13);
  }
  CHECK(error_text([] { MultiHeadAttention({.embed_dim = 6, .num_heads = 3, .num_kv_heads = 2}); }) ==
        "attention: num_heads = 3 is not divisible by num_kv_heads = 2");
}

TEST_CASE("attention: normalised queries and keys, scale") {
  AttentionConfig c;
  c.attention = "dense(qk_norm=l2)";
  c.scale = 1;
  const Rig rig("none", false, c);
  const Tensor x = tokens(1, 4);
  for (const ScorePart& p : rig->score_parts({.x = x}))
    for (const double v : p.value.to_vector<double>()) CHECK(std::abs(v) <= 1 + 1e-12);
  const double before = rig->score_parts({.x = x})[0].value.at<double>({0, 1, 2, 3});
  {
    const NoGrad off;
    rig->q_proj.weight.mul_(3);
    rig->q_proj.bias.mul_(3);
  }
  CHECK(rig->score_parts({.x = x})[0].value.at<double>({0, 1, 2, 3}) == doctest::Approx(before).epsilon(1e-12));
  c.attention = "dense(qk_norm=rms)";
  const Rig rms("huang-m4(clip=1)", false, c);
  std::vector<Tensor> inputs = {tokens(1, 3).requires_grad_(), rms->q_norm, rms->k_norm};
  const GradcheckReport report = gradcheck([&](const std::vector<Tensor>& v) { return std::vector<Tensor>{rms.y(v[0], Positions::range(3))}; }, inputs);
  CHECK_MESSAGE(report.passed, report.message);
  // The default scale is one over the root of the head width.
  const Rig plain("none");
  AttentionConfig half;
  half.scale = 0.5;
  const Rig same("none", false, half);
  same->load_state_dict(plain->state_dict());
  CHECK(largest_difference(plain.y(x, {}), same.y(x, {})) < 1e-15);
}

TEST_CASE("attention: hostile calls say what is wrong") {
  const Rig rig("huang-m4(clip=2)");
  const Tensor x = tokens(2, 3);
  const auto wrong = [&](const AttentionInput& in) { return error_text([&] { (void)(*rig)(in); }); };
  CHECK(wrong({}) == "attention: x is undefined");
  CHECK(wrong({.x = ones({2, 3})}) == "attention: x must be [B, L, 8], got [2, 3]");
  CHECK(wrong({.x = zeros({2, 3, 8}, kI64)}) == "attention: x must be float, got i64");
  CHECK(wrong({.x = x}) == "attention: positions are missing: huang-m4 reads them");
  CHECK(wrong({.x = x, .positions = Positions::range(4)}) == "attention: positions [4] do not fit 3 tokens in 2 rows: must be [3] or [2, 3]");
  CHECK(wrong({.x = x, .context = x, .positions = Positions::range(3)}) ==
        "attention: a context was given, but this is self-attention; build it with cross = true");
  CHECK(wrong({.x = x, .positions = Positions::range(3), .key_keep = ones({2, 3})}) == "attention: key_keep must be b8 (true = kept), got f64");
  CHECK(wrong({.x = x, .positions = Positions::range(3), .query_keep = ones({3}, kB8)}) == "attention: query_keep must be [2, 3], got [3]");
  CHECK(wrong({.x = x, .positions = Positions::range(3), .state = x}) == "attention: a state was given, but dense has none");
  CHECK(wrong({.x = x, .mask = Mask::window(1, 1)}) == "attention: positions are missing: window(1, 1) reads them");
  CHECK(wrong({.x = x, .positions = Positions::range(3), .mask = Mask::parse("documents(input)")}) ==
        "mask: documents(input) needs the array documents of the call, which was not given");
  const Rig causal("none", true);
  CHECK(error_text([&] { (void)causal.y(x, {}); }) == "attention: positions are missing: a causal call reads them");
  CHECK(error_text([&] { (void)causal.y(x, test::positions({0, 1, 1})); }) ==
        "attention: row 0 repeats position 1 in a causal call: packed documents need documents(...)");
  AttentionConfig cross;
  cross.cross = true;
  const Rig two("rope", false, cross);
  CHECK(has(two->setup().warnings.at(0), "rope on dense: distances between two sequences mean something only on a common time axis"));
  CHECK(error_text([&] { (void)(*two)({.x = x, .positions = Positions::range(3)}); }) ==
        "attention: the context is undefined, but this is cross-attention");
  CHECK(error_text([&] { (void)(*two)({.x = x, .context = x, .positions = Positions::range(3)}); }) ==
        "attention: context_positions are missing: rope reads them");
  const auto built = [](AttentionConfig c) { return error_text([&] { MultiHeadAttention a(c); }); };
  CHECK(built({.embed_dim = 10, .num_heads = 4}) == "attention: embed_dim = 10 is not divisible by num_heads = 4; set head_dim");
  CHECK(built({.embed_dim = 8, .position = "rope(apply=features)"}).find("attention: rope(apply=features) cannot run on dense: "
        "apply=features acts behind the feature map of a linear attention; use apply=input") == 0);
  const std::string several = built({.embed_dim = 6, .num_heads = 2, .position = "rope", .scale = -1, .dropout = 1});
  for (const char* part : {"scale = -1: must be finite, and greater than 0", "dropout = 1: must be at least 0 and less than 1"}) CHECK(has(several, part));
  CHECK(has(built({.embed_dim = 8, .attention = "densest"}), "unknown attention densest. Did you mean dense?"));
}

TEST_CASE("attention: extreme inputs") {
  for (const std::string& spec : test::encoding_specs()) {
    CAPTURE(spec);
    for (const bool causal : {false, true}) {
      if (!test::accepted(spec, causal)) continue;
      const Rig rig(spec, causal);
      // No queries, no keys, one token, far positions.
      CHECK(rig.y(tokens(2, 0), Positions::range(0)).shape() == Shape{2, 0, 8});
      CHECK(rig.y(tokens(0, 3), Positions::range(3)).shape() == Shape{0, 3, 8});
      CHECK(rig.y(tokens(2, 1), Positions::range(1)).shape() == Shape{2, 1, 8});
      // (Tables of positions end before, and xpos has a limit for its factors.)
      if (!test::has(spec, "learned") && !test::has(spec, "tupe") && !test::has(spec, "xpos"))
        for (const double v : rig.y(tokens(1, 2), test::positions({0, 2147483646})).to_vector<double>()) CHECK(std::isfinite(v));
      if (!test::accepted(spec, causal, true)) continue;
      AttentionConfig c;
      c.cross = true;
      const Rig cross(spec, causal, c);
      const Tensor x = tokens(1, 2).requires_grad_();
      const Tensor y = (*cross)({.x = x, .context = tokens(1, 0), .positions = Positions::range(2), .context_positions = Positions::range(0)}).y;
      CHECK(largest_difference(y[0], cross->out_proj->bias.expand({2, 8})) == 0);
      y.sum().backward();
    }
    // NaN in the query of one token reaches that row and no other; in padding it reaches nothing.
    const Rig rig(spec, !test::accepted(spec));
    const Tensor q = randn({1, 2, 4, 4}, kF64), k = randn({1, 2, 4, 4}, kF64), v = randn({1, 2, 4, 4}, kF64);
    const AttentionInput in{.positions = Positions::range(4)};
    const Tensor clean = rig->core(q, k, v, in).z, bad = q.clone();
    bad.narrow(2, 1, 1).fill_(std::numeric_limits<double>::quiet_NaN());
    const Tensor z = rig->core(bad, k, v, in).z;
    CHECK(std::isnan(z.at<double>({0, 0, 1, 0})));
    CHECK(largest_difference(z.narrow(2, 2, 2), clean.narrow(2, 2, 2)) == 0);
    const AttentionInput padding{.positions = Positions::range(4), .key_keep = make<bool>({1, 4}, {true, false, true, true})};
    const Tensor k2 = k.clone(), v2 = v.clone();
    k2.narrow(2, 1, 1).fill_(std::numeric_limits<double>::infinity());
    v2.narrow(2, 1, 1).fill_(std::numeric_limits<double>::quiet_NaN());
    CHECK(largest_difference(rig->core(bad, k2, v2, padding).z, rig->core(q, k, v, padding).z) == 0);
  }
  // f32 scores of 4e8.
  const MultiHeadAttention a({.embed_dim = 8, .num_heads = 2, .position = "shaw(clip=2)"});
  const Tensor q = (randn({1, 2, 6, 4}) * 1e4).requires_grad_(), k = (randn({1, 2, 6, 4}) * 1e4).requires_grad_();
  const Tensor z = dynamic_cast<ProjectedAttention&>(*a).core(q, k, k, {.positions = Positions::range(6)}).z;
  z.sum().backward();
  for (const Tensor* t : {&q, &k})
    for (const double g : t->grad().to_vector<double>()) CHECK(std::isfinite(g));
}

TEST_CASE("a program's own encoding: registered, judged, listed, checked like ours") {
  // b_ij = -slope[h]·|δ|, up to a distance.
  class Slope final : public Encoding {
   public:
    Slope(i64 reach, Tensor slope) : reach_(reach), slope_(std::move(slope)) {}
    void prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
      std::vector<double> distance;
      for (i64 d = -reach_; d <= reach_; ++d) distance.push_back(-static_cast<double>(std::abs(d)));
      const Tensor beta = matmul(slope_.unsqueeze(1), tensor(distance, slope_.dtype()).unsqueeze(0));
      terms.push_back({"bias", Stage::bias, Distance{beta, {-reach_, reach_}}});
    }

   private:
    i64 reach_;
    Tensor slope_;
  };
  const auto info = [] {
    return EncodingInfo{.options = {"test-slope", {{"reach", int_option(8, 1, 100), "largest distance"}}, "a bias per distance"},
                        .facts = [](const Options&, bool, bool) {
                          EncodingFacts f;
                          f.site = Site::score;
                          f.needs = {Capability::pair};
                          f.direction = "no";
                          f.shift_invariant = true;
                          f.key_bias_is_constant = true;
                          return f;
                        },
                        .parameters = [](const Options&, const EncodingSizes& s) -> std::vector<ParameterSpec> {
                          return {{"slope", {s.num_heads}, init::constant(0.5), true}};
                        },
                        .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
                          return std::make_unique<Slope>(o.integer("reach"), p("slope"));
                        }};
  };
  register_encoding(info());
  CHECK(error_text([&] { register_encoding(info()); }) == "there is a position encoding called test-slope already");
  CHECK(find_encoding("test-slope"));
  EncodingInfo bad = info();
  bad.options.name = "Slope 2";
  CHECK(has(error_text([&] { register_encoding(bad); }), "\"Slope 2\" is no name for a position encoding"));
  bad.make = nullptr;
  CHECK(error_text([&] { register_encoding(bad); }) == "the position encoding Slope 2 has no make function");

  const Rig rig("test-slope(reach=3) + huang-m4(clip=1)");
  CHECK(has(shapes(*rig), "position.slope [2]"));
  const Tensor x = tokens(1, 5);
  const AttentionInput in{.x = x, .positions = Positions::range(5)};
  const auto parts = rig->score_parts(in);
  const double slope = rig->position.named_parameters()[1].tensor.at<double>({1});
  bool found = false;
  for (const ScorePart& p : parts)
    if (p.name == "bias") {
      found = true;
      CHECK(p.value.at<double>({0, 1, 0, 2}) == doctest::Approx(-2 * slope));
      CHECK(p.value.at<double>({0, 1, 4, 0}) == doctest::Approx(-3 * slope));  // saturated
    }
  CHECK(found);
  const GradcheckReport report = gradcheck([&](const std::vector<Tensor>&) { return std::vector<Tensor>{(*rig)(in).y}; },
                                           {rig->position.named_parameters()[1].tensor});
  CHECK_MESSAGE(report.passed, report.message);
  const Options options = test::sum_of("test-slope")[0];
  CHECK(judge(options, rig->options()).ruling == Ruling::accept);
  const JudgeMatrix matrix = judge_matrix();
  CHECK(std::find(matrix.encodings.begin(), matrix.encodings.end(), "test-slope") != matrix.encodings.end());
}
