// What masks do at their limits: trees without end, positions with gaps, calls that fit nothing, reports of many layers.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/engine/backward.h"
#include "core/ops/create.h"
#include "core/ops/random_ops.h"
#include "core/random/generator.h"
#include "nn/attention/attention.h"
#include "nn/attention/mask_report.h"
#include "nn/attention/random_blocks.h"
#include "nn/attention/registry.h"
#include "tests/error_text.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;

namespace {

constexpr i64 kFar = Positions::kLargest;

MaskCall call_at(const std::vector<i64>& positions, i64 heads = 1, bool causal = false) {
  MaskCall c = sequence_call(static_cast<i64>(positions.size()), heads, causal);
  c.query_positions = c.key_positions = Positions(tensor(positions, kI64));
  return c;
}
Mask bigbird_at(const std::string& options, const MaskCall& c) {
  std::vector<std::string> problems;
  return *attention_pattern(resolve_attentions("bigbird(" + options + ")", 1, problems).at(0), c, "attention.pattern");
}
i64 count_true(const Tensor& pairs) {
  const std::vector<i64> list = pairs.to_vector<i64>();
  return std::count(list.begin(), list.end(), 1);
}

}  // namespace

TEST_CASE("mask: a tree that a program builds is an error before it is too deep for the stack, or too large") {
  Mask deep = Mask::window(1, 1);
  i64 levels = 0;
  const std::string text = error_text([&] {
    for (; levels < 200'000; ++levels) deep = levels % 2 ? deep & Mask::causal() : deep | Mask::columns({levels % 7});
  });
  CHECK(text == "mask: an expression of 257 levels of &, | and ~: at most 256");
  CHECK(levels == 255);
  // What was built stays in use.
  CHECK(deep.pairs(sequence_call(3)).numel() == 9);
  CHECK(deep.to_string().size() > 2000);
  Mask wide = Mask::window(1, 1);
  const std::string doubled = error_text([&] {
    for (int i = 0; i < 40; ++i) wide = wide | wide;
  });
  CHECK(doubled == "mask: an expression of 65537 masks: at most 65536");
  Mask both = Mask::window(1, 1);
  CHECK(has(error_text([&] {
    for (int i = 0; i < 40; ++i) both = ~((both & Mask::causal()) | (both & Mask::strided(3)));
  }), " masks: at most 65536"));
  // Long expressions of one level are no deeper than short ones.
  Mask list = Mask::columns({0});
  for (i64 i = 1; i < 1000; ++i) list = list | Mask::columns({i});
  CHECK(list.pairs(sequence_call(4)).numel() == 16);
}

TEST_CASE("mask: random blocks of positions with gaps cost what the tokens cost") {
  const MaskCall c = call_at({0, kFar, 5, -1, 0}, 2);
  const Tensor pairs = Mask::random_blocks(1, 1).pairs(c);
  // Hardly any of 2^31 blocks is that of a token; the token without a position is seen by all, and sees all.
  CHECK(count_true(pairs) >= 2 * 9);
  for (const i64 h : {0, 1})
    for (const i64 j : {0, 1, 2, 3, 4}) {
      CHECK(pairs.at<bool>({0, h, 3, j}));
      CHECK(pairs.at<bool>({0, h, j, 3}));
    }
  CHECK(count_true(Mask::random_blocks(1, kFar + 1 - 1).pairs(call_at({0, 3}))) == 4);
  CHECK(error_text([] { (void)Mask::random_blocks(1, 1 << 30).pairs(call_at({0, kFar})); }) ==
        "mask: 1073741824 random blocks of 2147483647: at most 16777216 can be drawn");
  // Neither the table of all pairs of blocks nor that of all draws is made.
  CHECK(Mask::random_blocks(1, 3).pairs(call_at({kFar, kFar - 1}, 1, true)).numel() == 4);
  CHECK(count_true(bigbird_at("block=1, window=1, global=0, random=1", call_at({0, kFar, 5, -1}, 2)).pairs(call_at({0, kFar, 5, -1}, 2))) >= 2 * 10);
  const MaskCall ends = call_at({0, kFar});
  CHECK(count_true(bigbird_at("block=1, window=1, global=2, random=1000", ends).pairs(ends)) == 4);
  (void)bigbird_at("block=1, random=1048576", sequence_call(100'000, 8));
}

TEST_CASE("mask: few picks of many are the first of the same shuffle") {
  const Draw draw = current_generator().fixed_draw("test.blocks", 3);
  for (const i64 n : {1, 2, 63, 64, 65, 70, 1000}) {
    CAPTURE(n);
    const std::vector<i64> all = pick_blocks(draw, 1, 2, n, n);
    CHECK(std::set<i64>(all.begin(), all.end()).size() == static_cast<size_t>(n));
    for (const i64 count : {0, 1, 2, 5, 40, 300}) {
      std::vector<i64> first = all;
      first.resize(static_cast<size_t>(std::min(count, n)));
      CHECK(pick_blocks(draw, 1, 2, n, count) == first);
    }
  }
}

TEST_CASE("bigbird: random blocks are neither global nor near, within reach, and as many as there are") {
  for (const bool causal : {false, true})
    for (const i64 window : {1, 3, 7})
      for (const i64 global : {0, 1, 2, 5})
        for (const i64 reach : {0, 4, 9, 99})
          for (const i64 random : {0, 2, 99}) {
            const std::string options = fmt::format("block=1, window={}, global={}, reach={}, random={}", window, global, reach, random);
            CAPTURE(options);
            const i64 n = 8, half = (window - 1) / 2, first = (global + 1) / 2, last = causal ? 0 : global / 2;
            const MaskCall c = sequence_call(n, 2, causal);
            const Tensor pairs = bigbird_at(options, c).pairs(c);
            const auto is_global = [&](i64 b) { return b < first || b >= n - last; };
            bool right = true;
            for (i64 h = 0; h < 2; ++h)
              for (i64 i = 0; i < n; ++i) {
                i64 possible = 0, drawn = 0;
                for (i64 j = 0; j < n; ++j) {
                  const bool fixed = is_global(i) || is_global(j) || std::abs(i - j) <= half, seen = pairs.at<bool>({0, h, i, j});
                  const bool candidate = !fixed && j < reach && (!causal || j < i);
                  right &= fixed ? seen : candidate || !seen;
                  possible += candidate;
                  drawn += seen && !fixed;
                }
                right &= drawn == std::min(random, possible);
              }
            CHECK(right);
          }
}

TEST_CASE("mask: a call whose parts do not fit each other, or a pattern of another call, is an error") {
  const auto wrong = [](auto change, const Mask& m = Mask::global_first(1)) {
    MaskCall c = sequence_call(4);
    change(c);
    return error_text([&] { (void)m.pairs(c); });
  };
  CHECK(wrong([](MaskCall& c) { c.heads = -1; }, Mask::random_blocks(2, 1)) ==
        "mask: a call of 1 rows, -1 heads, 4 queries and 4 keys: must be at least 0, 1, 0 and 0");
  CHECK(has(wrong([](MaskCall& c) { c.queries = -1; }), "-1 queries"));
  CHECK(wrong([](MaskCall& c) { c.query_positions = Positions::range(2); }, Mask::causal()) ==
        "mask: positions of queries [2] do not fit 4 tokens in 1 rows: must be [4] or [1, 4]");
  CHECK(has(wrong([](MaskCall& c) { c.key_positions = Positions::range(9); }, Mask::causal()), "positions of keys [9]"));
  CHECK(wrong([](MaskCall& c) { c.key_keep = make_empty({1, 2}, kB8); }) == "mask: key_keep must be [1, 4], got [1, 2]");
  CHECK(has(wrong([](MaskCall& c) { c.batch = 3, c.query_keep = make_empty({2, 4}, kB8); }), "query_keep must be [3, 4]"));
  CHECK(has(wrong([](MaskCall& c) { c.key_keep = make_empty({1, 4}, kF32); }), "must be b8"));
  const MaskCall eight = sequence_call(8, 2);
  const Mask pattern = bigbird_at("block=1", eight);
  CHECK(pattern.per_head());
  CHECK(pattern.to_string() == "dense(input)");
  CHECK(error_text([&] { (void)pattern.pairs(sequence_call(9, 2)); }) ==
        "mask: a pattern of 1 rows, 2 heads, 8 queries and 8 keys in a call of 1, 2, 9 and 9");
  MaskCall none = eight;
  none.query_positions = {};
  CHECK(has(error_text([&] { (void)bigbird_at("block=1", none); }), "bigbird(block=1"));
  CHECK(error_text([] { Mask::lengths({5, 3}).check_call(sequence_call(9)); }) == "mask: lengths: 2 numbers for 1 rows");
  CHECK(error_text([] { Mask::lengths({5}).check_call(sequence_call(9)); }) == "(no error)");
  const Mask heads = Mask::heads({Mask::all()});
  CHECK(error_text([&] { (void)mask_difference(heads, heads, sequence_call(3), 7); }) == "mask: there is no head 7 among 1");
  MaskCall empty = sequence_call(3);
  empty.batch = 0;
  CHECK(error_text([&] { (void)mask_report(heads, empty); }) == "mask: a report is of batch row 0, and the call has none");
}

TEST_CASE("mask report: thousands of layers are followed in the time of their pairs") {
  // After h layers of window(1, 0) token i knows min(i, h) others; of L tokens that is Σ_i min(i, h).
  const i64 length = kExactReach;
  const MaskReport r = mask_report(Mask::window(1, 0), sequence_call(length));
  const auto& reach = r.heads[0].reach;
  REQUIRE(reach.size() == static_cast<size_t>(length - 1));
  for (const i64 h : {1, 2, 1000, 4095}) {
    const double known = static_cast<double>(h * (h + 1) / 2 + (length - 1 - h) * h);
    CHECK(reach[static_cast<size_t>(h - 1)] == known / static_cast<double>(length * (length - 1)));
  }
  CHECK(r.heads[0].unreachable == length * (length - 1) / 2);
  // Followed from 256 of 8,192 tokens: 0, 32, 64, ...; token s is known by the h behind it.
  const MaskReport some = mask_report(Mask::window(1, 0), sequence_call(8192));
  CHECK(some.sources == 256);
  CHECK(some.heads[0].reach.size() == 8191);
  CHECK(some.heads[0].reach[0] == 256 / (256. * 8191));
}

TEST_CASE("attention: numbers of a config that no model has are refused") {
  const auto text = [](const AttentionConfig& c) { return error_text([&] { (void)resolve_attention(c); }); };
  constexpr double inf = std::numeric_limits<double>::infinity();
  CHECK(text({.embed_dim = 8, .num_heads = 2, .scale = inf}) == "attention: scale = inf: must be finite, and greater than 0");
  CHECK(text({.embed_dim = 8, .num_heads = 2, .max_len = -3}) == "attention: max_len = -3: must be at least 0");
  CHECK(text({.embed_dim = 8, .num_heads = i64{1} << 33, .head_dim = i64{1} << 33}) ==
        "attention: num_heads = 8589934592, head_dim = 8589934592: their product is larger than 2^63-1");
  CHECK(text({.embed_dim = 8, .num_heads = 2}) == "(no error)");
}

TEST_CASE("attention: global tokens are of one row, or of every row; rows beyond the queries are an error for every pattern") {
  const RandomScope scope(3);
  const MultiHeadAttention a({.embed_dim = 8, .num_heads = 2, .attention = "longformer(window=1, global=input)"});
  AttentionInput in;
  in.x = randn({2, 5, 8});
  in.positions = Positions::range(5);
  Tensor y;
  for (const Tensor& shape : {ones({5}, kB8), ones({1, 5}, kB8), ones({2, 5}, kB8)}) {
    const Tensor which = shape.clone();
    for (i64 i = 0; i < which.numel(); ++i) which.data<bool>()[i] = i % 5 == 2;
    in.arrays.global = which;
    const Tensor now = a(in).y;
    if (y.defined()) CHECK(now.to_vector<double>() == y.to_vector<double>());
    y = now;
  }
  for (const char* attention : {"dense", "local(window=1)"}) {
    const MultiHeadAttention other({.embed_dim = 8, .num_heads = 2, .attention = attention});
    constexpr i64 most = std::numeric_limits<i64>::max();
    for (const QueryRows& rows : {QueryRows{-1, 2}, QueryRows{1, -2}, QueryRows{4, 2}, QueryRows{most, 2}, QueryRows{1, most}}) {
      in.rows = rows;
      CHECK(error_text([&] { (void)other->implied_weights(in); }) ==
            fmt::format("attention: rows [{0}, {0} + {1}) of 5 queries", rows.first, rows.count));
    }
  }
}

TEST_CASE("encodings: no option makes numbers that are none") {
  const RandomScope scope(3);
  for (const char* spec : {"fourier(gamma={})", "rope(interpolation={})", "rope(ntk={})", "rope(base={})", "sinusoid(base={})",
                           "xpos(base={})", "xpos(scale_base={})", "fire(init_threshold={})"}) {
    for (const char* number : {"0", "1e-308", "1e-7", "1e13", "1e308"}) {
      const std::string position = fmt::format(fmt::runtime(spec), number);
      CAPTURE(position);
      CHECK(has(error_text([&] { (void)resolve_encodings(position, 1); }), "must be float 1e-06..1"));
    }
    for (const char* number : {"1e-6", "1e12"}) {
      const std::string position = fmt::format(fmt::runtime(spec), number);
      CAPTURE(position);
      if (has(position, "xpos(scale_base=1e-6)")) continue;  // refused by a rule of its own
      const MultiHeadAttention a({.embed_dim = 16, .num_heads = 1, .position = position, .causal = true});
      Tensor x = randn({1, 3, 16});
      x.requires_grad_(true);
      const Tensor y = a({.x = x, .positions = Positions(tensor(std::vector<i64>{0, 1, 2000}, kI64))}).y;
      y.sum().backward();
      bool finite = true;
      for (const double v : y.to_vector<double>()) finite &= std::isfinite(v);
      for (const NamedParameter& p : a->named_parameters())
        if (p.tensor.grad().defined())
          for (const double v : p.tensor.grad().to_vector<double>()) finite &= std::isfinite(v);
      CHECK(finite);
    }
  }
}
