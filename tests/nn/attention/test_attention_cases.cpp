// Oracles and limits of the attentions, and faults that users of other libraries reported (attentions 11.1 no. 8, 11.2,
// 11.3: the numbers in the names).
#include <cmath>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/join.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "models/language_model.h"
#include "nn/attention/mask_report.h"
#include "nn/module/auxiliary.h"
#include "tests/nn/rig.h"
#include "tests/test_level.h"
#include "train/optim/adam.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;
using test::largest_difference;
using test::make;
using test::Rig;
using test::tokens;

namespace {

const std::vector<std::string> kPatterns = {"local(window=2)", "local(block=3)", "strided(stride=3)", "fixed(stride=4, c=1)",
                                            "longformer(window=2)", "bigbird(block=2, window=1, global=1, random=1)"};

// The same parameters under another attention.
void share(const Rig& from, const Rig& to) { to->load_state_dict(from->state_dict(), false); }

AttentionInput call_of(const Tensor& x) { return {.x = x, .positions = Positions::range(x.size(1))}; }
Tensor weights_of(const Rig& rig, const AttentionInput& in) { return rig->implied_weights(in); }

// The weights of local(block=size) are those of tokens i/size = j/size.
void check_blocks(const Rig& rig, i64 size, i64 length) {
  CAPTURE(size);
  CAPTURE(length);
  const Tensor w = weights_of(rig, call_of(tokens(1, length)));
  bool equal = true;
  for (i64 i = 0; i < length; ++i)
    for (i64 j = 0; j < length; ++j) equal = equal && (w.at<double>({0, 1, i, j}) > 0) == (i / size == j / size);
  CHECK(equal);
}

void check_equal_attentions(const std::string& a, const std::string& b, i64 length, bool causal = false) {
  CAPTURE(a);
  CAPTURE(b);
  CAPTURE(length);
  const Rig one("huang-m4(clip=2)", a, causal), two("huang-m4(clip=2)", b, causal);
  share(one, two);
  const Tensor x = tokens(2, length), xa = x.clone().requires_grad_(), xb = x.clone().requires_grad_(), g = randn({2, length, 8}, kF64);
  const Tensor ya = one.y(xa, Positions::range(length)), yb = two.y(xb, Positions::range(length));
  CHECK(largest_difference(ya, yb) < 1e-12);
  ya.backward(g);
  yb.backward(g);
  CHECK(largest_difference(xa.grad(), xb.grad()) < 1e-11);
  CHECK(largest_difference(one->q_proj.weight.grad(), two->q_proj.weight.grad()) < 1e-11);
}

}  // namespace

TEST_CASE("attentions 11.1 no. 8: limits are dense attention") {
  for (const i64 length : {1, 5, 9})
    for (const bool causal : {false, true}) {
      check_equal_attentions(fmt::format("local(window={})", length - 1), "dense", length, causal);
      check_equal_attentions(fmt::format("local(block={})", length), "dense", length, causal);
      check_equal_attentions("strided(stride=1)", "dense", length, causal);
      check_equal_attentions(fmt::format("strided(stride={})", length), "dense", length, causal);
      check_equal_attentions("fixed(stride=3, c=3)", "dense", length, causal);
      check_equal_attentions(fmt::format("fixed(stride={}, c=1)", length), "dense", length, causal);
      check_equal_attentions(fmt::format("longformer(window={})", length - 1), "dense", length, causal);
      check_equal_attentions(fmt::format("bigbird(block={})", length), "dense", length, causal);
      check_equal_attentions("bigbird(block=2, window=1, global=0, random=9)", "dense", length, causal);
      if (!causal) check_equal_attentions("routing(clusters=1)", "dense", length);
    }
  // One chunk of reformer: every other token, by one vector for queries and keys.
  const Rig reformer("none", "reformer(chunk=9, hashes=3, key_eps=0.1)", false);
  const Tensor x = tokens(2, 7);
  const Rig dense("none", "dense", false);
  const auto heads = [](const Tensor& t) { return t.view({2, 7, 2, 4}).transpose(1, 2); };
  const Tensor q = heads(reformer->q_proj(x)), k = q / sqrt(mean(square(q), -1, true) + 0.1), v = heads(reformer->v_proj(x));
  const Tensor z = dense->core(q, k, v, {.positions = Positions::range(7), .mask = ~Mask::window(0, 0)}).z;
  CHECK(largest_difference((*reformer)(call_of(x)).y, (*reformer->out_proj)(z.transpose(1, 2).reshape({2, 7, 8}))) < 1e-12);
}

TEST_CASE("attentions oracle 5: rounds of hashes that count a pair once are the softmax over all pairs that met") {
  const Rig once("rope", "reformer(buckets=4, chunk=2, hashes=3)", false), count("rope", "reformer(buckets=4, chunk=2, hashes=3, duplicates=count)", false);
  share(once, count);
  const Tensor x = tokens(2, 11);
  const Tensor w = weights_of(once, call_of(x)), e = once->score_parts(call_of(x)).back().value, wc = weights_of(count, call_of(x));
  bool several = false, differ = false;
  for (i64 i = 0; i < 11; ++i) {
    double z = 0;
    for (i64 j = 0; j < 11; ++j)
      if (w.at<double>({0, 1, i, j}) > 0) z += std::exp(e.at<double>({0, 1, i, j}));
    for (i64 j = 0; j < 11; ++j) {
      if (w.at<double>({0, 1, i, j}) > 0)
        CHECK(w.at<double>({0, 1, i, j}) == doctest::Approx(std::exp(e.at<double>({0, 1, i, j})) / z).epsilon(1e-12));
      CHECK((w.at<double>({0, 1, i, j}) > 0) == (wc.at<double>({0, 1, i, j}) > 0));
    }
    CHECK(w.at<double>({0, 1, i, i}) == 0);
  }
  // With `count` a weight is as often in the sum as its pair met: N from the score parts.
  for (const ScorePart& p : count->score_parts(call_of(x)))
    if (p.name == "visits")
      for (const double v : p.value.to_vector<double>()) {
        const double n = std::exp(v);
        CHECK(std::abs(n - std::round(n)) < 1e-9);
        CHECK(n < 3.5);
        several = several || n > 1.5;
      }
  differ = largest_difference(w, wc) > 1e-3;
  CHECK(several);
  CHECK(differ);
  // One round: no pair meets twice.
  check_equal_attentions("reformer(buckets=4, chunk=2, hashes=1)", "reformer(buckets=4, chunk=2, hashes=1, duplicates=count)", 9);
  check_equal_attentions("reformer(buckets=4, chunk=2, hashes=1)", "reformer(buckets=4, chunk=2, hashes=1, wrap=chain)", 9);
}

TEST_CASE("attentions oracle 10: the mean of routing, cluster by cluster") {
  const Rig rig("none", "routing(clusters=3, window=4)", false, false);
  const Tensor x = tokens(1, 8), mu = rig->named_buffers()[0].second;
  const auto heads = [](const Tensor& t) { return t.view({1, 8, 2, 4}).transpose(1, 2); };
  const Tensor q = heads(rig->q_proj(x)), k = heads((*rig->k_proj)(x)), v = heads(rig->v_proj(x)), y = (*rig)(call_of(x)).y;
  const auto vector = [](const Tensor& t, i64 h, i64 i) {
    std::vector<double> out;
    for (i64 e = 0; e < 4; ++e) out.push_back(t.at<double>({0, h, i, e}));
    return out;
  };
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]; };
  bool none = false;
  for (i64 h = 0; h < 2; ++h) {
    std::vector<std::vector<double>> sum(8, std::vector<double>(4, 0));
    std::vector<int> clusters(8, 0);
    for (i64 c = 0; c < 3; ++c) {
      const std::vector<double> centre = {mu.at<double>({h, c, 0}), mu.at<double>({h, c, 1}), mu.at<double>({h, c, 2}), mu.at<double>({h, c, 3})};
      const auto nearest = [&](const Tensor& t) {
        std::vector<std::pair<double, i64>> list;
        for (i64 i = 0; i < 8; ++i) {
          const auto u = vector(t, h, i);
          list.emplace_back(-dot(u, centre) / std::sqrt(dot(u, u)), i);
        }
        std::sort(list.begin(), list.end());
        list.resize(4);
        return list;
      };
      const auto queries = nearest(q), keys = nearest(k);
      for (const auto& [nq, i] : queries) {
        double total = 0;
        std::vector<double> mixed(4, 0);
        for (const auto& [nk, j] : keys) {
          const double w = std::exp(dot(vector(q, h, i), vector(k, h, j)) / 2);
          total += w;
          for (size_t e = 0; e < 4; ++e) mixed[e] += w * vector(v, h, j)[e];
        }
        for (size_t e = 0; e < 4; ++e) sum[static_cast<size_t>(i)][e] += mixed[e] / total;
        ++clusters[static_cast<size_t>(i)];
      }
    }
    for (i64 i = 0; i < 8; ++i)
      for (i64 e = 0; e < 4; ++e) {
        const int n = clusters[static_cast<size_t>(i)];
        none = none || n == 0;
        CHECK(y.at<double>({0, i, 4 * h + e}) == doctest::Approx(n ? sum[static_cast<size_t>(i)][static_cast<size_t>(e)] / n : 0).epsilon(1e-12));
      }
  }
  // Training: a loss, and centroids that move towards their tokens; evaluation does neither.
  const Tensor before = mu.clone();
  (void)rig.y(x, {});
  CHECK(test::difference(mu, before) == "");
  rig->train();
  const AuxiliaryLosses collected;
  const AttentionOutput out = (*rig)(call_of(x));
  REQUIRE(collected.auxiliary_losses().size() == 1);
  CHECK(collected.auxiliary_losses()[0].first == "commitment");
  CHECK(out.auxiliary_losses[0].second.item<double>() > 0);
  CHECK(out.auxiliary_losses[0].second.item<double>() < 1e-4 * 4.0 / 4);  // unit vectors: at most 4 a token, of 4 numbers
  out.auxiliary_losses[0].second.backward();
  CHECK(largest_difference(rig->q_proj.weight.grad(), zeros({8, 8}, kF64)) > 0);
  CHECK(largest_difference(mu, before) > 1e-6);
  CHECK(largest_difference(mu, before) < 2.1e-3);
}

TEST_CASE("attentions oracle 10: longformer with equal projections is masked dense attention; a checkpoint without them gives copies") {
  const Rig dense("shaw(clip=2)", "dense", false), global("shaw(clip=2)", "longformer(window=1, global=2)", false);
  // dense has no global projections: they become those that it has.
  const LoadReport report = global->load_state_dict(dense->state_dict());
  CHECK(report.missing.empty());
  const Tensor x = tokens(2, 9);
  AttentionInput in = call_of(x);
  const Tensor y = (*global)(in).y;
  in.mask = Mask::window(1, 1) | Mask::global_first(2);
  CHECK(largest_difference(y, (*dense)(in).y) < 1e-12);
  // Its own state has both, and they differ.
  for (const NamedParameter& p : global->named_parameters())
    if (has(p.name, "global_v_proj.bias")) {
      const NoGrad off;
      p.tensor.add_(1);
    }
  const Rig again("shaw(clip=2)", "longformer(window=1, global=2)", false);
  again->load_state_dict(global->state_dict());
  CHECK(test::difference(again.y(x, Positions::range(9)).detach(), global.y(x, Positions::range(9)).detach()) == "");
  CHECK(largest_difference(again.y(x, Positions::range(9)).narrow(1, 0, 2), y.narrow(1, 0, 2)) > 1e-3);
  CHECK(largest_difference(again.y(x, Positions::range(9)).narrow(1, 2, 7), y.narrow(1, 2, 7)) < 1e-12);
}

TEST_CASE("attentions 11.3 no. 1: a length that is no multiple of window or block: every row, equal to dense under the mask") {
  const std::vector<std::pair<std::string, Mask>> list = {
      {"local(window=3)", Mask::window(3, 3)}, {"local(block=4)", Mask::blocks(4)}, {"local(block=4, before=1)", Mask::blocks(4, 1)},
      {"strided(stride=4)", Mask::window(3, 3) | Mask::strided(4)}, {"fixed(stride=4, c=2)", Mask::blocks(4) | Mask::summary(4, 2)},
      {"longformer(window=2, global=1, projections=false)", Mask::window(2, 2) | Mask::global_first(1)},
      {"longformer(window=1, dilation=[1,3])", Mask::heads({Mask::window(1, 1), Mask::window(1, 1, 3)})},
      {"strided(stride=3, heads=split)", Mask::heads({Mask::window(2, 2), Mask::strided(3)})}};
  for (const auto& entry : list)
    for (const i64 length : {1, 3, 7, 11, 13}) {
      const std::string& spec = entry.first;
      const Mask& mask = entry.second;
      CAPTURE(spec);
      CAPTURE(length);
      const Rig rig("rope", spec, false), dense("rope", "dense", false);
      share(rig, dense);
      const Tensor x = tokens(2, length);
      AttentionInput in = call_of(x);
      const Tensor y = (*rig)(in).y;
      CHECK(y.shape() == Shape{2, length, 8});
      in.mask = mask;
      CHECK(largest_difference(y, (*dense)(in).y) < 1e-13);
    }
}

TEST_CASE("attentions 11.3 no. 3 and no. 25: a window that is all padding, a row that is masked: zeros, finite gradients") {
  for (const std::string& spec : test::attention_specs()) {
    CAPTURE(spec);
    const Rig rig("shaw(clip=1, values=true)", spec, false);
    const Tensor x = tokens(2, 12).requires_grad_();
    // Row 0 keeps its last tokens only, without positions in common; row 1 has documents of which one is nothing.
    const Tensor keep = ones({2, 12}, kB8);
    keep.select(0, 0).narrow(0, 0, 9).fill_(false);
    AttentionInput in{.x = x, .positions = Positions::range(12), .key_keep = keep, .query_keep = ones({2, 12}, kB8), .mask = Mask::parse("documents(input)")};
    std::vector<i64> ids(12, 0);
    ids[4] = -1;
    in.arrays.documents = tensor(ids, kI64);
    const Tensor y = (*rig)(in).y, w = weights_of(rig, in);
    CHECK(largest_difference(y.select(1, 4), rig->out_proj->bias.expand({2, 8})) == 0);
    CHECK(largest_difference(w.select(2, 4), zeros({2, 2, 12})) == 0);
    y.sum().backward();
    for (const double g : x.grad().to_vector<double>()) CHECK(std::isfinite(g));
    for (const NamedParameter& p : rig->named_parameters())
      if (p.tensor.grad().defined())
        for (const double g : p.tensor.grad().to_vector<double>()) CHECK(std::isfinite(g));
  }
  const Rig local("none", "local(window=1)", false);
  const Tensor keep = make<bool>({1, 6}, {true, false, false, false, true, true});
  const Tensor y = (*local)({.x = tokens(1, 6), .positions = Positions::range(6), .key_keep = keep, .query_keep = ones({1, 6}, kB8)}).y;
  CHECK(largest_difference(y.select(1, 2), local->out_proj->bias.expand({1, 8})) == 0);
}

TEST_CASE("attentions 11.3 no. 7 and no. 9: random blocks are the same in training and evaluation; the last global block is there at every length") {
  const Rig rig("none", "bigbird(block=2, window=1, global=2, random=2, seed=4)", false);
  const Tensor x = tokens(1, 21);
  const Tensor w = weights_of(rig, call_of(x));
  rig->train();
  CHECK(test::difference(weights_of(rig, call_of(x)), w) == "");
  const Rig other("none", "bigbird(block=2, window=1, global=2, random=2, seed=5)", false);
  share(rig, other);
  CHECK(largest_difference(weights_of(other, call_of(x)), w) > 0);
  for (i64 length = 1; length <= 23; ++length) {
    const Tensor now = weights_of(rig, call_of(tokens(1, length)));
    const i64 last = (length - 1) / 2 * 2;
    for (i64 i = 0; i < length; ++i)
      for (i64 j = 0; j < length; ++j)
        if (j < 2 || j >= last || i < 2 || i >= last) CHECK(now.at<double>({0, 0, i, j}) > 0);
  }
}

TEST_CASE("attentions 11.3 no. 10: block sizes 1 to 15, also beyond the length") {
  const Tensor x = tokens(1, 11);
  for (i64 b = 1; b <= 15; ++b)
    for (const char* form : {"local(block={})", "fixed(stride={}, c=1)", "strided(stride={})", "bigbird(block={}, random=1)", "reformer(chunk={}, hashes=2)"}) {
      const std::string spec = fmt::format(fmt::runtime(form), b);
      CAPTURE(spec);
      const Rig rig("none", spec, false, false);
      const Tensor w = weights_of(rig, call_of(x));
      for (const double s : sum(w, -1).to_vector<double>()) CHECK(s == doctest::Approx(1).epsilon(1e-12));
    }
  for (i64 b = 1; b <= 15; ++b) check_blocks(Rig("none", fmt::format("local(block={})", b), false, false), b, 11);
}

TEST_CASE("attentions 11.3 no. 11 and no. 24: 1,025 tokens with mask and score terms: a row is what its neighbourhood gives, with its gradients") {
  const Rig rig("huang-m4(clip=3)", "local(window=3)", false);
  const Tensor x = tokens(1, 1025).requires_grad_();
  const Tensor y = rig.y(x, Positions::range(1025));
  const Tensor g = randn({1, 8}, kF64);
  for (const i64 row : {0, 1, 511, 1023, 1024}) {
    const i64 from = std::max<i64>(0, row - 3), to_row = std::min<i64>(1025, row + 4);
    const Tensor near = x.detach().narrow(1, from, to_row - from).clone().requires_grad_();
    const Tensor small = rig.y(near, Positions::range(to_row - from, from));
    CHECK(largest_difference(small.select(1, row - from), y.select(1, row)) < 1e-12);
    const std::vector<Tensor> wanted = {x, rig->position.named_parameters()[0].tensor};
    const GradMap big = grad(std::vector<Tensor>{y.select(1, row)}, wanted, {.seeds = {g}, .retain_graph = true});
    const GradMap own = grad(std::vector<Tensor>{small.select(1, row - from)}, std::vector<Tensor>{near, wanted[1]}, {.seeds = {g}});
    CHECK(largest_difference(big.begin()->grad.narrow(1, from, to_row - from), own.begin()->grad) < 1e-12);
    CHECK(largest_difference((big.begin() + 1)->grad, (own.begin() + 1)->grad) < 1e-12);
    const double whole = sum(square(big.begin()->grad)).item<double>(), part = sum(square(own.begin()->grad)).item<double>();
    CHECK(std::abs(whole - part) < 1e-12 * std::max(1.0, whole));
  }
}

TEST_CASE("attentions 11.3 no. 13: weights cover local and global pairs, [L, L], and their rows sum to 1") {
  const Rig rig("none", "longformer(window=1, global=2)", false, false);
  const Tensor w = weights_of(rig, call_of(tokens(1, 9)));
  CHECK(w.shape() == Shape{1, 2, 9, 9});
  for (i64 i = 0; i < 9; ++i)
    for (i64 j = 0; j < 9; ++j) CHECK((w.at<double>({0, 1, i, j}) > 0) == (i < 2 || j < 2 || std::abs(i - j) <= 1));
  for (const double s : sum(w, -1).to_vector<double>()) CHECK(s == doctest::Approx(1).epsilon(1e-13));
}

TEST_CASE("attentions 11.3 no. 14: the global tokens of a call are used, and only where they are given") {
  const Rig rig("none", "longformer(window=1, global=input)", false);
  const Tensor x = tokens(2, 8);
  AttentionInput in = call_of(x);
  CHECK(error_text([&] { (void)(*rig)(in); }) == "attention: longformer(window=1, global=input) needs the array `global` of the call, b8 [B, L]");
  in.arrays.global = zeros({2, 8}, kB8);
  const Tensor none = (*rig)(in).y;
  const Rig local("none", "local(window=1)", false);
  share(rig, local);
  CHECK(largest_difference(none, local.y(x, Positions::range(8))) < 1e-13);
  in.arrays.global[1].narrow(0, 5, 1).fill_(true);
  const Tensor one = (*rig)(in).y;
  CHECK(largest_difference(one[0], none[0]) == 0);
  for (i64 i = 0; i < 8; ++i) CHECK((largest_difference(one[1].narrow(0, i, 1), none[1].narrow(0, i, 1)) > 1e-9) == (i == 5 || i < 4 || i > 6));
  // A call without a global token gives zero gradients to their projections.
  in.arrays.global = zeros({2, 8}, kB8);
  (*rig)(in).y.sum().backward();
  for (const NamedParameter& p : rig->named_parameters())
    if (has(p.name, "global_")) CHECK((!p.tensor.grad().defined() || largest_difference(p.tensor.grad(), zeros_like(p.tensor)) == 0));
  const Rig plain("none", "longformer(window=1)", false);
  for (const NamedParameter& p : plain->named_parameters()) CHECK_FALSE(has(p.name, "global"));
}

TEST_CASE("attentions 11.3 no. 20: reformer honours masks in every call, and odd shapes") {
  const Rig rig("none", "reformer(chunk=2, hashes=2)", false, false);
  for (const i64 length : {1, 3, 7, 10})
    for (int call = 0; call < 2; ++call) {
      const Tensor keep = ones({2, length}, kB8);
      keep.select(0, 1).narrow(0, 0, length / 2).fill_(false);
      std::vector<i64> ids;
      for (i64 i = 0; i < length; ++i) ids.push_back(i % 2);
      AttentionInput in{.x = tokens(2, length), .key_keep = keep, .mask = Mask::parse("documents(input)")};
      in.arrays.documents = tensor(ids, kI64);
      const Tensor w = weights_of(rig, in);
      for (i64 b = 0; b < 2; ++b)
        for (i64 i = 0; i < length; ++i)
          for (i64 j = 0; j < length; ++j)
            if (w.at<double>({b, 0, i, j}) > 0) CHECK((i % 2 == j % 2 && keep.at<bool>({b, i}) && keep.at<bool>({b, j})));
    }
}

TEST_CASE("attentions 11.3 no. 26: score terms in cross-attention need the positions of both sides") {
  for (const std::string spec : {"dense", "routing(clusters=2)"}) {
    AttentionConfig c;
    c.attention = spec;
    c.cross = true;
    const Rig rig("huang-m4(clip=2)", false, c);
    const Tensor x = tokens(2, 4), context = tokens(2, 6);
    CHECK(error_text([&] { (void)(*rig)({.x = x, .context = context}); }) == "attention: positions are missing: huang-m4 reads them");
    CHECK(error_text([&] { (void)(*rig)({.x = x, .context = context, .positions = Positions::range(4)}); }) ==
          "attention: context_positions are missing: huang-m4 reads them");
    CHECK((*rig)({.x = x, .context = context, .positions = Positions::range(4), .context_positions = Positions::range(6)}).y.shape() == Shape{2, 4, 8});
  }
  for (const std::string& spec : kPatterns)
    CHECK(has(error_text([&] { (void)resolve_attention({.embed_dim = 8, .attention = spec, .cross = true}); }),
              "has no cross-attention: its pattern reads the positions of one sequence; use dense"));
}

TEST_CASE("attentions 11.3 no. 27: no length has to factorise") {
  for (const std::string& spec : test::attention_specs()) {
    CAPTURE(spec);
    const Rig rig("none", spec, false);
    for (const i64 length : {1, 2, 3, 5, 7, 11, 13, 17, 19, 23}) {
      const Tensor y = rig.y(tokens(1, length), Positions::range(length));
      CHECK(y.shape() == Shape{1, length, 8});
      for (const double v : y.to_vector<double>()) CHECK(std::isfinite(v));
    }
  }
  // The tokens behind the last whole block are a block as any other.
  const Rig rig("none", "local(block=3)", false, false);
  for (const i64 length : {1, 2, 5, 7, 11, 13, 23}) check_blocks(rig, 3, length);
}

TEST_CASE("attentions 11.3 no. 22: property 10, a causal model of random tokens learns nothing") {
  const i64 vocabulary = 7, length = 24;
  for (const char* spec : {"dense", "local(block=4)", "strided(stride=3)", "fixed(stride=4, c=1)", "longformer(window=2, global=1)",
                           "bigbird(block=2, window=1, global=1, random=1)"}) {
    CAPTURE(spec);
    const RandomScope draws(5);
    models::LanguageModel model({.vocab_size = vocabulary, .encoder = {.embed_dim = 16, .num_heads = 2, .num_layers = 1, .ffn_dim = 32,
                                                                       .position = "huang-m2(clip=4)", .attention = spec, .causal = true}});
    train::Adam optimizer(model.parameters(), {.lr = 0.02});
    double total = 0, squares = 0, count = 0;
    const int steps = test::by_level(30, 60, 200);
    for (int step = 0; step < steps; ++step) {
      const Tensor ids = randint(0, vocabulary, {8, length + 1});
      const Tensor logits = model(ids.narrow(1, 0, length), {.positions = Positions::range(length)});
      const Tensor loss = cross_entropy(logits.reshape({-1, vocabulary}), ids.narrow(1, 1, length).reshape({-1}));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      if (step < steps / 2) continue;
      total += loss.item<double>();
      squares += loss.item<double>() * loss.item<double>();
      count += 1;
    }
    const double mean_loss = total / count, error = std::sqrt(std::max(0.0, squares / count - mean_loss * mean_loss) / count);
    CHECK(mean_loss > std::log(static_cast<double>(vocabulary)) - 3 * error);
  }
}

TEST_CASE("attention patterns per layer in a model; masks and shifts of a call reach every layer") {
  const test::DefaultF64 dtype;
  models::Encoder encoder({.embed_dim = 8, .num_heads = 2, .num_layers = 4, .attention = "[local(window=1)]*3, dense"});
  encoder.eval();
  const Tensor x = tokens(1, 9);
  const auto weights = encoder.weights(x, {.positions = Positions::range(9)});
  for (size_t layer = 0; layer < 4; ++layer) CHECK((weights[layer].at<double>({0, 0, 0, 8}) > 0) == (layer == 3));
  // Three layers of one neighbour each: a change reaches three tokens far.
  models::Encoder local({.embed_dim = 8, .num_heads = 2, .num_layers = 3, .attention = "local(window=1)"});
  local.eval();
  const Tensor changed = x.clone();
  changed.narrow(1, 0, 1).mul_(-1);  // a norm would not see a sum
  const Tensor a = local(x, {.positions = Positions::range(9)}), b = local(changed, {.positions = Positions::range(9)});
  for (i64 t = 0; t < 9; ++t) CHECK((largest_difference(a.narrow(1, t, 1), b.narrow(1, t, 1)) > 0) == (t <= 3));
  models::Encoder masked({.embed_dim = 8, .num_heads = 2, .num_layers = 2, .mask = "window(1, 1) | global(count=1)"});
  masked.eval();
  for (const Tensor& w : masked.weights(x, {.positions = Positions::range(9), .mask = ~Mask::columns({1})})) {
    CHECK(w.at<double>({0, 0, 5, 0}) > 0);
    CHECK(w.at<double>({0, 0, 5, 3}) == 0);
    CHECK(w.at<double>({0, 0, 0, 1}) == 0);
  }
  models::Encoder blocks({.embed_dim = 8, .num_heads = 2, .num_layers = 1, .attention = "local(block=4)"});
  blocks.eval();
  CHECK(blocks.weights(x, {.positions = Positions::range(9), .shift = 1})[0].at<double>({0, 0, 0, 3}) == 0);
  const auto built = [](const models::EncoderConfig& c) { return error_text([&] { models::Encoder e(c); }); };
  CHECK(has(built({.num_heads = 4, .mask = "causal() & heads({all(), all(), all()})"}), "mask: causal() & heads(3 entries) but the model has 4 heads"));
  CHECK(has(built({.mask = "windw(1, 1)"}), "unknown mask windw. Did you mean window?"));
  CHECK(has(built({.attention = "routing", .mask = "causal()"}), "routing cannot be causal: cluster membership is chosen over the whole sequence; causal here: dense, local"));
}
