// A pairwise covering array: every pair of encodings, and every pair of values of the other factors, meets in some call.
#include <array>
#include <set>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/nn/rig.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::nn;
using test::largest_difference;
using test::make;

namespace {

// Factors beside the encodings, and how many values each has.
enum Factor : size_t { kCausal, kPadding, kPositions, kClip, kBeyond, kPerHead, kFactors };
constexpr std::array<size_t, kFactors> kValues = {2, 3, 5, 4, 2, 2};
constexpr i64 kClips[] = {0, 1, 3, 16};
using Choice = std::array<size_t, kFactors>;

struct Case {
  std::string position;
  Choice choice;
};

// The encoding with the options of a choice that it has.
std::string with_options(const EncodingInfo& info, const Choice& c) {
  std::vector<std::string> options;
  if (const OptionDef* clip = info.options.find("clip"))
    options.push_back(fmt::format("clip={}", std::max(static_cast<i64>(clip->rule.min), kClips[c[kClip]])));
  if (info.options.find("beyond")) options.push_back(c[kBeyond] ? "beyond=zero" : "beyond=clip");
  if (info.options.find("per_head")) options.push_back(c[kPerHead] ? "per_head=true" : "per_head=false");
  if (info.name() == "shaw") options.push_back("values=true");
  return options.empty() ? info.name() : fmt::format("{}({})", info.name(), fmt::join(options, ", "));
}

// Greedy: for each pair of encodings, the choice out of some that covers most pairs of values that are new.
std::vector<Case> covering_array() {
  std::vector<const EncodingInfo*> encodings;
  for (const EncodingInfo* info : all_encodings())
    if (!info->name().starts_with("test-")) encodings.push_back(info);
  std::set<std::array<size_t, 4>> covered;  // factor, value, factor, value
  std::vector<Case> cases;
  std::mt19937_64 random(5);
  for (size_t a = 0; a < encodings.size(); ++a)
    for (size_t b = a; b < encodings.size(); ++b) {
      const auto text = [&](const Choice& c) {
        return with_options(*encodings[a], c) + (a == b ? "" : " + " + with_options(*encodings[b], c));
      };
      std::vector<std::string> problems;
      resolve_encodings(encodings[a]->name() + (a == b ? "" : " + " + encodings[b]->name()), 1, problems);
      if (!problems.empty()) continue;
      Choice best{};
      i64 most = -1;
      for (int trial = 0; trial < 30; ++trial) {
        Choice c;
        for (size_t f = 0; f < kFactors; ++f) c[f] = random() % kValues[f];
        if (test::needs_causal_call(test::sum_of(text(c)))) c[kCausal] = 1;
        i64 fresh = 0;
        for (size_t f = 0; f < kFactors; ++f)
          for (size_t g = f + 1; g < kFactors; ++g) fresh += !covered.contains({f, c[f], g, c[g]});
        // The encodings are factors, too: a value that one of them has not met counts.
        for (const size_t e : {a, b})
          for (size_t f = 0; f < kFactors; ++f) fresh += !covered.contains({kFactors, e, f, c[f]});
        if (fresh > most) {
          most = fresh;
          best = c;
        }
      }
      for (size_t f = 0; f < kFactors; ++f) {
        for (size_t g = f + 1; g < kFactors; ++g) covered.insert({f, best[f], g, best[g]});
        for (const size_t e : {a, b}) covered.insert({kFactors, e, f, best[f]});
      }
      cases.push_back({text(best), best});
    }
  // Nothing is left out.
  for (size_t f = 0; f < kFactors; ++f)
    for (size_t v = 0; v < kValues[f]; ++v) {
      for (size_t g = f + 1; g < kFactors; ++g)
        for (size_t w = 0; w < kValues[g]; ++w) CHECK(covered.contains({f, v, g, w}));
      for (size_t e = 0; e < encodings.size(); ++e) {
        const bool possible = f != kCausal || v == 1 || !test::needs_causal_call(test::sum_of(encodings[e]->name()));
        CAPTURE(encodings[e]->name());
        if (possible) CHECK(covered.contains({kFactors, e, f, v}));
      }
    }
  return cases;
}

constexpr i64 kLength = 6;

// Positions [L] or [2, L] of kept tokens, all below 512 and different.
Positions positions_of_kind(size_t kind) {
  switch (kind) {
    case 0: return Positions::range(kLength);
    case 1: return Positions::range(kLength, 7);
    case 2: return test::positions({0, 2, 3, 40, 41, 300});
    case 3: return Positions(make<i64>({2, kLength}, {5, 4, 3, 2, 1, 0, 1, 2, 3, 11, 12, 14}));
    default: return test::positions({-1, 0, 1, 2, 5, 6});
  }
}

// The same with padding around it, which has no position.
Positions padded_positions(const Positions& p, i64 left, i64 right) {
  const i64 n = left + kLength + right;
  const Tensor t = full({2, n}, -1, kI64);
  for (i64 b = 0; b < 2; ++b)
    for (i64 i = 0; i < kLength; ++i) t.at<i64>({b, left + i}) = p.at(b, i);
  return Positions(t);
}

}  // namespace

TEST_CASE("covering array: padding, prefixes, gradients and weights of every pair of encodings") {
  const std::vector<Case> cases = covering_array();
  CHECK(cases.size() < 500);
  for (const Case& c : cases) {
    CAPTURE(c.position);
    CAPTURE(c.choice);
    const bool causal = c.choice[kCausal] == 1;
    const test::Rig rig(c.position, causal);
    const Positions p = positions_of_kind(c.choice[kPositions]);
    const i64 left = c.choice[kPadding] == 1 ? 2 : 0, right = c.choice[kPadding] == 2 ? 2 : 0;
    const Tensor x = test::tokens(2, kLength), plain = rig.y(x, p).detach();

    // Padding changes nothing, and gets nothing.
    const Tensor wide = test::padded(x, left, right, 7.5).requires_grad_();
    const Tensor keep = left + right ? test::kept(2, left, kLength, right) : Tensor();
    const AttentionInput in{.x = wide, .positions = left + right ? padded_positions(p, left, right) : p, .key_keep = keep, .want_weights = true};
    const AttentionOutput out = (*rig)(in);
    CHECK(largest_difference(out.y.narrow(1, left, kLength), plain) < 1e-12);

    // Gradients are finite, and 0 for padding.
    out.y.narrow(1, left, kLength).sum().backward();
    for (const double g : wide.grad().to_vector<double>()) CHECK(std::isfinite(g));
    for (const Tensor& t : rig->parameters())
      if (t.grad().defined())
        for (const double g : t.grad().to_vector<double>()) CHECK(std::isfinite(g));
    CHECK(test::norm(wide.grad().narrow(1, 0, left)) == 0);
    CHECK(test::norm(wide.grad().narrow(1, left + kLength, right)) == 0);

    // The weights of a row that sees anything sum to 1.
    const Tensor rows = sum(out.weights, -1);
    for (i64 b = 0; b < 2; ++b)
      for (i64 i = 0; i < kLength + left + right; ++i) {
        const bool kept_row = !keep.defined() || keep.at<bool>({b, i});
        CHECK(rows.at<double>({b, 1, i}) == doctest::Approx(kept_row ? 1 : 0).epsilon(1e-13));
      }

    // Causal: what stands behind a position does not reach it, whatever its slot.
    if (!causal) continue;
    for (i64 b = 0; b < 2; ++b) {
      i64 last = 0;
      for (i64 i = 1; i < kLength; ++i)
        if (p.at(b, i) > p.at(b, last)) last = i;
      const Tensor changed = x.clone();
      for (i64 e = 0; e < 8; ++e) changed.at<double>({b, last, e}) += 1.5;
      const Tensor y = rig.y(changed, p);
      for (i64 i = 0; i < kLength; ++i) {
        const double difference = largest_difference(y.select(0, b).select(0, i), plain.select(0, b).select(0, i));
        if (i == last) CHECK(difference > 1e-9);
        else CHECK(difference == 0);
      }
    }
  }
}
