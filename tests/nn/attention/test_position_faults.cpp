// Faults of other implementations that must not be ours, by the numbers of the list in the documentation of the position
// encodings; and hostile calls (property 13). Numbers 7, 8, 9, 13, 14 and 15 are in tests/nn/position/test_biases.cpp.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "models/encoder.h"
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

// Queries and keys of one call, and calls of a part of the queries on all keys so far, as decoding makes them.
struct Decoding {
  explicit Decoding(const std::string& spec, i64 tokens_in_all = 12) : length(tokens_in_all), rig(spec, true), step(spec, true, cross()) {
    step->load_state_dict(rig->state_dict());
    for (Tensor* t : {&q, &k, &v}) *t = randn({2, 2, length, 4}, kF64);
    whole = rig->core(q, k, v, {.positions = Positions::range(length)}).z;
    plain = Rig("none", true)->core(q, k, v, {.positions = Positions::range(length)}).z;
  }
  static AttentionConfig cross() {
    AttentionConfig c;
    c.cross = true;
    return c;
  }
  // Largest error of the queries begin ... begin + count - 1.
  double error(i64 begin, i64 count) const {
    const i64 end = begin + count;
    const Tensor z = step->core(q.narrow(2, begin, count), k.narrow(2, 0, end), v.narrow(2, 0, end),
                                {.context = k, .positions = Positions::range(count, begin), .context_positions = Positions::range(end)}).z;
    return largest_difference(z, whole.narrow(2, begin, count));
  }
  i64 length;
  Rig rig, step;
  Tensor q, k, v, whole, plain;  // plain: without the encoding
};

const char* const kRelativeTables[] = {"shaw(clip=4)", "shaw(clip=4, values=true)", "huang-m1(clip=4)", "huang-m2(clip=4)",
                                       "huang-m3(clip=4)", "huang-m4(clip=4)", "huang-m4(clip=4, per_head=true)"};
const char* const kPairBiases[] = {"t5(buckets=8, max_distance=9)", "alibi", "kerple-log", "kerple-power", "sandwich(dim=8)", "fire(hidden=4)",
                                   "fire(hidden=4, init_threshold=3)"};

// The parts of a state that another module has, too.
StateDict shared_with(const StateDict& state, const ModuleBase& module) {
  StateDict out;
  for (const auto& [name, value] : module.state_dict())
    for (const auto& entry : state)
      if (entry.first == name && entry.second.shape() == value.shape()) out.push_back(entry);
  return out;
}

}  // namespace

TEST_CASE("positions 8.4 no. 1: a cached step sees true distances, not 0") {
  for (const std::string spec : kRelativeTables) {
    CAPTURE(spec);
    const Decoding d(spec);
    for (i64 i = 0; i < d.length; ++i) CHECK(d.error(i, 1) < 1e-12);
    CHECK(largest_difference(d.plain.narrow(2, 11, 1), d.whole.narrow(2, 11, 1)) > 1e-6);
  }
}

TEST_CASE("positions 8.4 no. 2: several new tokens have positions of their own") {
  for (const std::string spec : kRelativeTables) {
    CAPTURE(spec);
    const Decoding d(spec);
    for (const i64 begin : {1, 4, 9}) CHECK(d.error(begin, 3) < 1e-12);
    CHECK(d.error(2, 2) < 1e-12);
  }
}

TEST_CASE("positions 8.4 no. 3: inputs longer than the table share its end rows") {
  const i64 clip = 3;
  for (const std::string name : {"shaw", "shaw(values=true)", "huang-m1", "huang-m2", "huang-m3", "huang-m4"}) {
    CAPTURE(name);
    const auto with_clip = [&](i64 c) {
      return name.back() == ')' ? fmt::format("{}, clip={})", name.substr(0, name.size() - 1), c) : fmt::format("{}(clip={})", name, c);
    };
    for (const i64 length : {clip + 1, 2 * clip, 10 * clip}) {
      CAPTURE(length);
      const Rig narrow(with_clip(clip)), wide(with_clip(length));
      // The wide table repeats the end rows of the narrow one, so that it needs no clip.
      const NoGrad off;
      const auto small = narrow->named_parameters(), large = wide->named_parameters();
      for (size_t i = 0; i < small.size(); ++i) {
        const Tensor &from = small[i].tensor, &to = large[i].tensor;
        if (from.shape() == to.shape()) {
          to.copy_(from);
          continue;
        }
        const int axis = from.size(0) == to.size(0) ? 1 : 0;
        const bool both_sides = from.size(axis) == 2 * clip + 1;
        for (i64 r = 0; r < to.size(axis); ++r) {
          const i64 row = both_sides ? std::clamp(r - length, -clip, clip) + clip : std::min(r, clip);
          to.select(axis, r).copy_(from.select(axis, row));
        }
      }
      const Tensor x = tokens(2, length);
      CHECK(largest_difference(narrow.y(x, Positions::range(length)), wide.y(x, Positions::range(length))) < 1e-12);
    }
  }
}

TEST_CASE("positions 8.4 no. 4: cross-attention takes relative encodings, with explicit positions and a warning") {
  for (const EncodingInfo* info : all_encodings()) {
    const EncodingFacts f = info->facts(test::sum_of(info->name())[0], false, true);
    if (f.needs_causal_call || (f.site != Site::score && f.site != Site::query_key)) continue;
    CAPTURE(info->name());
    AttentionConfig c;
    c.cross = true;
    const Rig rig(info->name(), false, c);
    const auto& warnings = rig->setup().warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(has(warnings[0], info->name()));
    CHECK(has(warnings[0], "distances between two sequences mean something only on a common time axis"));
    const Tensor x = tokens(2, 5), context = tokens(2, 9);
    if (f.reads_positions) {
      CHECK(has(error_text([&] { (void)(*rig)({.x = x, .context = context}); }), "positions are missing: " + info->name()));
      CHECK(has(error_text([&] { (void)(*rig)({.x = x, .context = context, .positions = Positions::range(5)}); }),
                "context_positions are missing: " + info->name()));
    }
    const auto at = [&](i64 offset) {
      return (*rig)({.x = x, .context = context, .positions = Positions::range(5, offset), .context_positions = Positions::range(9)}).y;
    };
    CHECK(at(0).shape() == Shape{2, 5, 8});
    CHECK(largest_difference(at(0), at(4)) > 1e-9);
  }
}

TEST_CASE("positions 8.4 no. 5: fewer queries than keys, and the bias belongs to their positions") {
  for (const std::string spec : kPairBiases) {
    CAPTURE(spec);
    const Decoding d(spec);
    for (const i64 count : {1, 5, 11}) CHECK(d.error(12 - count, count) < 1e-12);
    CHECK(largest_difference(d.plain.narrow(2, 7, 5), d.whole.narrow(2, 7, 5)) > 1e-6);
  }
}

TEST_CASE("positions 8.4 no. 6: t5 with a cache, token by token, keeps its bias at its place") {
  const Decoding d("t5(buckets=6, max_distance=7)");
  for (i64 i = 0; i < 12; ++i) {
    CHECK(d.error(i, 1) < 1e-12);
    if (i > 0) CHECK(largest_difference(d.whole.narrow(2, i, 1), d.plain.narrow(2, i, 1)) > 1e-6);
  }
}

TEST_CASE("positions 8.4 no. 17: left padding changes nothing in a stack of layers") {
  const test::DefaultF64 dtype;
  for (const std::string& spec : test::encoding_specs())
    for (const bool causal : {false, true}) {
      if (!causal && test::needs_causal_call(test::sum_of(spec))) continue;
      CAPTURE(spec);
      CAPTURE(causal);
      models::Encoder encoder({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 8, .position = spec, .causal = causal});
      test::randomise(encoder);
      encoder.eval();
      const NoGrad off;
      // The second sentence is shorter: with left padding its tokens end where those of the first do.
      const Tensor x = tokens(2, 5), left = x.clone();
      left.select(0, 1).narrow(0, 2, 3).copy_(x.select(0, 1).narrow(0, 0, 3));
      const Tensor left_keep = make<bool>({2, 5}, {true, true, true, true, true, false, false, true, true, true});
      const Tensor right_keep = make<bool>({2, 5}, {true, true, true, true, true, true, true, true, false, false});
      const Tensor a = encoder(left, {.positions = Positions::from_mask(left_keep), .keep = left_keep});
      const Tensor b = encoder(x, {.positions = Positions::from_mask(right_keep), .keep = right_keep});
      const Tensor alone = encoder(x.narrow(0, 1, 1).narrow(1, 0, 3), {.positions = Positions::range(3)});
      CHECK(largest_difference(a.select(0, 0), b.select(0, 0)) < 1e-12);
      CHECK(largest_difference(a.select(0, 1).narrow(0, 2, 3), b.select(0, 1).narrow(0, 0, 3)) < 1e-12);
      CHECK(largest_difference(b.select(0, 1).narrow(0, 0, 3), alone.select(0, 0)) < 1e-12);
    }
}

TEST_CASE("positions 8.4 no. 22: sinusoids of odd width, and a cosine has the exponent of its sine") {
  const test::DefaultF64 dtype;
  struct Sines : Module<Sines> {
    explicit Sines(i64 width) : position(*this, test::sum_of("sinusoid"), {width, 1, width}) {}
    PositionModule position;
  };
  // Computed with 30 digits: sin 3, cos 3, sin(3·10^-1.6), cos(3·10^-1.6), sin(3·10^-3.2).
  const double expected[] = {0.141120008059867222, -0.989992496600445457, 0.0752852929988649890, 0.997162035307237036,
                             0.00189287090309188807};
  const Tensor odd = Sines(5).position.add_to_input(zeros({1, 1, 5}), Positions::range(1, 3));
  for (i64 e = 0; e < 5; ++e) CHECK(odd.at<double>({0, 0, e}) == doctest::Approx(expected[e]).epsilon(1e-13));
  for (const i64 width : {1, 2, 3, 7, 8}) {
    const Tensor y = Sines(width).position.add_to_input(zeros({1, 4, width}), Positions::range(4));
    for (i64 p = 0; p < 4; ++p)
      for (i64 e = 0; e + 1 < width; e += 2) {
        const double s = y.at<double>({0, p, e}), c = y.at<double>({0, p, e + 1});
        CHECK(s * s + c * c == doctest::Approx(1).epsilon(1e-14));
      }
  }
}

TEST_CASE("positions 8.4 no. 24: rows without any allowed key give zeros, and finite gradients") {
  for (const std::string& spec : test::encoding_specs()) {
    CAPTURE(spec);
    const bool causal = test::needs_causal_call(test::sum_of(spec));
    AttentionConfig c;
    c.out_proj = false;
    const Rig rig(spec, causal, c);
    const Tensor x = tokens(2, 4).requires_grad_();
    // Row 0 of the batch has no key at all; of row 1, query 2 sees none.
    const Tensor keep = make<bool>({2, 4}, {false, false, false, false, true, true, true, true});
    Tensor pairs = full({2, 1, 4, 4}, true, kB8);
    pairs.select(0, 1).select(1, 2).fill_(false);
    const AttentionOutput out = (*rig)({.x = x, .positions = Positions::range(4), .key_keep = keep, .query_keep = full({2, 4}, true, kB8),
                                        .mask = Mask::dense(pairs), .want_weights = true});
    CHECK(test::norm(out.y.select(0, 0)) == 0);
    CHECK(test::norm(out.y.select(0, 1).select(0, 2)) == 0);
    CHECK(test::norm(out.y.select(0, 1).select(0, 3)) > 1e-6);
    CHECK(test::norm(out.weights.select(0, 0)) == 0);
    out.y.sum().backward();
    for (const double g : x.grad().to_vector<double>()) CHECK(std::isfinite(g));
    for (const NamedParameter& p : rig->named_parameters())
      if (p.tensor.grad().defined())
        for (const double g : p.tensor.grad().to_vector<double>()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("positions 8.4 no. 26: no table of absolute positions beside an encoding that does not ask for one") {
  for (const EncodingInfo* info : all_encodings()) {
    CAPTURE(info->name());
    const Options encoding = test::sum_of(info->name())[0];
    const bool causal = facts_of(encoding).needs_causal_call;
    const models::Encoder encoder({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .position = info->name(), .causal = causal, .max_len = 64});
    const auto own = parameters_of(encoding, {8, 2, 4});
    for (const NamedParameter& p : encoder.named_parameters()) {
      const size_t at = p.name.find("position.");
      if (at == std::string::npos) continue;
      const std::string name = p.name.substr(at + 9);
      CHECK(std::any_of(own.begin(), own.end(), [&](const ParameterSpec& s) { return s.name == name; }));
    }
  }
  const models::Encoder alibi({.embed_dim = 8, .num_heads = 2, .num_layers = 1, .position = "alibi"});
  for (const NamedParameter& p : alibi.named_parameters()) CHECK(!has(p.name, "position"));
}

TEST_CASE("positions 8.4 no. 27: an accepted pair of encoding and attention is never silently without its encoding") {
  const test::DefaultF64 dtype;
  i64 pairs = 0;
  for (const AttentionInfo* attention : all_attentions())
    for (const EncodingInfo* encoding : all_encodings())
      for (const bool causal : {false, true}) {
        if (attention->name().starts_with("test-") || encoding->name() == "none") continue;
        const Options e = test::sum_of(encoding->name())[0];
        std::vector<std::string> problems;
        const auto a = resolve_attentions(attention->name(), 1, problems);
        if (a.empty() || judge(e, a[0], causal).ruling == Ruling::refuse) continue;
        CAPTURE(attention->name());
        CAPTURE(encoding->name());
        CAPTURE(causal);
        AttentionConfig c{.embed_dim = 8, .num_heads = 2, .attention = attention->name(), .causal = causal, .max_len = 16};
        const auto build = [&](const std::string& position) {
          c.position = position;
          const RandomScope scope(11);
          return make_attention(nullptr, "", resolve_attention(c));
        };
        const auto with = build(encoding->name()), without = build("none");
        test::randomise(*with);
        without->load_state_dict(shared_with(with->state_dict(), *without), false);
        with->eval();
        without->eval();
        const auto run = [&](const Attention& module) {
          const RandomScope scope(12);
          return module({.x = tokens(2, 12), .positions = Positions::range(12)}).y.detach();
        };
        CHECK(largest_difference(run(*with), run(*without)) > 1e-7);
        ++pairs;
      }
  CHECK(pairs >= 2 * 15);
}

TEST_CASE("property 13: NaN stays in its row, empty calls are empty, extreme options have room or an error that names them") {
  for (const std::string& spec : test::encoding_specs()) {
    CAPTURE(spec);
    const bool causal = test::needs_causal_call(test::sum_of(spec));
    const Rig rig(spec, causal);
    const Tensor q = randn({2, 2, 5, 4}, kF64), k = randn({2, 2, 5, 4}, kF64), v = randn({2, 2, 5, 4}, kF64);
    const AttentionInput in{.positions = Positions::range(5)};
    const Tensor before = rig->core(q, k, v, in).z;
    q.at<double>({1, 0, 3, 2}) = test::kNan;
    const Tensor z = rig->core(q, k, v, in).z;
    for (i64 b = 0; b < 2; ++b)
      for (i64 h = 0; h < 2; ++h)
        for (i64 i = 0; i < 5; ++i)
          for (i64 t = 0; t < 4; ++t) {
            const double value = z.at<double>({b, h, i, t});
            if (b == 1 && h == 0 && i == 3) CHECK(std::isnan(value));
            else CHECK(value == doctest::Approx(before.at<double>({b, h, i, t})).epsilon(1e-12));
          }

    // No tokens; no keys.
    const Tensor none = zeros({2, 0, 8}, kF64).requires_grad_();
    const Tensor y = rig.y(none, Positions::range(0));
    CHECK(y.shape() == Shape{2, 0, 8});
    y.sum().backward();
    AttentionConfig c;
    c.cross = true;
    if (causal) continue;
    const Rig cross(spec, false, c);
    const auto call = [&](i64 queries, i64 keys) {
      return (*cross)({.x = tokens(2, queries), .context = tokens(2, keys), .positions = Positions::range(queries),
                       .context_positions = Positions::range(keys)}).y;
    };
    CHECK(call(0, 3).shape() == Shape{2, 0, 8});
    CHECK(largest_difference(call(3, 0), cross->out_proj->bias.expand({2, 3, 8})) == 0);
    call(3, 0).sum().backward();
  }
  // The largest clip there is.
  const Rig huge("huang-m1(clip=1048576)");
  CHECK(huge.y(tokens(1, 3), test::positions({0, 5, 1048576})).shape() == Shape{1, 3, 8});
  const auto refused = [](const std::string& spec) { return error_text([&] { Rig rig(spec); }); };
  CHECK(has(refused("huang-m1(clip=1048577)"), "option clip must be int 0..1048576, not int 1048577"));
  CHECK(has(refused("shaw(clip=-1)"), "option clip must be int 0..1048576, not int -1"));
  CHECK(has(refused("t5(buckets=9)"), "buckets=9 must be even"));
  CHECK(has(refused("kerple-log(p=1)"), "kerple-log: unknown option p"));
  CHECK(has(refused("fire(init_threshold=0)"), "option init_threshold must be"));
  CHECK(has(refused("fourier(gamma=-1)"), "option gamma must be"));
  CHECK(has(refused("sandwich(dim=3)"), "dim=3 must be even"));
  CHECK(has(refused("alibi(heads=5)"), "heads=5 of a model with 2 heads"));
}
