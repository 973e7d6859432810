// transformer-xl, cope, deberta, tupe, xpos: closed forms, names and sizes, options, messages, what a stack prepares once.
#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/convert.h"
#include "core/ops/einsum.h"
#include "core/ops/index.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "models/encoder.h"
#include "nn/position/module.h"
#include "tests/nn/rig.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;
using test::sum_of;

namespace {

using Reals = std::vector<double>;

// Encodings alone, with random parameters in f64.
struct Loose : Module<Loose> {
  Loose(const std::string& spec, const EncodingSizes& sizes) : position(*this, sum_of(spec), sizes) { test::randomise(*this); }
  Tensor at(const std::string& name) const {
    for (const NamedParameter& p : named_parameters())
      if (p.name == "position." + name) return p.tensor;
    fail("test", "no parameter {}", name);
  }
  // The call with this encoding's terms.
  ReferenceAttention call(const Tensor& q, const Tensor& k, const EncodingCall& c) const {
    ReferenceAttention r{.query = q, .key = k, .value = k, .query_positions = c.queries.tensor(), .key_positions = c.keys.tensor(), .keep = c.keep};
    for (auto& [name, term] : position.prepare(c, q, k)) r.terms.push_back(std::move(term));
    return r;
  }

 private:
  test::DefaultF64 dtype_;

 public:
  PositionModule position;
};

Tensor part_of(const std::vector<ScorePart>& parts, const std::string& name) {
  for (const ScorePart& p : parts)
    if (p.name == name) return p.value;
  fail("test", "no part {}", name);
}

// Queries and keys of the closed forms: one head, d = 2.
Tensor oracle_queries() { return make<double>({1, 1, 3, 2}, {1, 2, 0, 1, -1, 1}); }
Tensor oracle_keys() { return make<double>({1, 1, 3, 2}, {1, 0, 2, -1, 0, 3}); }

// The relative shift of many codes: x [..., Lq, Lk+Lq], column c of row i is of offset Lk − c. [..., Lq, Lk]
Tensor skew(const Tensor& x, i64 keys) {
  const i64 queries = x.size(-2);
  return x.reshape({keys + queries, queries}).narrow(0, 1, keys + queries - 1).reshape({queries, keys + queries - 1}).narrow(1, 0, keys);
}

std::string wrong_sizes(const std::string& spec, const EncodingSizes& sizes = {8, 2, 4}) {
  std::vector<std::string> list;
  check_sizes(sum_of(spec), sizes, list);
  return fmt::format("{}", fmt::join(list, "; "));
}

}  // namespace

TEST_CASE("encodings: closed-form scores of deberta") {
  const auto scores = [](const std::string& spec) {
    const Loose h(spec, {2, 1, 2});
    const NoGrad off;
    h.at("table").copy_(make<double>({4, 2}, {1, 0, 0, 1, 1, 1, -1, 2}));
    for (const char* name : {"key_proj", "query_proj"}) {
      h.at(std::string(name) + ".weight").copy_(make<double>({2, 2}, {1, 0, 0, 1}));
      h.at(std::string(name) + ".bias").zero_();
    }
    const Positions p = Positions::range(3);
    return score_parts_reference(h.call(oracle_queries(), oracle_keys(), {.queries = p, .keys = p})).back().value.to_vector<double>();
  };
  CHECK(scores("deberta(clip=2)") == Reals{5, 1, 7, 1, 1, 7, 1, -4, 6});
  CHECK(scores("deberta(clip=2, p2c_index=ji)") == Reals{5, -2, 13, 2, 1, 10, 3, -1, 6});
}

TEST_CASE("encodings: the buckets of deberta, as exact arithmetic has them") {
  const Loose h("deberta(clip=32, terms=c2p, buckets=8)", {2, 1, 2});
  const auto row = [&](i64 t) {  // t = query − key
    std::vector<ScoreTerm> terms = h.call(zeros({1, 1, 1, 2}), zeros({1, 1, 1, 2}), {.queries = test::positions({t < 0 ? 0 : t}), .keys = test::positions({t < 0 ? -t : 0})}).terms;
    const Tensor rows = pair_rows(std::get<Table>(terms[0].family).index, make<i64>({1}, {t < 0 ? 0 : t}), make<i64>({1}, {t < 0 ? -t : 0}));
    return rows.item<i64>();
  };
  for (i64 t = -4; t <= 4; ++t) CHECK(row(t) == t + 8);
  const auto expected = [](i64 t) { return t <= 7 ? 5 : t <= 15 ? 6 : t <= 31 ? 7 : 8; };
  for (i64 t = 5; t <= 200; ++t) {
    CHECK(row(t) == std::min<i64>(15, 8 + expected(t)));
    CHECK(row(-t) == 8 - expected(t));
  }
  CHECK(row(31) == 15);
  CHECK(row(-31) == 1);
  CHECK(row(-32) == 0);
}

TEST_CASE("encodings: closed-form scores of cope, and its gradients") {
  const double s = 1 / std::sqrt(2.0);
  const Loose h("cope(max_pos=4)", {2, 1, 2});
  {
    const NoGrad off;
    h.at("table").copy_(make<double>({4, 2}, {0, 0, 1, 0, 0, 1, 1, 1}));
  }
  const Positions p = Positions::range(3);
  ReferenceAttention call = h.call(oracle_queries(), oracle_keys(), {.queries = p, .keys = p, .causal = true, .keep = causal_pairs(p, p)});
  call.content_scale = call.table_scale = s;
  const auto parts = score_parts_reference(call);
  const auto total = [&](i64 i, i64 j) { return parts.back().value.at<double>({0, 0, i, j}); };
  CHECK(total(0, 0) == doctest::Approx(1.376868).epsilon(1e-6));
  CHECK(std::abs(total(1, 0)) < 1e-6);
  CHECK(total(1, 1) == doctest::Approx(-0.707107).epsilon(1e-6));
  CHECK(total(2, 0) == doctest::Approx(-1.046630).epsilon(1e-6));
  CHECK(total(2, 1) == doctest::Approx(-3.121320).epsilon(1e-6));
  CHECK(total(2, 2) == doctest::Approx(1.228362).epsilon(1e-6));
  CHECK(part_of(parts, "cope").at<double>({0, 0, 0, 0}) == doctest::Approx(0.669762).epsilon(1e-6));
  // dtable and dq by hand, through the counts of row 2 too: dA_if = dS(1 − w), dA_ic = dS·w; dê = dS + dg·g(1 − g).
  const Tensor q = oracle_queries().requires_grad_(), upstream = make<double>({1, 1, 3, 3}, {1, 0, 0, 4, 5, 0, 7, 8, 9});
  call.query = q;
  score_parts_reference(call).back().value.backward(upstream);
  const double ds[] = {7, 8, 9}, e[] = {-s, -3 * s, 3 * s};
  double g[3], count[3], a[4] = {0, -1, 1, 0}, table[4] = {0, 0, 0, 0}, below_gate = 0;
  for (int j = 2; j >= 0; --j) {
    g[j] = 1 / (1 + std::exp(-e[j]));
    count[j] = g[j] + (j < 2 ? count[j + 1] : 0);
  }
  Reals dq = {0, 0};
  for (int j = 0; j < 3; ++j) {
    const int f = static_cast<int>(std::floor(count[j]));
    const double w = count[j] - f;
    table[f] += ds[j] * (1 - w);
    table[f + 1] += ds[j] * w;
    below_gate += ds[j] * (a[f + 1] - a[f]);
    const double de = ds[j] + below_gate * g[j] * (1 - g[j]);
    dq[0] += de * s * oracle_keys().at<double>({0, 0, j, 0});
    dq[1] += de * s * oracle_keys().at<double>({0, 0, j, 1});
  }
  const Tensor rows = h.at("table");
  for (int r = 0; r < 4; ++r)
    for (int t = 0; t < 2; ++t) dq[static_cast<size_t>(t)] += table[r] * rows.at<double>({r, t});
  for (int t = 0; t < 2; ++t) CHECK(q.grad().at<double>({0, 0, 2, t}) == doctest::Approx(dq[static_cast<size_t>(t)]).epsilon(1e-12));
}

TEST_CASE("positions 8.4 no. 10: the relative shift is the gather: without a mask, causal, and for fewer queries than keys") {
  CHECK(skew(make<double>({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 3).to_vector<double>() == Reals{2, 3, 4, 6, 7, 8});
  {
    // With a column of zeros in front, as others write it: 2×3 values of 0 ... 5, and its gradient.
    const Tensor x = make<double>({2, 3}, {0, 1, 2, 3, 4, 5}).requires_grad_();
    const Tensor y = cat({zeros({2, 1}, kF64), x}, 1).reshape({4, 2}).narrow(0, 1, 3).reshape({2, 3});
    CHECK(y.to_vector<double>() == Reals{1, 2, 0, 3, 4, 5});
    y.backward(make<double>({2, 3}, {0, 1, 2, 3, 4, 5}));
    CHECK(x.grad().to_vector<double>() == Reals{0, 0, 1, 3, 4, 5});
  }
  const Loose xl("transformer-xl", {6, 1, 4});
  for (const auto& [queries, keys] : {std::pair<i64, i64>{5, 5}, {3, 7}, {1, 4}, {4, 4}}) {
    const i64 lq = queries, lk = keys;
    CAPTURE(lq);
    CAPTURE(lk);
    const Tensor q = randn({1, 1, lq, 4}, kF64), k = randn({1, 1, lk, 4}, kF64);
    const Positions pq = Positions::range(lq, lk - lq), pk = Positions::range(lk);
    for (const bool causal : {false, true}) {
      const ReferenceAttention call = xl.call(q, k, {.queries = pq, .keys = pk, .causal = causal, .keep = causal ? causal_pairs(pq, pk) : Tensor()});
      const auto parts = score_parts_reference(call);
      // ρ of the offsets Lk − c, then the shift.
      const Tensor rho = make_empty({lk + lq, 6}, kF64);
      for (i64 c = 0; c < lk + lq; ++c)
        for (i64 t = 0; t < 3; ++t) {
          const double angle = static_cast<double>(lk - c) * std::pow(10000.0, -static_cast<double>(2 * t) / 6);
          rho.at<double>({c, t}) = std::sin(angle);
          rho.at<double>({c, 3 + t}) = std::cos(angle);
        }
      const Tensor x = matmul(q.view({lq, 4}), linear(rho, xl.at("r_proj.weight")).mT());
      CHECK(largest_difference(part_of(parts, "q_table").view({lq, lk}), skew(x, lk)) < 1e-12);
      ReferenceAttention shifted = call;
      shifted.terms.erase(shifted.terms.begin());
      shifted.terms.push_back({"bias", Stage::bias, PairTable{skew(x, lk).reshape({1, 1, lq, lk})}});
      CHECK(largest_difference(attention_reference(call).z, attention_reference(shifted).z) < 1e-12);
    }
  }
}

TEST_CASE("positions 8.4 no. 11: transformer-xl tells +t from −t") {
  const Loose xl("transformer-xl", {8, 2, 4});
  const NoGrad off;
  xl.at("content_bias").zero_();
  const Tensor q = randn({1, 2, 1, 4}, kF64), k = randn({1, 2, 1, 4}, kF64);
  const auto score = [&](i64 query, i64 key) {
    const auto parts = score_parts_reference(xl.call(q, k, {.queries = test::positions({query}), .keys = test::positions({key})}));
    return add(part_of(parts, "q_table"), part_of(parts, "position_bias"));
  };
  // With sines alone the sign flips; with cosines alone it makes no difference.
  const Tensor weight = xl.at("r_proj.weight").clone();
  xl.at("r_proj.weight").narrow(1, 4, 4).zero_();
  CHECK(largest_difference(score(2, 5), neg(score(5, 2))) < 1e-13);
  CHECK(test::norm(score(2, 5)) > 1e-3);
  xl.at("r_proj.weight").copy_(weight);
  xl.at("r_proj.weight").narrow(1, 0, 4).zero_();
  CHECK(largest_difference(score(2, 5), score(5, 2)) < 1e-13);
  xl.at("r_proj.weight").copy_(weight);
  CHECK(largest_difference(score(2, 5), score(5, 2)) > 1e-3);
}

TEST_CASE("positions 8.4 no. 12: both terms of deberta read the row of query minus key, unless ji says otherwise") {
  for (const bool swapped : {false, true}) {
    const Loose h(swapped ? "deberta(clip=3, p2c_index=ji)" : "deberta(clip=3)", {6, 2, 3});
    const NoGrad off;
    const Tensor q = randn({2, 2, 4, 3}, kF64), k = randn({2, 2, 6, 3}, kF64);
    const std::vector<i64> pq = {4, 0, 9, 2}, pk = {1, 5, 2, 3, 8, 0};
    const auto parts = score_parts_reference(h.call(q, k, {.queries = test::positions(pq), .keys = test::positions(pk)}));
    const Tensor kr = linear(h.at("table"), h.at("key_proj.weight"), h.at("key_proj.bias"));
    const Tensor qr = linear(h.at("table"), h.at("query_proj.weight"), h.at("query_proj.bias"));
    for (i64 b = 0; b < 2; ++b)
      for (i64 head = 0; head < 2; ++head)
        for (i64 i = 0; i < 4; ++i)
          for (i64 j = 0; j < 6; ++j) {
            const i64 t = pq[static_cast<size_t>(i)] - pk[static_cast<size_t>(j)];
            const i64 x = std::clamp<i64>(t + 3, 0, 5), y = std::clamp<i64>((swapped ? -t : t) + 3, 0, 5);
            double c2p = 0, p2c = 0;
            for (i64 e = 0; e < 3; ++e) {
              c2p += q.at<double>({b, head, i, e}) * kr.at<double>({x, head * 3 + e});
              p2c += k.at<double>({b, head, j, e}) * qr.at<double>({y, head * 3 + e});
            }
            CHECK(part_of(parts, "q_table").at<double>({b, head, i, j}) == doctest::Approx(c2p).epsilon(1e-12));
            CHECK(part_of(parts, "k_table").at<double>({b, head, i, j}) == doctest::Approx(p2c).epsilon(1e-12));
          }
  }
}

TEST_CASE("encodings: segments of transformer-xl, in closed form, with gradients and messages") {
  const test::Rig rig("transformer-xl(segments=true)");
  const Tensor x = test::tokens(2, 5).requires_grad_();
  const Tensor segments = make<i64>({2, 5}, {0, 0, 1, 1, 7, 3, 3, 3, 4, 3});
  const AttentionInput in{.x = x, .positions = test::positions({0, 1, 3, 4, -1}), .segments = segments};
  const auto parts = rig->score_parts(in);
  const auto parameter = [&](const std::string& name) {
    for (const NamedParameter& p : rig->position.named_parameters())
      if (p.name == name) return p.tensor;
    fail("test", "no parameter {}", name);
  };
  const Tensor q = rig->q_proj(x).view({2, 5, 2, 4}).detach(), embed = parameter("segment_embed"), bias = parameter("segment_bias");
  for (i64 b = 0; b < 2; ++b)
    for (i64 h = 0; h < 2; ++h)
      for (i64 i = 0; i < 5; ++i)
        for (i64 j = 0; j < 5; ++j) {
          const i64 other = segments.at<i64>({b, i}) != segments.at<i64>({b, j});
          double expected = 0;
          for (i64 e = 0; e < 4; ++e) expected += (q.at<double>({b, i, h, e}) + bias.at<double>({h, e})) * embed.at<double>({other, h, e}) / 2;
          const double ours = part_of(parts, "q_segment").at<double>({b, h, i, j}) + part_of(parts, "segment_bias").at<double>({b, h, i, j});
          CHECK(ours == doctest::Approx(expected).epsilon(1e-12));  // also for the token without a position
        }
  std::vector<Tensor> inputs = {x};
  for (const NamedParameter& p : rig->position.named_parameters()) inputs.push_back(p.tensor);
  const TensorFunction f = [&](const std::vector<Tensor>& v) {
    return std::vector<Tensor>{(*rig)({.x = v[0], .positions = in.positions, .segments = segments}).y};
  };
  const GradcheckReport one = gradcheck(f, inputs), two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7, .all_elements = 8});
  CHECK_MESSAGE(one.passed, one.message);
  CHECK_MESSAGE(two.passed, two.message);

  CHECK(has(error_text([&] { (void)rig.y(x, Positions::range(5)); }), "segments are missing: transformer-xl(segments=true) reads them"));
  CHECK(has(error_text([&] { (void)(*rig)({.x = x, .positions = Positions::range(5), .segments = segments.narrow(1, 0, 4)}); }),
            "segments must be [2, 5], got [2, 4]"));
  CHECK(has(error_text([&] { (void)(*rig)({.x = x, .positions = Positions::range(5), .segments = to(segments, kF64)}); }), "segments must be i64"));
  AttentionConfig cross;
  cross.cross = true;
  CHECK(has(error_text([&] { test::Rig("transformer-xl(segments=true)", false, cross); }),
            "transformer-xl(segments=true) cannot run on dense: segments belong to one sequence, and cross-attention has two"));
}

TEST_CASE("encodings: tupe in closed form, tokens without position among them") {
  const Loose h("tupe(max_len=6, relative=true, buckets=4, max_distance=5)", {6, 2, 3});
  const NoGrad off;
  const std::vector<i64> pq = {3, -1, 0, 5}, pk = {-1, 2, 5, 0, 1};
  const Tensor q = zeros({1, 2, 4, 3}, kF64), k = zeros({1, 2, 5, 3}, kF64);
  const auto parts = score_parts_reference(h.call(q, k, {.queries = test::positions(pq), .keys = test::positions(pk)}));
  const Tensor normed = layer_norm(h.at("weight"), {6}, h.at("norm.weight"), h.at("norm.bias"), 1e-5);
  const Tensor pi_q = linear(normed, h.at("query_proj.weight"), h.at("query_proj.bias"));
  const Tensor pi_k = linear(normed, h.at("key_proj.weight"), h.at("key_proj.bias"));
  // Of δ = −5 ... 5, buckets of 4 for both directions: 0 → 0; farther left → 1; right → 3.
  const auto bucket = [](i64 delta) { return delta == 0 ? 0 : delta < 0 ? 1 : 3; };
  for (i64 head = 0; head < 2; ++head)
    for (size_t i = 0; i < pq.size(); ++i)
      for (size_t j = 0; j < pk.size(); ++j) {
        const i64 row_q = pq[i] < 0 ? 0 : pk[j] < 0 ? 1 : pq[i] + 1, row_k = pq[i] < 0 ? 0 : pk[j] < 0 ? 1 : pk[j] + 1;
        double expected = 0;
        for (i64 e = 0; e < 3; ++e) expected += pi_q.at<double>({row_q, head * 3 + e}) * pi_k.at<double>({row_k, head * 3 + e});
        CHECK(part_of(parts, "position_bias").at<double>({0, head, static_cast<i64>(i), static_cast<i64>(j)}) == doctest::Approx(expected).epsilon(1e-12));
        const i64 row = pq[i] < 0 ? 2 : pk[j] < 0 ? 4 : bucket(pk[j] - pq[i]);
        CHECK(part_of(parts, "bias").at<double>({0, head, static_cast<i64>(i), static_cast<i64>(j)}) == h.at("bias").at<double>({row, head}));
      }
  CHECK(error_text([&] { (void)h.call(q, k, {.queries = Positions::range(4, 3), .keys = Positions::range(5)}); }) ==
        "tupe: position 6 at [3] is outside the table of 6 rows (max_len=6); raise max_len or use an encoding that extends (waymark explain tupe)");
  CHECK(has(error_text([&] { (void)h.call(q, k, {.queries = Positions::range(4), .keys = Positions::range(5, 2)}); }), "tupe: position 6 at [4]"));
}

TEST_CASE("encodings: xpos scales by the distance, whatever the centre, up to a limit that it names") {
  const Loose h("xpos(scale_base=16)", {4, 1, 4});
  const Tensor q = make<double>({1, 1, 1, 4}, {1, 2, 3, 4}), k = make<double>({1, 1, 1, 4}, {2, -1, 1, 3});
  const auto score = [&](i64 i, i64 j) {
    const EncodingCall call{.queries = test::positions({i}), .keys = test::positions({j}), .causal = true};
    const auto [a, b] = h.position.map_query_key(q, k, call);
    return sum(mul(a, b)).item<double>();
  };
  const auto expected = [](i64 i, i64 j) {
    const double x[] = {1, 2, 3, 4}, y[] = {2, -1, 1, 3}, d = static_cast<double>(i - j);
    double total = 0;
    for (int t = 0; t < 2; ++t) {
      const double angle = d * std::pow(10000.0, -t / 2.0), c = std::cos(angle), s = std::sin(angle), zeta = (2 * t + 1.6) / 5.6;
      const double a = x[2 * t], b = x[2 * t + 1];
      total += std::pow(zeta, d / 16) * ((a * c - b * s) * y[2 * t] + (a * s + b * c) * y[2 * t + 1]);
    }
    return total;
  };
  for (const auto& [i, j] : {std::pair<i64, i64>{0, 0}, {5, 2}, {40, 3}, {100007, 100000}}) CHECK(score(i, j) == doctest::Approx(expected(i, j)).epsilon(1e-10));
  // In f32 the exponent stays below 80: 32,695 positions on each side at scale_base=512.
  const auto ends = [](DType dtype, i64 span) {
    const test::DefaultF64 of(dtype);
    const Loose far("xpos", {4, 1, 4});
    const Tensor x = zeros({1, 1, 2, 4}, dtype);
    const Positions p = test::positions({0, span});
    return error_text([&] { (void)far.position.map_query_key(x, x, {.queries = p, .keys = p, .causal = true}); });
  };
  CHECK(ends(kF32, 2 * 32695) == "(no error)");
  CHECK(ends(kF32, 2 * 32697) == "xpos: position 0 at [0, 0] is 32697 away from the centre 32697 of the keys; with scale_base=512 the factors fit f32 up to a distance of 32695; raise scale_base");
  CHECK(ends(kF64, 2 * 32697) == "(no error)");
  CHECK(has(ends(kF64, i64{1} << 31 >> 1), "xpos: position 0 at [0, 0]"));
  // Padding may stand anywhere.
  const test::Rig rig("xpos", true);
  const Tensor keep = make<bool>({1, 3}, {true, true, false});
  (void)rig.y(test::tokens(1, 3), test::positions({0, 1, Positions::kLargest}), keep);
  CHECK(has(error_text([&] { (void)rig.y(test::tokens(1, 3), test::positions({0, 1, Positions::kLargest})); }), "raise scale_base"));
  CHECK(wrong_sizes("xpos", {6, 2, 3}) == "xpos: needs an even head width of at least 2, not 3");
}

TEST_CASE("encodings: positions far apart need no table of all differences") {
  for (const char* spec : {"transformer-xl", "transformer-xl(clamp=2000000000)", "deberta(clip=3)", "deberta(clip=1000000, buckets=12)", "huang-m4(clip=2)",
                           "alibi", "t5"}) {
    CAPTURE(spec);
    const test::Rig rig(spec);
    const Tensor y = rig.y(test::tokens(1, 4), test::positions({0, 5, 2000000000, Positions::kLargest}));
    for (const double v : y.to_vector<double>()) CHECK(std::isfinite(v));
  }
  // The same scores as where all differences are listed.
  const Loose xl("transformer-xl", {8, 2, 4});
  const Tensor q = randn({1, 2, 2, 4}, kF64), k = randn({1, 2, 3, 4}, kF64);
  const auto score = [&](const std::vector<i64>& keys) {
    return score_parts_reference(xl.call(q, k, {.queries = test::positions({7, 9}), .keys = test::positions(keys)})).back().value;
  };
  CHECK(largest_difference(score({2, 9, 3}).narrow(3, 0, 2), score({2, 9, 1000000}).narrow(3, 0, 2)) < 1e-12);
}

TEST_CASE("encodings: names, shapes, decay, initial values and sizes of transformer-xl, cope, deberta, tupe") {
  const auto shapes = [](const std::string& spec) {
    std::string text;
    const Loose h(spec, {8, 2, 4});
    for (const NamedParameter& p : h.named_parameters())
      text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", p.name.substr(9), p.tensor.shape(), p.no_decay ? " no_decay" : "");
    return text;
  };
  CHECK(shapes("transformer-xl") == "r_proj.weight [8, 8]; content_bias [2, 4] no_decay; position_bias [2, 4] no_decay");
  CHECK(shapes("transformer-xl(segments=true)") ==
        "r_proj.weight [8, 8]; content_bias [2, 4] no_decay; position_bias [2, 4] no_decay; segment_bias [2, 4] no_decay; segment_embed [2, 2, 4]");
  CHECK(shapes("cope(max_pos=5)") == "table [5, 4]");
  CHECK(shapes("deberta(clip=3)") ==
        "table [6, 8]; key_proj.weight [8, 8]; key_proj.bias [8] no_decay; query_proj.weight [8, 8]; query_proj.bias [8] no_decay");
  CHECK(shapes("deberta(clip=9, buckets=4, terms=c2p, normalize_table=true)") ==
        "table [8, 8]; key_proj.weight [8, 8]; key_proj.bias [8] no_decay; norm.weight [8] no_decay; norm.bias [8] no_decay");
  CHECK(shapes("deberta(clip=3, share_projections=true)") == "table [6, 8]");
  CHECK(shapes("tupe(max_len=5, relative=true, buckets=8)") ==
        "weight [6, 8]; norm.weight [8] no_decay; norm.bias [8] no_decay; query_proj.weight [8, 8]; query_proj.bias [8] no_decay; "
        "key_proj.weight [8, 8]; key_proj.bias [8] no_decay; bias [9, 2] no_decay");
  CHECK(shapes("huang-m4(clip=0) + cope(max_pos=2)") == "huang-m4.table [1, 4]; cope.table [2, 4]");
  CHECK(shapes("xpos") == "");
  const auto count = [](const std::string& spec) {
    i64 total = 0;
    for (const ParameterSpec& p : parameters_of(sum_of(spec)[0], {768, 12, 64})) total += checked_numel("count", p.shape);
    return total;
  };
  CHECK(count("transformer-xl") == 589824 + 2 * 768);
  CHECK(12 * 589824 == 7077888);
  CHECK(count("deberta(clip=512)") == 1024 * 768 + 2 * 768 * 769);

  manual_seed(0);
  const auto info = [](const std::string& spec, const std::string& name) {
    for (const ParameterSpec& p : parameters_of(sum_of(spec)[0], {64, 4, 16}))
      if (p.name == name) {
        const Tensor t = make_empty(p.shape, kF64);
        p.init.fill(t, "test.init");
        const double n = static_cast<double>(t.numel()), mean = sum(t).item<double>() / n;
        return std::pair(mean, std::sqrt(sum(mul(t, t)).item<double>() / n - mean * mean));
      }
    fail("test", "no parameter {}", name);
  };
  for (const auto& [spec, name] : {std::pair("transformer-xl", "r_proj.weight"), {"transformer-xl", "content_bias"}, {"deberta", "table"},
                                   {"deberta", "key_proj.weight"}, {"tupe", "weight"}, {"tupe", "query_proj.weight"}}) {
    const auto [mean, deviation] = info(spec, name);
    CHECK(std::abs(mean) < 0.008);
    CHECK(deviation == doctest::Approx(0.02).epsilon(0.2));
  }
  CHECK(info("cope", "table") == std::pair(0.0, 0.0));
  CHECK(info("deberta", "key_proj.bias") == std::pair(0.0, 0.0));
  CHECK(info("tupe", "norm.weight").first == 1);
}

TEST_CASE("encodings: options of transformer-xl, cope, deberta, tupe that do not fit") {
  CHECK(wrong_sizes("transformer-xl", {7, 1, 7}) == "transformer-xl: needs an even width, half sines and half cosines, not 7");
  CHECK(wrong_sizes("deberta(clip=5, buckets=1)") ==
        "deberta: buckets=1 leaves none for small differences; needs at least 2, or 0 for a row per difference");
  CHECK(wrong_sizes("deberta(clip=5, buckets=8)") == "deberta: clip=5 must be greater than 5: the first 4 differences have a bucket of their own");
  CHECK(wrong_sizes("deberta(clip=6, buckets=8)") == "");
  CHECK(wrong_sizes("tupe(relative=true, buckets=9)") == "tupe: buckets=9 must be even, half of them for each direction");
  CHECK(wrong_sizes("tupe(relative=true, max_distance=16)") ==
        "tupe: buckets=32 is more than max_distance=16: some would stay empty");
  CHECK(wrong_sizes("tupe(buckets=9)") == "");
  const auto wrong = [](const std::string& spec, bool causal = false) { return error_text([&] { test::Rig rig(spec, causal); }); };
  CHECK(has(wrong("deberta(clip=0)"), "option clip must be int 1..1048576, not int 0"));
  CHECK(has(wrong("deberta(terms=p2p)"), "option terms must be c2p+p2c | c2p | p2c"));
  CHECK(has(wrong("cope"), "cope cannot run on dense: it needs a causal call; set causal"));
  CHECK(has(wrong("xpos"), "xpos cannot run on dense: it needs a causal call; set causal"));
  CHECK(has(wrong("rope + xpos", true), "only one of them may map queries and keys"));
  CHECK(has(wrong("huang-m3 + xpos", true), "huang-m3 redefines the content product, which xpos would map"));
  AttentionConfig cross;
  cross.cross = true;
  for (const char* spec : {"cope", "xpos"})
    CHECK(has(error_text([&] { test::Rig(spec, true, cross); }), "it needs a causal call, which cross-attention is not"));
  // Without an attention there is nothing to borrow.
  const Loose alone("deberta(share_projections=true)", {8, 2, 4});
  const Positions p = Positions::range(2);
  CHECK(has(error_text([&] { (void)alone.call(zeros({1, 2, 2, 4}), zeros({1, 2, 2, 4}), {.queries = p, .keys = p}); }),
            "deberta: share_projections=true uses the q_proj and k_proj of an attention"));
}

TEST_CASE("encodings: deberta borrows the projections of its attention, also of shared key heads") {
  AttentionConfig c;
  c.num_kv_heads = 1;
  const test::Rig rig("deberta(clip=2, share_projections=true)", false, c);
  const Tensor x = test::tokens(1, 3), table = rig->position.named_parameters()[0].tensor;
  const auto parts = rig->score_parts({.x = x, .positions = Positions::range(3)});
  const NoGrad off;
  const Tensor q = rig->q_proj(x), k = (*rig->k_proj)(x), kr = (*rig->k_proj)(table), qr = rig->q_proj(table);
  for (i64 h = 0; h < 2; ++h)
    for (i64 i = 0; i < 3; ++i)
      for (i64 j = 0; j < 3; ++j) {
        const i64 row = std::clamp<i64>(i - j + 2, 0, 3);
        double c2p = 0, p2c = 0;
        for (i64 e = 0; e < 4; ++e) {
          c2p += q.at<double>({0, i, 4 * h + e}) * kr.at<double>({row, e});
          p2c += k.at<double>({0, j, e}) * qr.at<double>({row, 4 * h + e});
        }
        CHECK(part_of(parts, "q_table").at<double>({0, h, i, j}) == doctest::Approx(c2p / std::sqrt(12.0)).epsilon(1e-12));
        CHECK(part_of(parts, "k_table").at<double>({0, h, i, j}) == doctest::Approx(p2c / std::sqrt(12.0)).epsilon(1e-12));
      }
}

TEST_CASE("encodings: what layers share, and what a stack prepares once for all of them") {
  const test::DefaultF64 dtype;
  const auto names = [](const std::string& spec) {
    std::string text;
    const models::Encoder e({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 8, .position = spec});
    for (const NamedParameter& p : e.named_parameters())
      if (p.name.find("position.") != std::string::npos) text += (text.empty() ? "" : " ") + p.name;
    return text;
  };
  const std::string at0 = "layers.0.attention.position.", at1 = "layers.1.attention.position.";
  CHECK(names("deberta(terms=c2p)") == "position.table " + at0 + "key_proj.weight " + at0 + "key_proj.bias " + at1 + "key_proj.weight " + at1 + "key_proj.bias");
  CHECK(names("transformer-xl(share_layers=true)") ==
        "position.content_bias position.position_bias " + at0 + "r_proj.weight " + at1 + "r_proj.weight");
  CHECK(names("tupe(max_len=4)") ==
        "position.weight position.norm.weight position.norm.bias position.query_proj.weight position.query_proj.bias "
        "position.key_proj.weight position.key_proj.bias");
  CHECK(names("tupe(max_len=4, share_layers=false)").find("position.weight") == std::string("layers.0.attention.").size());

  // A stack that shares equals one whose layers have equal parameters of their own; gradients are their sums.
  for (const std::string spec : {"tupe(max_len=9, relative=true, buckets=8, max_distance=9, share_layers={})", "deberta(clip=2, share_layers={})",
                                 "transformer-xl(share_layers={})", "kerple-log(share_layers={})", "t5(buckets=8, max_distance=9, share_layers={})"}) {
    CAPTURE(spec);
    const auto with = [&](const char* word) { return std::string(spec).replace(spec.find("{}"), 2, word); };
    models::Encoder shared({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 8, .position = with("true")});
    models::Encoder own({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .ffn_dim = 8, .position = with("false")});
    test::randomise(shared);
    for (const NamedParameter& p : shared.named_parameters())
      for (const NamedParameter& mine : own.named_parameters())
        if (mine.name == p.name || (p.name.starts_with("position.") && mine.name.ends_with(".attention." + p.name))) {
          const NoGrad off;
          mine.tensor.copy_(p.tensor);
        }
    const Tensor x = test::tokens(2, 6), g = randn({2, 6, 8}, kF64);
    const Positions p = Positions::range(6);
    const Tensor a = shared(x, {.positions = p}), b = own(x, {.positions = p});
    CHECK(largest_difference(a, b) < 1e-12);
    a.backward(g);
    b.backward(g);
    for (const NamedParameter& q : shared.named_parameters()) {
      if (!q.name.starts_with("position.")) continue;
      CAPTURE(q.name);
      Tensor sum_of_layers;
      for (const NamedParameter& other : own.named_parameters())
        if (other.name.ends_with(".attention." + q.name)) sum_of_layers = sum_of_layers.defined() ? sum_of_layers + other.tensor.grad() : other.tensor.grad();
      REQUIRE(sum_of_layers.defined());
      CHECK(largest_difference(q.tensor.grad(), sum_of_layers) < 1e-12);
    }
  }

  // Counted: once for three layers, and again for each attention that stands alone or has other positions.
  static int calls = 0;
  class Counted final : public Encoding {
   public:
    void prepare(const EncodingCall&, const Tensor& q, const Tensor&, std::vector<ScoreTerm>& terms) const override {
      ++calls;
      terms.push_back({"bias", Stage::bias, Distance{to(make<double>({1, 3}, {-1, 0, -1}), q.dtype()), {-1, 1}}});
    }
  };
  if (!find_encoding("test-counted"))
    register_encoding(EncodingInfo{.options = {"test-counted", {}, "counts"},
                                   .facts =
                                       [](const Options&, bool, bool) {
                                         EncodingFacts f;
                                         f.needs = {Capability::pair};
                                         f.site = Site::score;
                                         f.terms_of_positions = true;
                                         f.shift_invariant = true;
                                         f.sees_direction = false;
                                         f.key_bias_is_constant = true;
                                         return f;
                                       },
                                   .make = [](const Options&, const EncodingSizes&, const ParameterLookup&) { return std::make_unique<Counted>(); }});
  const models::Encoder stack({.embed_dim = 8, .num_heads = 2, .num_layers = 3, .ffn_dim = 8, .position = "test-counted"});
  const Tensor x = test::tokens(1, 4);
  (void)stack(x, {.positions = Positions::range(4)});
  CHECK(calls == 1);
  const test::Rig alone("test-counted");
  const auto other = stack.position.prepare_shared({.queries = Positions::range(4), .keys = Positions::range(4)}, kF64);
  CHECK(calls == 2);
  (void)(*alone)({.x = x, .positions = Positions::range(4), .prepared = other});
  CHECK(calls == 3);
}
