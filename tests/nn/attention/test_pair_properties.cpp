// Properties of every attention with every encoding that the judge lets run on it, over both registries: a new encoding
// or attention is tested as soon as it is listed. Numbers are those of the list of properties (attentions 11.1).
#include <algorithm>
#include <functional>
#include <map>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/nn/rig.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::nn;
using test::largest_difference;
using test::make;
using test::Rig;
using test::tokens;

namespace {

// f(position, attention, causal) for every accepted pair at level full. Below, for one of two or of eight, and each
// property begins with another one, so that together they meet them all.
void each_pair(const std::function<void(const std::string&, const std::string&, bool)>& f) {
  static int n = 0;
  ++n;
  for (const std::string& attention : test::attention_specs())
    for (const std::string& position : test::encoding_specs())
      for (const bool causal : {false, true}) {
        if (++n % test::by_level(8, 2, 1) != 0 || !test::accepted(position, attention, causal)) continue;
        CAPTURE(position);
        CAPTURE(attention);
        CAPTURE(causal);
        f(position, attention, causal);
      }
}

AttentionFacts facts_for(const std::string& attention, bool causal) { return facts_of_attention(test::attention_of(attention), causal); }
bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }
// With a learned table positions stay below its size.
bool bounded(const std::string& position) {
  for (const Options& o : test::sum_of(position))
    if (o.has("max_len")) return true;
  return false;
}
bool finite(const Tensor& t) {
  const auto v = t.to_vector<double>();
  return std::all_of(v.begin(), v.end(), [](double x) { return std::isfinite(x); });
}
double size_of_largest(const Tensor& t) { return largest_difference(t, zeros_like(t)); }

// x with other tokens in front of and behind it.
Tensor between(const Tensor& x, i64 left, i64 right, double content) {
  const Tensor out = full({x.size(0), x.size(1) + left + right, x.size(2)}, content, kF64);
  const NoGrad off;
  out.narrow(1, left, x.size(1)).copy_(x.detach());
  return out;
}
Tensor keep_between(i64 batch, i64 left, i64 length, i64 right) {
  const Tensor keep = zeros({batch, left + length + right}, kB8);
  keep.narrow(1, left, length).fill_(true);
  return keep;
}

}  // namespace

TEST_CASE("attentions 11.3 no. 22: property 1, no token sees the future, to the bit; property 4, prefixes are prefixes") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    if (!causal) return;
    const Rig rig(position, attention, true);
    const Tensor x = tokens(2, 11), changed = x.clone();
    changed.narrow(1, 6, 5).add_(1.5);
    const Tensor y = rig.y(x, Positions::range(11)).detach(), z = rig.y(changed, Positions::range(11)).detach();
    CHECK(test::difference(y.narrow(1, 0, 6), z.narrow(1, 0, 6)) == "");
    CHECK(largest_difference(y.narrow(1, 6, 5), z.narrow(1, 6, 5)) > 1e-6);
    for (const i64 n : {1, 6, 10}) CHECK(largest_difference(rig.y(x.narrow(1, 0, n), Positions::range(n)), y.narrow(1, 0, n)) < 1e-12);
  });
}

TEST_CASE("property 2 of pairs: padding on either side changes nothing and gets no gradient") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal);
    const Tensor x = tokens(2, 7), y = rig.y(x, Positions::range(7));
    for (const auto& [left, right] : {std::pair<i64, i64>{3, 0}, {0, 3}, {2, 1}}) {
      const Tensor keep = keep_between(2, left, 7, right), wide = between(x, left, right, 1e30).requires_grad_();
      const Tensor out = rig.y(wide, Positions::from_mask(keep), keep);
      CHECK(largest_difference(out.narrow(1, left, 7), y) < 1e-11);
      out.narrow(1, left, 7).sum().backward();
      for (i64 t = 0; t < 7 + left + right; ++t)
        if (t < left || t >= left + 7) CHECK(size_of_largest(wide.grad().select(1, t)) == 0);
      CHECK(finite(wide.grad()));
      CHECK(largest_difference(out.select(1, left ? 0 : 7), rig->out_proj->bias.expand({2, 8})) == 0);
    }
  });
  // In the core, padding may be NaN.
  for (const std::string& attention : test::attention_specs()) {
    CAPTURE(attention);
    const Rig rig("none", attention, false);
    const Tensor keep = make<bool>({1, 6}, {true, true, false, true, true, false});
    const Tensor q = randn({1, 2, 6, 4}, kF64), k = randn({1, 2, 6, 4}, kF64), v = randn({1, 2, 6, 4}, kF64);
    const auto spoilt = [](const Tensor& t) {
      const Tensor s = t.clone();
      for (const i64 at : {2, 5}) s.select(2, at).fill_(test::kNan);
      return s;
    };
    const Tensor own_k = rig->k_proj ? k : Tensor();
    const AttentionInput in{.positions = Positions::from_mask(keep), .key_keep = keep};
    if (test::has(attention, "global=") && !test::has(attention, "projections=false") && test::has(attention, "longformer")) continue;  // its core has no x
    const Tensor bad_q = spoilt(q).requires_grad_(), bad_v = spoilt(v).requires_grad_();
    const Tensor z = rig->core(bad_q, own_k.defined() ? spoilt(k) : Tensor(), bad_v, in).z;
    CHECK(largest_difference(z, rig->core(q, own_k, v, in).z) == 0);
    z.sum().backward();
    CHECK(finite(bad_q.grad()));
    CHECK(size_of_largest(bad_v.grad().select(2, 5)) == 0);
  }
}

TEST_CASE("property 3 of pairs: a row of a batch is the row alone") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal);
    const Tensor x = tokens(3, 9), keep = zeros({3, 9}, kB8);
    const i64 lengths[] = {9, 4, 7};
    for (i64 b = 0; b < 3; ++b) keep.select(0, b).narrow(0, 0, lengths[b]).fill_(true);
    const Tensor y = rig.y(x, Positions::from_mask(keep), keep);
    for (i64 b = 0; b < 3; ++b) {
      const i64 n = lengths[b];
      CHECK(largest_difference(rig.y(x.narrow(0, b, 1).narrow(1, 0, n), Positions::range(n)), y.narrow(0, b, 1).narrow(1, 0, n)) < 1e-12);
    }
  });
}

TEST_CASE("property 5 of pairs: a shift of all positions changes nothing") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    // The global blocks of bigbird are the first and last ones: they do not move.
    if (starts_with(attention, "bigbird")) return;
    const Rig rig(position, attention, causal);
    if (!test::shift_invariant(rig->encodings(), 384 + 9)) return;
    const Tensor x = tokens(2, 9);
    // A multiple of every block: 2, 3, 4, 64.
    CHECK(largest_difference(rig.y(x, Positions::range(9)), rig.y(x, Positions::range(9, 384))) < 1e-9);
  });
  // Blocks move with the shift of the call as they do with positions.
  for (const std::string attention : {"local(block=4)", "fixed(stride=4, c=2)", "local(block=3, before=1)"}) {
    const Rig rig("none", attention, true);
    const Tensor x = tokens(1, 10);
    for (const i64 s : {1, 2, 5}) {
      const Tensor shifted = (*rig)({.x = x, .positions = Positions::range(10), .shift = s}).y;
      CHECK(largest_difference(shifted, rig.y(x, Positions::range(10, s))) < 1e-13);
      if (s == 1) CHECK(largest_difference(shifted, rig.y(x, Positions::range(10))) > 1e-6);
    }
    CHECK(facts_for(attention, true).topology_sensitive);
  }
  const Rig strided("none", "strided(stride=4)", true);
  const Tensor x = tokens(1, 10);
  CHECK(largest_difference((*strided)({.x = x, .positions = Positions::range(10), .shift = 3}).y, strided.y(x, Positions::range(10))) == 0);
  CHECK_FALSE(facts_for("strided", true).topology_sensitive);
}

TEST_CASE("property 6 of pairs: without an encoding, routing and dense see a set") {
  const std::vector<i64> order = {3, 0, 5, 1, 4, 2, 6};
  const auto reordered = [&](const Tensor& t) {
    std::vector<Tensor> list;
    for (const i64 i : order) list.push_back(t.narrow(1, i, 1));
    return cat(list, 1);
  };
  for (const char* attention : {"dense", "routing(clusters=3)", "routing(clusters=2, window=3)"}) {
    const Rig rig("none", attention, false);
    const Tensor x = tokens(2, 7);
    CHECK(largest_difference(rig.y(reordered(x), {}), reordered(rig.y(x, {}))) < 1e-12);
  }
}

TEST_CASE("property 7 of pairs: weights, terms and score parts reproduce what happens") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal, false);
    const Tensor keep = keep_between(2, 1, 6, 1);
    const AttentionInput in{.x = tokens(2, 8), .positions = Positions::from_mask(keep), .key_keep = keep};
    const Tensor weights = rig->implied_weights(in);
    const auto sums = sum(weights, -1).to_vector<double>();
    for (const double s : sums) CHECK((std::abs(s - 1) < 1e-12 || s == 0));
    Tensor z;
    for (const ImpliedTerm& t : rig->implied_terms(in)) {
      const Tensor part = matmul(t.weights, t.values);
      z = z.defined() ? z + part : part;
    }
    CHECK(largest_difference(z.transpose(1, 2).reshape({2, 8, 8}), (*rig)(in).y) < 1e-12);
    AttentionInput asked = in;
    asked.want_weights = true;
    CHECK(largest_difference((*rig)(asked).weights, weights) < 1e-14);
    const auto parts = rig->score_parts(in);
    Tensor total;
    for (const ScorePart& p : parts)
      if (!p.multiplier && p.name != "total") total = total.defined() ? total + p.value : p.value;
    CHECK(parts.back().name == "total");
    CHECK(largest_difference(total, parts.back().value) < 1e-11);
    // Two weights of a row differ by their logits; routing averages over clusters, longformer's parts are those of its rows.
    if (starts_with(attention, "routing")) return;
    const Tensor e = parts.back().value;
    for (i64 i = 1; i < 7; ++i) {
      i64 first = -1;
      for (i64 j = 0; j < 8; ++j) {
        const double w = weights.at<double>({1, 1, i, j});
        if (w == 0) continue;
        if (first < 0) first = j;
        CHECK(std::log(w / weights.at<double>({1, 1, i, first})) ==
              doctest::Approx(e.at<double>({1, 1, i, j}) - e.at<double>({1, 1, i, first})).epsilon(1e-9));
      }
    }
  });
}

TEST_CASE("property 9 of pairs: first and second order gradients") {
  // Every attention with encodings of each site, every encoding with some attentions.
  const std::vector<std::string> some_encodings = {"none", "rope", "shaw(clip=2, values=true)", "huang-m1(clip=2)"},
                                 some_attentions = {"fixed(stride=3, c=1)", "longformer(window=1, global=1)", "reformer(chunk=3, hashes=2)"};
  const auto contains = [](const std::vector<std::string>& list, const std::string& s) { return std::find(list.begin(), list.end(), s) != list.end(); };
  int n = 0;
  each_pair([&](const std::string& position, const std::string& attention, bool causal) {
    if (!contains(some_encodings, position) && !contains(some_attentions, attention)) return;
    if (++n % test::by_level(6, 3, 1) != 0) return;
    const Rig rig(position == "learned" ? "learned(max_len=8)" : position, attention, causal);
    const Tensor keep = make<bool>({2, 5}, {true, true, true, true, true, true, true, false, true, true});
    std::vector<Tensor> inputs = {tokens(2, 5).requires_grad_()};
    for (const NamedParameter& p : rig->named_parameters())
      if (starts_with(p.name, "position.") || starts_with(p.name, "attention.") || p.name == "q_proj.weight") inputs.push_back(p.tensor);
    const TensorFunction f = [&](const std::vector<Tensor>& v) {
      return std::vector<Tensor>{(*rig)({.x = v[0], .positions = Positions::from_mask(keep), .key_keep = keep}).y};
    };
    // A choice by content changes at some points: steps that rarely meet one.
    const bool choice = facts_for(attention, causal).content_pattern;
    const double step = choice ? 1e-5 : 1e-3;
    const GradcheckReport one = gradcheck(f, inputs, {.rtol = choice ? 1e-5 : 1e-6, .step = step, .all_elements = 24});
    CHECK_MESSAGE(one.passed, one.message);
    if (n % 4 != 0 && test::level() != test::Level::full) return;
    const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = choice ? 1e-4 : 1e-5, .atol = 1e-7, .step = step, .all_elements = 8});
    CHECK_MESSAGE(two.passed, two.message);
  });
}

TEST_CASE("property 11 of pairs: bit-equal for 1, 2 and 4 threads; centroids and parameters are the whole state") {
  for (const std::string& attention : test::attention_specs()) {
    CAPTURE(attention);
    const Rig rig("huang-m4(clip=2)", attention, false);
    const Tensor x = tokens(3, 48).requires_grad_(), g = randn({3, 48, 8}, kF64);
    const int before = num_threads();
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const Tensor y = rig.y(x, Positions::range(48));
      const GradMap m = grad(std::vector<Tensor>{y}, std::vector<Tensor>{x, rig->q_proj.weight}, {.seeds = {g}});
      std::vector<Tensor> now = {y.detach()};
      for (const GradMap::Entry& e : m) now.push_back(e.grad);
      if (first.empty()) first = now;
      CHECK(test::difference_of(first, now) == "");
    }
    set_num_threads(before);
    const Rig other("huang-m4(clip=2)", attention, false);
    other->load_state_dict(rig->state_dict());
    CHECK(test::difference(other.y(x, Positions::range(48)).detach(), first[0]) == "");
  }
}

TEST_CASE("attentions 11.3 no. 15: property 12, constant values stay what they are") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal, false);
    for (const Options& o : rig->encodings())
      if (encoding_info(o.name()).facts(o, causal, false).value_side) return;
    {
      const NoGrad off;
      for (const NamedParameter& p : rig->named_parameters()) {
        if (!test::has(p.name, "v_proj")) continue;
        if (test::has(p.name, "weight")) p.tensor.zero_();
        else p.tensor.fill_(0.75);
      }
    }
    const AttentionInput in{.x = tokens(2, 9), .positions = Positions::range(9)};
    const Tensor y = (*rig)(in).y, rows = sum(rig->implied_weights(in), -1);  // [B, H, L]: 1, or 0 without a key
    for (i64 i = 0; i < 9; ++i)
      for (i64 h = 0; h < 2; ++h) {
        const double expected = rows.at<double>({1, h, i}) > 0.5 ? 0.75 : 0;
        CHECK(y.at<double>({1, i, 4 * h}) == doctest::Approx(expected).epsilon(1e-13));
      }
  });
}

TEST_CASE("property 13 of pairs: every length") {
  int n = 0;
  each_pair([&](const std::string& position, const std::string& attention, bool causal) {
    if (bounded(position) || ++n % 3 != 0) return;
    const Rig rig(position, attention, causal);
    for (const i64 length : {0, 1, 2, 3, 4, 5, 8, 65}) {
      CAPTURE(length);
      const Tensor x = tokens(2, length).requires_grad_(), y = rig.y(x, Positions::range(length));
      CHECK(y.shape() == Shape{2, length, 8});
      CHECK(finite(y));
      y.sum().backward();
      if (length) CHECK(finite(x.grad()));
      CHECK(rig.y(tokens(0, length), Positions::range(length)).shape() == Shape{0, length, 8});
    }
  });
}

TEST_CASE("attentions 11.3 no. 6: property 14, a call leaves nothing behind, and training computes what evaluation does") {
  each_pair([](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal);
    const Tensor a = tokens(2, 5), b = tokens(1, 40);
    const Tensor first = rig.y(a, Positions::range(5)).detach();
    (void)rig.y(b, Positions::range(40));
    CHECK(test::difference(rig.y(a, Positions::range(5)).detach(), first) == "");
    if (starts_with(attention, "routing")) return;                                 // training moves the centroids
    if (starts_with(attention, "reformer")) return;                                // and draws new hashes: below
    rig->train();
    CHECK(test::difference(rig.y(a, Positions::range(5)).detach(), first) == "");
  });
  // With hashes that are given, or that are never redrawn.
  const Rig rig("none", "reformer(chunk=2, hashes=2, redraw=never)", false);
  const Tensor x = tokens(2, 9), y = rig.y(x, {}).detach();
  rig->train();
  CHECK(test::difference(rig.y(x, {}).detach(), y) == "");
  const Rig drawn("none", "reformer(buckets=4, chunk=2, hashes=2)", false);
  const Tensor hash = randn({2, 4, 2, 2}, kF64);
  const auto with_hash = [&](bool train) {
    drawn->train(train);
    const RandomScope scope(1);
    DrawBuffer buffer{.dtype = kF64, .shape = {2, 4, 2, 2}, .bytes = {}};
    const auto* bytes = reinterpret_cast<const std::byte*>(hash.data<double>());
    buffer.bytes.assign(bytes, bytes + hash.numel() * 8);
    current_generator().inject("attention.hash", {buffer});
    const Tensor out = drawn.y(x, {}).detach();
    current_generator().finish_injection();
    return out;
  };
  CHECK(test::difference(with_hash(true), with_hash(false)) == "");
  // Redrawn in every step of training, shared by its micro-batches.
  drawn->train();
  const auto in_step = [&](u64 step, u64 first) {
    const DrawScope scope(step, first);
    return drawn.y(x, {}).detach();
  };
  CHECK(test::difference(in_step(3, 0), in_step(3, 2)) == "");
  CHECK(test::difference(in_step(3, 0), in_step(4, 0)) != "");
}

TEST_CASE("attentions 11.3 no. 14: property 15, every parameter is alive, but for those that the judge names") {
  // A window of one token shows nothing of an exponent of distances, and a unit of a small MLP may be off in one call: a
  // parameter of an encoding must be alive beside some attention, and one of an attention beside some encoding.
  std::map<std::string, double> largest;
  each_pair([&](const std::string& position, const std::string& attention, bool causal) {
    const Rig rig(position, attention, causal);
    sum(rig.y(tokens(2, 12), Positions::range(12)) * randn({2, 12, 8}, kF64)).backward();
    const auto zero = invariant_parameters(rig->encodings(), rig->options());
    for (const NamedParameter& p : rig->named_parameters()) {
      CAPTURE(p.name);
      REQUIRE(p.tensor.grad().defined());
      if (std::find(zero.begin(), zero.end(), p.name) != zero.end()) CHECK(size_of_largest(p.tensor.grad()) < 1e-12);
      else if (const bool of_encoding = starts_with(p.name, "position."); of_encoding || starts_with(p.name, "attention.")) {
        double& most = largest[(of_encoding ? position : attention) + ": " + p.name];
        most = std::max(most, size_of_largest(p.tensor.grad()));
      } else {
        CHECK(size_of_largest(p.tensor.grad()) > 1e-9);
      }
    }
  });
  CHECK(largest.size() > 20);
  for (const auto& entry : largest) CHECK_MESSAGE(entry.second > 1e-9, entry.first << " gets no gradient anywhere");
}

TEST_CASE("property 16 of pairs: scores of 4e8 in f32 stay finite, forward and backward") {
  for (const std::string& attention : test::attention_specs()) {
    if (starts_with(attention, "longformer") && test::has(attention, "global") && !test::has(attention, "projections=false")) continue;
    CAPTURE(attention);
    const auto module = make_attention(nullptr, "", resolve_attention({.embed_dim = 8, .num_heads = 2, .position = "shaw(clip=2)", .attention = attention}));
    const auto& a = dynamic_cast<ProjectedAttention&>(*module);
    const Tensor q = (randn({1, 2, 9, 4}) * 1e4).requires_grad_(), k = (randn({1, 2, 9, 4}) * 1e4).requires_grad_();
    const Tensor z = a.core(q, a.k_proj ? k : Tensor(), k, {.positions = Positions::range(9)}).z;
    z.sum().backward();
    CHECK(finite(z));
    CHECK(finite(q.grad()));
    CHECK(finite(k.grad()));
  }
}
