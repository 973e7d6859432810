// Reports of masks: key counts against formulas and brute force, reach against a search by hand, pictures as text.
#include <doctest/doctest.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "nn/attention/mask_report.h"
#include "nn/attention/registry.h"
#include "tests/error_text.h"
#include "tests/test_level.h"
#include "train/report/mask_svg.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;

namespace {

Mask pattern_of(const std::string& spec, const MaskCall& c) {
  std::vector<std::string> problems;
  return *attention_pattern(resolve_attentions(spec, 1, problems).at(0), c, "attention.pattern");
}
MaskReport report_of(const std::string& spec, i64 length, bool causal, i64 heads = 1) {
  const MaskCall c = sequence_call(length, heads, causal);
  return mask_report(pattern_of(spec, c), c);
}

using Neighbours = std::vector<std::vector<bool>>;
Neighbours neighbours_of(const Mask& m, const MaskCall& c) {
  const Tensor pairs = m.pairs(c);
  Neighbours n(static_cast<size_t>(c.queries), std::vector<bool>(static_cast<size_t>(c.keys)));
  for (i64 i = 0; i < c.queries; ++i)
    for (i64 j = 0; j < c.keys; ++j)
      n[static_cast<size_t>(i)][static_cast<size_t>(j)] = (!pairs.defined() || pairs.at<bool>({0, 0, i, j})) && (!c.causal || j <= i);
  return n;
}
// Ordered pairs of two tokens that are joined after 1, 2, ... layers, until nothing is new.
std::vector<i64> naive_reach(const Neighbours& n) {
  const size_t length = n.size();
  std::vector<std::set<size_t>> known(length);
  for (size_t i = 0; i < length; ++i) known[i] = {i};
  std::vector<i64> counts;
  for (;;) {
    auto next = known;
    for (size_t i = 0; i < length; ++i)
      for (size_t j = 0; j < length; ++j)
        if (n[i][j]) next[i].insert(known[j].begin(), known[j].end());
    if (next == known) return counts;
    known = next;
    i64 count = 0;
    for (const auto& k : known) count += static_cast<i64>(k.size()) - 1;
    counts.push_back(count);
  }
}

}  // namespace

TEST_CASE("attentions 11.3 no. 12: exact key counts of a window, and of every pattern with a formula") {
  const i64 longest = test::by_level(17, 40, 40);
  for (i64 length = 1; length <= longest; ++length) {
    CAPTURE(length);
    for (const i64 w : {0, 1, 2, 5, 39, 64}) {
      CAPTURE(w);
      const i64 W = std::min(w, length - 1);
      const std::string spec = fmt::format("local(window={})", w);
      const MaskReport both = report_of(spec, length, false), causal = report_of(spec, length, true);
      CHECK(both.pairs() == length * (2 * W + 1) - W * (W + 1));
      CHECK(causal.pairs() == length * (W + 1) - W * (W + 1) / 2);
      CHECK(causal.heads[0].most == W + 1);
      if (length > 2 * w) CHECK(both.heads[0].most == 2 * w + 1);
      for (const i64 g : {1, 3}) {
        if (g > length) continue;
        const i64 rest = length - g, reach = std::max<i64>(0, std::min(w, rest - 1));
        CHECK(report_of(fmt::format("longformer(window={}, global={})", w, g), length, false).pairs() ==
              g * length + rest * g + (rest ? rest * (2 * reach + 1) - reach * (reach + 1) : 0));
      }
    }
    for (const i64 b : {1, 2, 3, 7, 40}) {
      const i64 n = length / b, r = length % b;
      CHECK(report_of(fmt::format("local(block={})", b), length, false).pairs() == n * b * b + r * r);
      CHECK(report_of(fmt::format("local(block={})", b), length, true).pairs() == n * b * (b + 1) / 2 + r * (r + 1) / 2);
      CHECK(mask_report(Mask::strided(b), sequence_call(length)).pairs() == r * (n + 1) * (n + 1) + (b - r) * n * n);
    }
  }
  // Inner rows of bigbird: window, global and random blocks.
  const MaskReport r = report_of("bigbird(block=2, window=3, global=2, random=1)", 32, false);
  CHECK(r.heads[0].most == 32);  // global rows
  for (const auto& [keys, queries] : r.heads[0].histogram)
    if (keys != 32) CHECK(keys <= 12);
  CHECK(r.heads[0].histogram.rbegin()[1].first == 12);
}

TEST_CASE("mask report: counts, rows and reach agree with a look at every pair") {
  for (const char* spec : {"local(window=2)", "local(block=4)", "local(block=3, before=1)", "strided(stride=4)", "fixed(stride=5, c=1)",
                           "fixed(stride=4, c=2)", "longformer(window=1, global=2)", "longformer(window=2, dilation=3)",
                           "bigbird(block=2, window=1, global=1, random=1)", "dense"})
    for (const bool causal : {false, true})
      for (const i64 length : {1, 2, 7, 24, 33}) {
        CAPTURE(spec);
        CAPTURE(causal);
        CAPTURE(length);
        const MaskCall c = sequence_call(length, 1, causal);
        const Mask m = pattern_of(spec, c);
        const Neighbours n = neighbours_of(m, c);
        const MaskReport r = mask_report(m, c);
        i64 pairs = 0, empty = 0;
        std::vector<i64> keys;
        for (const auto& row : n) {
          keys.push_back(std::count(row.begin(), row.end(), true));
          pairs += keys.back();
          empty += keys.back() == 0;
        }
        CHECK(r.pairs() == pairs);
        CHECK(r.heads[0].empty_rows == empty);
        CHECK(r.heads[0].fewest == *std::min_element(keys.begin(), keys.end()));
        CHECK(r.heads[0].most == *std::max_element(keys.begin(), keys.end()));
        CHECK(r.density() == doctest::Approx(static_cast<double>(pairs) / static_cast<double>(length * length)));
        const std::vector<i64> reach = naive_reach(n);
        const i64 all = length * (length - 1);
        if (length == 1) continue;
        REQUIRE(r.heads[0].reach.size() == reach.size());
        for (size_t h = 0; h < reach.size(); ++h) CHECK(r.heads[0].reach[h] == doctest::Approx(static_cast<double>(reach[h]) / static_cast<double>(all)));
        CHECK(r.heads[0].unreachable == all - (reach.empty() ? 0 : reach.back()));
      }
}

TEST_CASE("attentions 11.3 no. 8: how far random blocks reach is `reach`, and hops are those of the patterns") {
  const auto hops = [](const std::string& spec, i64 length) { return report_of(spec, length, false).heads[0].full_at(); };
  for (const i64 length : {9, 17, 64})
    for (const i64 w : {1, 3, 8}) CHECK(hops(fmt::format("local(window={})", w), length) == (length - 1 + w - 1) / w);
  CHECK(hops("strided(stride=5)", 40) == 2);
  CHECK(hops("fixed(stride=5, c=1)", 24) == 2);
  CHECK(hops("longformer(window=1, global=1)", 50) == 2);
  CHECK(hops("local(block=8)", 64) == 0);
  // Without the rule for a last block that ends early, its tokens are heard by nobody else: 20 x 4 pairs.
  MaskCall c = sequence_call(24);
  const Mask without = Mask::blocks(5) | (Mask::summary(5, 1) & ~Mask::columns({23}));
  CHECK(mask_report(without, c).heads[0].unreachable == 80);
  // The random blocks of the last row of blocks come from the first 8 tokens.
  const MaskReport near = report_of("bigbird(block=2, window=1, global=0, random=2, reach=8)", 40, false);
  const MaskPicture& p = near.heads[0].picture;
  for (i64 i = 0; i < 40; ++i)
    for (i64 j = 8; j < 40; ++j)
      if (i / 2 != j / 2) CHECK(p.share[static_cast<size_t>(i * p.cells + j)] == 0);
  CHECK(report_of("bigbird(block=2, window=1, global=0, random=2)", 40, false).heads[0].reach.back() >
        near.heads[0].reach.back() - 1e-12);
}

TEST_CASE("mask report: text and pictures") {
  MaskCall c = sequence_call(5, 2);
  CHECK(picture_text(mask_report(Mask::window(1, 0), c).heads[0].picture) == "█····\n██···\n·██··\n··██·\n···██\n");
  CHECK(picture_pgm(mask_report(Mask::causal(), sequence_call(2)).heads[0].picture) == "P2\n2 2\n255\n0 255\n0 0\n");
  // 128 tokens in 64 cells: the border of the window is grey.
  const std::string text = picture_text(mask_report(Mask::window(2, 2), sequence_call(128)).heads[0].picture);
  CHECK(text.substr(0, text.find('\n')).rfind("█▒·", 0) == 0);
  const MaskReport heads = mask_report(Mask::heads({Mask::window(1, 1), Mask::causal()}), c, 8);
  CHECK(heads.heads.size() == 2);
  CHECK(heads.pairs() == 13 + 15);
  CHECK(heads.flops() == 4.0 * 28 * 8);
  CHECK(mask_report(Mask::heads({Mask::causal(), Mask::causal()}), c).heads.size() == 1);
  CHECK(to_string(mask_report(Mask::window(1, 1), c, 8)) ==
        "  5 tokens: 26 pairs in 2 heads, density 0.5200, 832 flops forward\n"
        "  13 pairs; keys per query: 2 to 3, 2.6 on average; empty rows: 0\n"
        "  queries by number of keys: 2: 2, 3: 3\n"
        "  reach by layers: 1 0.4, 2 0.7, 3 0.9, 4 1; all pairs are joined after 4\n");
  CHECK(has(to_string(mask_report(Mask::blocks(2), c)), "16 ordered pairs are never joined"));
  CHECK(has(to_string(heads), "head 1: 15 pairs"));
  const MaskDifference d = mask_difference(Mask::window(1, 1), Mask::causal(), sequence_call(4));
  CHECK(d.kept_pairs == 7);
  CHECK(d.gone_pairs == 3);
  CHECK(d.added_pairs == 3);
  CHECK(picture_text(d) == "█-··\n██-·\n+██-\n++██\n");
  const std::string svg = train::mask_svg(heads, "two heads");
  CHECK(has(svg, "head 1"));
  CHECK(has(train::mask_svg(d, "a against b"), "gone 3"));
  // Padding is no pair; a long sequence is followed from some tokens; too long a one is refused.
  MaskCall padded = sequence_call(4);
  padded.key_keep = padded.query_keep = Tensor();
  CHECK(mask_report(Mask::all(), padded).pairs() == 16);
  CHECK(error_text([] { (void)mask_report(Mask::window(1, 1), sequence_call(kLongestReport + 1)); }) ==
        "mask: a report reads every pair: at most 131072 tokens, not 131073");
  CHECK(mask_report(Mask::all(), sequence_call(0)).pairs() == 0);
}
