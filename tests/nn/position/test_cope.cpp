// cope: closed-form oracle, counts and their cap, gradients at the cap, masked keys, and what it does not read.
#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention_reference.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
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

Tensor triangle(i64 n) {
  const Positions p = Positions::range(n);
  return causal_pairs(p, p);
}
// One head: the parts of the scores in a causal call without positions.
Tensor part(const Tensor& q, const Tensor& k, const Tensor& table, double scale, const std::string& name) {
  const ReferenceAttention call{.query = q, .key = k, .value = k, .terms = {{"cope", Stage::gate, Prefix{table}}},
                                .keep = triangle(q.size(2)), .content_scale = scale};
  for (const ScorePart& p : score_parts_reference(call))
    if (p.name == name) return p.value;
  FAIL("no part " << name);
  return {};
}
void close(const Tensor& t, const std::vector<std::array<double, 3>>& expected, double tolerance) {  // i, j, value
  for (const auto& [i, j, value] : expected)
    CHECK(std::abs(t.at<double>({0, 0, static_cast<i64>(i), static_cast<i64>(j)}) - value) < tolerance);
}

}  // namespace

TEST_CASE("cope: closed-form scores and counts") {
  const test::DefaultF64 dtype;
  const Tensor q = make<double>({1, 1, 3, 2}, {1, 2, 0, 1, -1, 1}), k = make<double>({1, 1, 3, 2}, {1, 0, 2, -1, 0, 3});
  const Tensor table = make<double>({4, 2}, {0, 0, 1, 0, 0, 1, 1, 1});
  const double scale = 1 / std::sqrt(2.0);
  close(part(q, k, table, scale, "total"),
        {{0, 0, 1.376868}, {1, 0, 0}, {1, 1, -0.707107}, {2, 0, -1.046630}, {2, 1, -3.121320}, {2, 2, 1.228362}}, 6e-7);
  // The counts: those of the oracle, read off a table that gives the position itself, r·q_i·e_0 with q_i0 = 1 and the
  // scores of the oracle.
  const Tensor one = make<double>({1, 1, 3, 4}, {1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1});
  const Tensor scores = make<double>({1, 1, 3, 4}, {0, 1, 0, -1, 0, 0, -1, -3, 0, 0, 0, 3});
  Tensor count = zeros({4, 4});
  for (i64 r = 0; r < 4; ++r) count.at<double>({r, 0}) = static_cast<double>(r);
  close(part(one, scores, count, scale, "cope"),
        {{0, 0, 0.669762}, {1, 0, 0.830238}, {1, 1, 0.330238}, {2, 0, 1.330238}, {2, 1, 1.0}, {2, 2, 0.892958}}, 6e-7);
  // max_pos = 2: nothing is counted beyond 1.
  close(part(one, scores, count.narrow(0, 0, 2), scale, "cope"), {{1, 0, 0.830238}, {2, 0, 1}, {2, 1, 1}, {2, 2, 0.892958}}, 6e-7);
}

TEST_CASE("cope: gradients of everything, below and at the cap") {
  for (const char* spec : {"cope(max_pos=2)", "cope(max_pos=3)", "cope(max_pos=8)", "huang-m2(clip=1) + huang-m4(clip=1) + cope(max_pos=3)"}) {
    CAPTURE(spec);
    const RandomScope random(u64{5});  // a step may not cross the whole numbers, where the derivative jumps
    const Rig rig(spec, true);
    std::vector<Tensor> inputs = {tokens(2, 6).requires_grad_()};
    for (const NamedParameter& p : rig->named_parameters()) inputs.push_back(p.tensor);
    const Tensor keep = make<bool>({2, 6}, {true, true, true, true, true, true, false, true, true, true, true, false});
    const TensorFunction f = [&](const std::vector<Tensor>& v) {
      return std::vector<Tensor>{(*rig)({.x = v[0], .positions = Positions::range(6), .key_keep = keep}).y};
    };
    const GradcheckReport one = gradcheck(f, inputs, {.step = 2e-4});
    CHECK_MESSAGE(one.passed, one.message);
    const GradcheckReport two = gradgradcheck(f, inputs, {.rtol = 1e-5, .atol = 1e-7, .step = 2e-4, .all_elements = 8});
    CHECK_MESSAGE(two.passed, two.message);
  }
}

TEST_CASE("cope: masked keys count nothing, whatever they hold; positions are not read") {
  const Rig rig("cope(max_pos=4)", true);
  const Tensor x = tokens(1, 5), keep = make<bool>({1, 6}, {true, true, false, true, true, true});
  Tensor wide = zeros({1, 6, 8});
  wide.narrow(1, 0, 2).copy_(x.narrow(1, 0, 2));
  wide.narrow(1, 2, 1).fill_(1e30);
  wide.narrow(1, 3, 3).copy_(x.narrow(1, 2, 3));
  const Tensor y = rig.y(x, Positions::range(5)), z = rig.y(wide, Positions::from_mask(keep), keep);
  CHECK(largest_difference(z.narrow(1, 3, 3), y.narrow(1, 2, 3)) < 1e-12);
  // Only their order is: it makes the call causal.
  CHECK(test::difference(rig.y(x, test::positions({0, 7, 8, 100, 4000})).detach(), y.detach()) == "");
  CHECK(!facts_of(test::sum_of("cope")[0]).reads_positions);

  // A NaN is no row of the table: it stays a NaN.
  Tensor bad = x.clone();
  bad.select(1, 3).fill_(std::nan(""));
  const Tensor out = rig.y(bad, Positions::range(5));
  CHECK(std::isnan(out.at<double>({0, 4, 0})));
}

TEST_CASE("cope: sums put its table beside that of another, and its part last") {
  const Rig rig("huang-m4(clip=2) + cope(max_pos=4)", true);
  std::string names;
  for (const NamedParameter& p : rig->position.named_parameters()) names += p.name + " ";
  CHECK(names == "huang-m4.table cope.table ");
  const auto parts = rig->score_parts({.x = tokens(1, 4), .positions = Positions::range(4)});
  REQUIRE(parts.size() >= 2);
  CHECK(parts[parts.size() - 2].name == "cope");
  CHECK(error_text([] { Rig("cope"); }).find("cope cannot run on dense: it needs a causal call; set causal") != std::string::npos);
  // It starts at 0.
  const test::DefaultF64 dtype;
  AttentionConfig c;
  c.embed_dim = 8;
  c.num_heads = 2;
  c.position = "cope";
  c.causal = true;
  const MultiHeadAttention fresh(c);
  for (const NamedParameter& p : fresh->named_parameters()) {
    if (p.name != "position.table") continue;
    CHECK(p.tensor.shape() == Shape{64, 4});
    CHECK(sum(mul(p.tensor, p.tensor)).item<double>() == 0);
    CHECK(!p.no_decay);
  }
}
