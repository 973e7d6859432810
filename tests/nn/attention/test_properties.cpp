// Properties of every encoding on dense attention, over the registry.
#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/convert.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/relative.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::nn;
using test::accepted;
using test::encoding_specs;
using test::kept;
using test::largest_difference;
using test::make;
using test::norm;
using test::padded;
using test::reordered;
using test::Rig;
using test::tokens;

TEST_CASE("property 2: a shift of all positions changes nothing, where the facts say so") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    for (const bool causal : {false, true}) {
      if (!accepted(spec, causal)) continue;
      const Rig rig(spec, causal);
      const Tensor x = tokens(2, 9);
      const double change = largest_difference(rig.y(x, Positions::range(9)), rig.y(x, Positions::range(9, 50)));
      // Angles are differences of large numbers.
      const bool turns = rig->position.maps_query_key();
      if (test::shift_invariant(rig->encodings(), 58)) CHECK(change < (turns ? 1e-10 : 1e-12));
      else CHECK(change > 1e-6);
    }
  }
}

TEST_CASE("property 3: reversal of the tokens permutes the output of encodings that see no direction") {
  const std::vector<i64> backwards = {6, 5, 4, 3, 2, 1, 0};
  for (const std::string& spec : encoding_specs()) {
    if (!accepted(spec)) continue;
    CAPTURE(spec);
    const Rig rig(spec);
    const Tensor x = tokens(2, 7);
    const Positions p = Positions::range(7);
    const double change = largest_difference(rig.y(reordered(x, backwards), p), reordered(rig.y(x, p), backwards));
    // Past its threshold fire compares with the position of the query: that is no mirror image.
    if (test::sees_direction(rig->encodings()) || test::plain_up_to(rig->encodings()) < 6) CHECK(change > 1e-6);
    else CHECK(change < 1e-12);
  }
}

TEST_CASE("property 4: without an encoding, dense attention sees a set") {
  const std::vector<i64> order = {3, 0, 5, 1, 4, 2};
  const Rig rig("none");
  const Tensor x = tokens(2, 6);
  CHECK(largest_difference(rig.y(reordered(x, order), {}), reordered(rig.y(x, {}), order)) < 1e-13);
}

TEST_CASE("property 5: neutral parameters give none") {
  const Rig none("none");
  const Tensor x = tokens(2, 8);
  const Positions p = Positions::range(8);
  const Tensor expected = none.y(x, p);
  StateDict base = none->state_dict();
  for (const auto& [name, value] : {std::pair("huang-m1", 1.0), {"huang-m2", 1.0}, {"huang-m3", 1.0}, {"huang-m4", 0.0},
                                    {"shaw", 0.0}, {"shaw(values=true)", 0.0}, {"t5", 0.0}}) {
    const char* const spec = name;  // clang < 16: lambdas cannot capture structured bindings
    CAPTURE(spec);
    const Rig rig(spec);
    CHECK(rig->load_state_dict(base, false).unexpected.empty());
    CHECK(largest_difference(rig.y(x, p), expected) > 1e-6);
    const NoGrad off;
    for (const NamedParameter& q : rig->position.named_parameters()) q.tensor.fill_(value);
    CHECK(largest_difference(rig.y(x, p), expected) < 1e-12);
  }
  // Without rows to project, deberta and tupe are none with another scale.
  for (const auto& [name, terms] : {std::pair("deberta(clip=3)", 3.0), {"deberta(clip=3, terms=p2c)", 2.0}, {"tupe", 2.0},
                                    {"tupe(relative=true)", 2.0}}) {
    const char* const spec = name;
    CAPTURE(spec);
    const Rig rig(spec);
    CHECK(rig->load_state_dict(base, false).unexpected.empty());
    AttentionConfig c;
    c.scale = 1 / std::sqrt(4 * terms);
    const Rig scaled("none", false, c);
    scaled->load_state_dict(base);
    CHECK(largest_difference(rig.y(x, p), scaled.y(x, p)) > 1e-6);
    const NoGrad off;
    for (const NamedParameter& q : rig->position.named_parameters())
      if (q.name.find("_proj.") != std::string::npos || q.name == "bias") q.tensor.zero_();
    CHECK(largest_difference(rig.y(x, p), scaled.y(x, p)) < 1e-12);
  }
  {
    const Rig plain("none", true), cope("cope", true), xpos("xpos", true);
    plain->load_state_dict(base);
    for (const Rig* r : {&cope, &xpos}) CHECK((*r)->load_state_dict(base, false).unexpected.empty());
    CHECK(largest_difference(cope.y(x, p), plain.y(x, p)) > 1e-6);
    const NoGrad off;
    cope->position.named_parameters()[0].tensor.zero_();
    CHECK(largest_difference(cope.y(x, p), plain.y(x, p)) < 1e-12);
    CHECK(largest_difference(xpos.y(x, p), plain.y(x, p)) > 1e-6);
    // At equal positions (which a causal call does not have) products stay.
    const Tensor q = randn({1, 2, 8, 4}, kF64), k = randn({1, 2, 8, 4}, kF64);
    const Positions equal = test::positions(std::vector<i64>(8, 321));
    const auto [mapped_q, mapped_k] = xpos->position.map_query_key(q, k, {.queries = equal, .keys = equal, .causal = true});
    CHECK(largest_difference(matmul(mapped_q, mapped_k.mT()), matmul(q, k.mT())) < 1e-10);
    CHECK(largest_difference(mapped_q, q) > 1e-3);
  }
  const Rig alibi("alibi(heads=0)");
  alibi->load_state_dict(base);
  CHECK(largest_difference(alibi.y(x, p), expected) < 1e-12);
  const Rig rope("rope");
  rope->load_state_dict(base);
  CHECK(largest_difference(rope.y(x, test::positions(std::vector<i64>(8, 321))), expected) < 1e-10);
  CHECK(largest_difference(rope.y(x, p), expected) > 1e-6);

  // In causal calls. Without the mask, equal positions would be taken for a missing documents mask.
  const Rig causal_none("none", true), cope("cope(max_pos=5)", true), xpos("xpos(scale_base=4)", true);
  for (const Rig* rig : {&causal_none, &cope, &xpos}) (*rig)->load_state_dict(base, false);
  CHECK(largest_difference(cope.y(x, p), causal_none.y(x, p)) > 1e-6);
  const auto together = [&](const Rig& rig) {
    return (*rig)({.x = x, .positions = test::positions(std::vector<i64>(8, 321)), .mask = Mask::dense(ones({8, 8}, kB8))}).y;
  };
  CHECK(largest_difference(together(xpos), together(causal_none)) < 1e-10);
  CHECK(largest_difference(xpos.y(x, p), causal_none.y(x, p)) > 1e-6);
  const NoGrad off;
  cope->position.named_parameters()[0].tensor.zero_();
  CHECK(largest_difference(cope.y(x, p), causal_none.y(x, p)) < 1e-12);
}

TEST_CASE("property 6: saturation beyond the clip; larger tables; zero") {
  for (const char* spec : {"shaw(clip=3)", "shaw(clip=3, values=true)", "huang-m1(clip=3)", "huang-m2(clip=3)", "huang-m3(clip=3)", "huang-m4(clip=3)",
                           "deberta(clip=3)", "transformer-xl(clamp=3)"}) {
    CAPTURE(spec);
    const Rig rig(spec);
    const Tensor x = tokens(1, 6);
    const Tensor near = rig.y(x, test::positions({0, 1, 2, 5, 6, 7}));
    CHECK(largest_difference(near, rig.y(x, test::positions({0, 1, 2, 1005, 1006, 1007}))) < 1e-12);
    CHECK(largest_difference(near, rig.y(x, test::positions({0, 1, 2, 4, 5, 6}))) > 1e-9);
  }
  // Far away all distances share the last bucket of t5.
  const Rig t5("t5(buckets=8, max_distance=8)");
  const Tensor tokens6 = tokens(1, 6), far = t5.y(tokens6, test::positions({0, 1, 2, 10, 11, 12}));
  CHECK(largest_difference(far, t5.y(tokens6, test::positions({0, 1, 2, 1010, 1011, 1012}))) < 1e-12);
  CHECK(largest_difference(far, t5.y(tokens6, test::positions({0, 1, 2, 4, 5, 6}))) > 1e-9);
  // A table with clip >= L-1 in the middle of a larger one.
  for (const auto& [narrower, large] : {std::pair("shaw(clip=4)", "shaw(clip=6)"), {"huang-m2(clip=4)", "huang-m2(clip=6)"},
                                     {"huang-m3(clip=4)", "huang-m3(clip=6)"}, {"huang-m4(clip=4)", "huang-m4(clip=6)"}}) {
    const char* const small = narrower;
    CAPTURE(small);
    const Rig a(small), b(large);
    const Tensor table = a->position.named_parameters()[0].tensor, wide = b->position.named_parameters()[0].tensor;
    StateDict state = a->state_dict();
    {
      const NoGrad off;
      const int axis = table.size(0) == 9 ? 0 : 1;
      wide.narrow(axis, 2, 9).copy_(table);
      for (auto& [name, t] : state)
        if (t.shape() == table.shape() && name.find("position.") == 0) t = wide.clone();
    }
    b->load_state_dict(state);
    const Tensor x = tokens(2, 5);
    CHECK(largest_difference(a.y(x, Positions::range(5)), b.y(x, Positions::range(5))) < 1e-13);
    CHECK(largest_difference(a.y(x, test::positions({0, 1, 2, 3, 7})), b.y(x, test::positions({0, 1, 2, 3, 7}))) > 1e-9);
  }
  for (const std::string name : {"shaw", "huang-m3", "huang-m4"}) {
    const Rig clip(name + "(clip=4)"), zero(name + "(clip=4, beyond=zero)");
    zero->load_state_dict(clip->state_dict());
    const Tensor x = tokens(2, 6);
    CHECK(largest_difference(clip.y(x, test::positions({0, 1, 2, 3, 4, 4})), zero.y(x, test::positions({0, 1, 2, 3, 4, 4}))) < 1e-13);
    CHECK(largest_difference(clip.y(x, Positions::range(6)), zero.y(x, Positions::range(6))) > 1e-9);
  }
}

TEST_CASE("property 8: what softmax ignores") {
  const Rig rig("shaw(clip=2, values=true)");
  const Tensor x = tokens(2, 6), keep = make<bool>({2, 6}, {true, true, true, true, true, true, true, true, true, false, true, true});
  Tensor dz;  // of the mixed values
  const AttentionInput in{.x = x, .positions = Positions::range(6), .key_keep = keep};
  const auto core = [&] {
    const auto heads = [&](const Linear& w) { return w(x).view({2, 6, 2, 4}).transpose(1, 2); };
    return rig->core(heads(rig->q_proj), heads(*rig->k_proj), heads(rig->v_proj), in);
  };
  const Tensor z = core().z;
  dz = randn(z.shape(), kF64);
  z.backward(dz);
  const auto sums = [](const Tensor& t) { return sum(t, 0).to_vector<double>(); };
  for (const double v : sums(rig->position.named_parameters()[0].tensor.grad())) CHECK(std::abs(v) < 1e-12);
  const auto rows = sums(rig->position.named_parameters()[1].tensor.grad());
  // Rows of padded queries are not mixed at all.
  const auto expected = sum(dz * to(keep, kF64).view({2, 1, 6, 1}), {0, 1, 2}).to_vector<double>();
  for (size_t t = 0; t < rows.size(); ++t) CHECK(rows[t] == doctest::Approx(expected[t]).epsilon(1e-10));
  CHECK(norm(rig->position.named_parameters()[0].tensor.grad()) > 1e-3);

  const Rig t5("t5(buckets=8, max_distance=9)");
  sum(t5.y(x, Positions::range(6)) * randn({2, 6, 8}, kF64)).backward();
  const Tensor bias_grad = t5->position.named_parameters()[0].tensor.grad();
  for (const double v : sums(bias_grad)) CHECK(std::abs(v) < 1e-12);
  CHECK(norm(bias_grad) > 1e-3);

  // Parameters whose gradient is 0 are those that the facts name.
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    const Rig one(spec, !accepted(spec));
    sum(one.y(tokens(2, 5), Positions::range(5)) * randn({2, 5, 8}, kF64)).backward();
    const auto zero = invariant_parameters(one->encodings(), one->options());
    for (const NamedParameter& p : one->named_parameters()) {
      CAPTURE(p.name);
      if (p.name == "position.weight" || p.name.find("table") != std::string::npos) continue;  // rows that nobody uses
      // Ahead of a ReLU, it shifts all scores alike while no knot lies between the distances.
      if (p.name.ends_with("mlp.0.bias")) continue;
      if (std::find(zero.begin(), zero.end(), p.name) != zero.end()) CHECK(norm(p.tensor.grad()) < 1e-12);
      else CHECK(norm(p.tensor.grad()) > 1e-6);
    }
  }
}

TEST_CASE("property 9: rectangular calls are the last rows of the square one, and leave nothing behind") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    for (const bool causal : {false, true}) {
      if (!accepted(spec, causal)) continue;
      const Rig rig(spec, causal);
      const Tensor q = randn({2, 2, 9, 4}, kF64), k = randn({2, 2, 9, 4}, kF64), v = randn({2, 2, 9, 4}, kF64);
      AttentionConfig cross;
      cross.cross = accepted(spec, causal, true);  // the core takes keys of its own in any case
      const Rig other(spec, causal, cross);
      const_cast<ProjectedAttention&>(*other).load_state_dict(rig->state_dict());
      const auto call = [&](const Rig& r, i64 lq) {
        return r->core(q.narrow(2, 9 - lq, lq), k, v, {.context = k, .positions = Positions::range(lq, 9 - lq),
                                                       .context_positions = Positions::range(9)}).z;
      };
      const Tensor square = rig->core(q, k, v, {.positions = Positions::range(9)}).z;
      for (const i64 lq : {6, 9, 1}) {
        const Rig fresh(spec, causal, cross);
        const_cast<ProjectedAttention&>(*fresh).load_state_dict(rig->state_dict());
        CHECK(largest_difference(call(other, lq), square.narrow(2, 9 - lq, lq)) < 1e-12);
        CHECK(test::difference(call(other, lq), call(fresh, lq)) == "");
      }
    }
  }
}

TEST_CASE("property 9: one call equals calls of 1, 3 and the other tokens, and calls token by token") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    const i64 n = 9;
    const Tensor q = randn({2, 2, n, 4}, kF64), k = randn({2, 2, n, 4}, kF64), v = randn({2, 2, n, 4}, kF64);
    const Rig rig(spec, true);
    const Tensor whole = rig->core(q, k, v, {.positions = Positions::range(n)}).z;
    AttentionConfig cross;
    cross.cross = accepted(spec, true, true);  // as above
    const Rig other(spec, true, cross);
    other->load_state_dict(rig->state_dict());
    for (const std::vector<i64>& chunks : {std::vector<i64>{1, 3, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      i64 begin = 0;
      for (const i64 length : chunks) {
        const i64 end = begin + length;
        const Tensor z = other->core(q.narrow(2, begin, length), k.narrow(2, 0, end), v.narrow(2, 0, end),
                                     {.context = k, .positions = Positions::range(length, begin), .context_positions = Positions::range(end)}).z;
        CHECK(largest_difference(z, whole.narrow(2, begin, length)) < 1e-12);
        begin = end;
      }
    }
  }
}

TEST_CASE("property 10: no token sees the future, and prefixes are prefixes") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    const Rig rig(spec, true);
    const Tensor x = tokens(2, 8), changed = x.clone();
    changed.narrow(1, 5, 3).add_(1.5);
    const Tensor y = rig.y(x, Positions::range(8)), z = rig.y(changed, Positions::range(8));
    CHECK(test::difference(y.narrow(1, 0, 5).detach(), z.narrow(1, 0, 5).detach()) == "");
    CHECK(largest_difference(y.narrow(1, 5, 3), z.narrow(1, 5, 3)) > 1e-6);
    CHECK(largest_difference(rig.y(x.narrow(1, 0, 5), Positions::range(5)), y.narrow(1, 0, 5)) < 1e-12);
    // Without `causal` it does see it.
    if (!accepted(spec)) continue;
    const Rig open(spec);
    CHECK(largest_difference(open.y(x, Positions::range(8)).narrow(1, 0, 5), open.y(changed, Positions::range(8)).narrow(1, 0, 5)) > 1e-6);
  }
}

TEST_CASE("property 10: padding has no effect and no gradient; batch rows are independent") {
  for (const std::string& spec : encoding_specs()) {
    for (const bool causal : {false, true}) {
      if (!accepted(spec, causal)) continue;
      CAPTURE(spec);
      CAPTURE(causal);
      const Rig rig(spec, causal);
      const Tensor x = tokens(2, 5);
      const Tensor y = rig.y(x, Positions::range(5));
      for (const auto& [left, right] : {std::pair<i64, i64>{3, 0}, {0, 3}, {2, 1}}) {
        const Tensor keep = kept(2, left, 5, right), wide = padded(x, left, right, 1e30).requires_grad_();
        const Tensor out = rig.y(wide, Positions::from_mask(keep), keep);
        CHECK(largest_difference(out.narrow(1, left, 5), y) < 1e-12);
        out.narrow(1, left, 5).sum().backward();
        CHECK(norm(wide.grad().narrow(1, 0, left)) == 0);
        CHECK(norm(wide.grad().narrow(1, left + 5, right)) == 0);
        CHECK(norm(wide.grad().narrow(1, left, 5)) > 1e-6);
        // A padded query mixes nothing: its output row is the bias.
        const i64 pad = left ? 0 : 5;
        CHECK(largest_difference(out.select(1, pad), rig->out_proj->bias.expand({2, 8})) == 0);
      }
      for (i64 b = 0; b < 2; ++b) CHECK(largest_difference(rig.y(x.narrow(0, b, 1), Positions::range(5)), y.narrow(0, b, 1)) < 1e-13);
    }
  }
}

TEST_CASE("property 10: implied weights and terms reproduce the output; score parts add up") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    AttentionConfig c;
    c.out_proj = false;
    const Rig rig(spec, true, c);
    const Tensor keep = kept(2, 1, 5, 1);
    const AttentionInput in{.x = tokens(2, 7), .positions = Positions::from_mask(keep), .key_keep = keep};
    const Tensor weights = rig->implied_weights(in);
    CHECK(!weights.requires_grad());
    const auto rows = sum(weights, -1).to_vector<double>();
    for (size_t i = 0; i < rows.size(); ++i) CHECK(rows[i] == doctest::Approx(i % 7 == 0 || i % 7 == 6 ? 0 : 1).epsilon(1e-13));
    Tensor z;
    for (const ImpliedTerm& t : rig->implied_terms(in)) {
      const Tensor part = matmul(t.weights, t.values);
      z = z.defined() ? z + part : part;
    }
    CHECK(largest_difference(z.transpose(1, 2).reshape({2, 7, 8}), (*rig)(in).y) < 1e-12);

    const auto parts = rig->score_parts(in);
    Tensor total;
    std::vector<std::string> names;
    for (const ScorePart& p : parts) {
      names.push_back(p.name);
      if (p.multiplier || p.name == "total") continue;
      total = total.defined() ? total + p.value : p.value;
    }
    CHECK(parts.back().name == "total");
    CHECK(largest_difference(total, parts.back().value) < 1e-12);
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    // The softmax of the total over allowed keys is the weights.
    for (i64 i = 1; i < 6; ++i) {
      double denominator = 0;
      for (i64 j = 1; j <= i; ++j) denominator += std::exp(parts.back().value.at<double>({1, 1, i, j}));
      for (i64 j = 1; j <= i; ++j)
        CHECK(weights.at<double>({1, 1, i, j}) == doctest::Approx(std::exp(parts.back().value.at<double>({1, 1, i, j})) / denominator).epsilon(1e-10));
    }
  }
}

TEST_CASE("property 11: one dropout mask serves the values and the value tables") {
  AttentionConfig c;
  c.dropout = 0.4;
  c.out_proj = false;
  const Rig rig("shaw(clip=2, values=true)", false, c);
  rig->train();
  const Tensor x = tokens(2, 6), values = rig->position.named_parameters()[1].tensor;
  const AttentionInput in{.x = x, .positions = Positions::range(6)};
  const NoGrad off;
  // v = 0, u = 1 and v = 1, u = 0 mix the same dropped weights.
  const auto mixed = [&](double v, double u) {
    rig->v_proj.weight.zero_();
    rig->v_proj.bias.fill_(v);
    values.fill_(u);
    const RandomScope scope(7);
    return (*rig)(in).y;
  };
  const Tensor by_value = mixed(1, 0), by_table = mixed(0, 1);
  CHECK(largest_difference(by_value, by_table) < 1e-13);
  CHECK(largest_difference(by_value, full_like(by_value, 1)) > 0.1);
  rig->eval();
  CHECK(largest_difference(mixed(1, 0), full_like(by_value, 1)) < 1e-13);
}

TEST_CASE("property 12: bit-equal for 1, 2 and 4 threads, values and gradients") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    const Rig rig(spec, true);
    const Tensor x = tokens(4, 96).requires_grad_(), g = randn({4, 96, 8}, kF64);
    const int before = num_threads();
    std::vector<Tensor> first;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      const Tensor y = (*rig)({.x = x, .positions = spec.find("max_len=64") == std::string::npos ? Positions::range(96)
                                                                                                : Positions(zeros({96}, kI64) - 1)}).y;
      std::vector<Tensor> wanted = rig->parameters(), now = {y.detach()};
      wanted.push_back(x);
      const GradMap m = grad(std::vector<Tensor>{y}, wanted, {.seeds = {g}, .allow_unused = true});
      for (const GradMap::Entry& e : m) now.push_back(e.grad);
      if (first.empty()) first = now;
      REQUIRE(first.size() == now.size());
      for (size_t i = 0; i < now.size(); ++i) CHECK(test::difference(first[i], now[i]) == "");
    }
    set_num_threads(before);
  }
}

TEST_CASE("every encoding passes gradcheck, first and second order") {
  for (const std::string& spec : encoding_specs()) {
    CAPTURE(spec);
    const RandomScope scope(1);  // the same steps of gradcheck whatever ran before
    // A small table, so that every row is checked.
    std::string small = spec == "learned" || spec == "tupe" ? spec + "(max_len=6)" : spec;
    if (const size_t at = small.find("max_len=99"); at != std::string::npos) small.replace(at, 10, "max_len=6");
    const Rig rig(small, !accepted(spec));
    const Tensor keep = make<bool>({2, 4}, {true, true, true, true, true, true, false, true});
    std::vector<Tensor> inputs = {tokens(2, 4).requires_grad_()};
    for (const NamedParameter& p : rig->named_parameters())
      if (p.name.find("position.") == 0 || p.name == "k_proj.weight") inputs.push_back(p.tensor);
    const TensorFunction f = [&](const std::vector<Tensor>& v) {
      return std::vector<Tensor>{(*rig)({.x = v[0], .positions = test::positions({0, 2, 3, -1}), .key_keep = keep}).y};
    };
    const GradcheckReport one = gradcheck(f, inputs);
    CHECK_MESSAGE(one.passed, one.message);
    if (!test::twice_differentiable(rig->encodings())) continue;
    const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7, .all_elements = test::by_level(8, 16, 64)});
    CHECK_MESSAGE(two.passed, two.message);
  }
}
