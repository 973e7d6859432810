// Masks: grammar, canonical text, identities, structure, and every rule against an evaluator of its own.
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <set>

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/reduce.h"
#include "nn/attention/mask.h"
#include "tests/error_text.h"
#include "tests/nn/attention/exercise_mask.h"
#include "tests/tensors.h"
#include "tests/test_level.h"
#include "tests/text_mutations.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::has;
using test::make;

namespace {

std::string canonical(const std::string& text) { return Mask::parse(text).to_string(); }
std::string mask_problem(const std::string& text) { return error_text([&] { (void)Mask::parse(text); }); }

MaskCall self_call(i64 length, const Positions& p, i64 batch = 1, i64 heads = 1) {
  return {.batch = batch, .heads = heads, .queries = length, .keys = length, .query_positions = p, .key_positions = p};
}
// The allowed pairs as text, rows of 0 and 1, of batch row b and head h.
std::string grid(const Mask& m, const MaskCall& c, i64 b = 0, i64 h = 0) {
  const Tensor pairs = m.pairs(c);
  std::string text;
  for (i64 i = 0; i < c.queries; ++i) {
    if (i) text += ' ';
    for (i64 j = 0; j < c.keys; ++j) {
      const bool on = !pairs.defined() || pairs.at<bool>({pairs.size(0) == 1 ? 0 : b, pairs.size(1) == 1 ? 0 : h, i, j});
      text += on ? '1' : '0';
    }
  }
  return text;
}
std::string grid(const std::string& text, i64 length) { return grid(Mask::parse(text), self_call(length, Positions::range(length))); }
bool same(const Mask& a, const Mask& b, const MaskCall& c) {
  for (i64 r = 0; r < c.batch; ++r)
    for (i64 h = 0; h < c.heads; ++h)
      if (grid(a, c, r, h) != grid(b, c, r, h)) return false;
  return true;
}

// ---- An evaluator that follows the definitions pair by pair, and knows nothing of the library's ----

struct TestToken {
  i64 position;
  bool kept;
};
struct TestCall {
  std::vector<std::vector<TestToken>> rows;  // of each batch row
  std::vector<std::vector<i64>> ids;
  std::vector<i64> lengths;
  bool causal = false;
  i64 shift = 0;
};
using PairRule = std::function<bool(const TestCall&, size_t b, size_t h, size_t i, size_t j)>;
struct TestTree {
  std::string text;
  PairRule rule;
};

i64 floor_div(i64 a, i64 b) { return a / b; }

bool is_summary(const TestCall& c, size_t b, size_t j, i64 stride, i64 wide) {
  const auto& row = c.rows[b];
  const i64 shift = c.shift % stride;
  if ((row[j].position + shift) % stride >= stride - wide) return true;
  if (c.causal) return false;
  i64 last = -1;
  for (const TestToken& t : row)
    if (t.kept && t.position >= 0) last = std::max(last, floor_div(t.position + shift, stride));
  std::vector<std::pair<i64, size_t>> members;
  bool complete = false;
  for (size_t t = 0; t < row.size(); ++t)
    if (row[t].kept && row[t].position >= 0 && floor_div(row[t].position + shift, stride) == last) {
      members.emplace_back(row[t].position, t);
      complete |= (row[t].position + shift) % stride == stride - 1;
    }
  if (complete) return false;
  std::sort(members.begin(), members.end());
  for (size_t n = members.size(); n > 0 && members.size() - n < static_cast<size_t>(wide); --n)
    if (members[n - 1].second == j) return true;
  return false;
}

TestTree random_leaf(std::mt19937_64& random, i64 length) {
  const auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u64>(n)); };
  const auto distance_rule = [](auto f) {
    return [f](const TestCall& c, size_t b, size_t, size_t i, size_t j) {
      const i64 p = c.rows[b][i].position, q = c.rows[b][j].position;
      return p < 0 || q < 0 || f(c, b, i, j, p, q);
    };
  };
  const i64 a = below(4), b2 = below(4), size = 1 + below(5), step = 1 + below(3), wide = 1 + below(size);
  std::set<i64> slots;
  for (i64 n = below(4); n > 0; --n) slots.insert(below(length + 2));
  const std::string set = fmt::format("{{{}}}", fmt::join(slots, ", "));
  const auto in = [slots](size_t t) { return slots.count(static_cast<i64>(t)) > 0; };
  switch (below(13)) {
    case 0: return {"causal()", [](const TestCall& c, size_t b, size_t, size_t i, size_t j) { return c.rows[b][j].position <= c.rows[b][i].position; }};
    case 1:
      return {fmt::format("window({}, {}, dilation={})", a, b2, step), distance_rule([=](const TestCall&, size_t, size_t, size_t, i64 p, i64 q) {
                return q - p >= -a * step && q - p <= b2 * step && (q - p) % step == 0;
              })};
    case 2:
      return {fmt::format("blocks({}, before={}, after={})", size, a, b2), distance_rule([=](const TestCall& c, size_t, size_t, size_t, i64 p, i64 q) {
                const i64 d = floor_div(q + c.shift % size, size) - floor_div(p + c.shift % size, size);
                return d >= -a && d <= b2;
              })};
    case 3: return {fmt::format("strided({})", size), distance_rule([=](const TestCall&, size_t, size_t, size_t, i64 p, i64 q) { return (p - q) % size == 0; })};
    case 4:
      return {fmt::format("summary({}, {})", size, wide), distance_rule([=](const TestCall& c, size_t b, size_t, size_t j, i64, i64) {
                return is_summary(c, b, j, size, wide);
              })};
    case 5: return {"global(" + set + ")", [in](const TestCall&, size_t, size_t, size_t i, size_t j) { return in(i) || in(j); }};
    case 6:
      return {fmt::format("global(count={})", a), [a](const TestCall& c, size_t b, size_t, size_t i, size_t j) {
                const auto first = [&](size_t t) {
                  i64 before = 0;
                  for (size_t s = 0; s < t; ++s) before += c.rows[b][s].kept;
                  return c.rows[b][t].kept && before < a;
                };
                return first(i) || first(j);
              }};
    case 7: return {"columns(" + set + ")", [in](const TestCall&, size_t, size_t, size_t, size_t j) { return in(j); }};
    case 8: return {"rows(" + set + ")", [in](const TestCall&, size_t, size_t, size_t i, size_t) { return in(i); }};
    case 9:
      return {fmt::format("prefix({})", a), [a](const TestCall& c, size_t b, size_t, size_t i, size_t j) {
                return c.rows[b][j].position < a || c.rows[b][j].position <= c.rows[b][i].position;
              }};
    case 10: return {"lengths(input)", [](const TestCall& c, size_t b, size_t, size_t, size_t j) { return static_cast<i64>(j) < c.lengths[b]; }};
    case 11:
      return {"documents(input)", [](const TestCall& c, size_t b, size_t, size_t i, size_t j) { return c.ids[b][i] >= 0 && c.ids[b][i] == c.ids[b][j]; }};
    default: return a < 2 ? TestTree{"all()", [](const TestCall&, size_t, size_t, size_t, size_t) { return true; }}
                          : TestTree{"none()", [](const TestCall&, size_t, size_t, size_t, size_t) { return false; }};
  }
}

TestTree random_tree(std::mt19937_64& random, int depth, i64 length, bool heads_allowed) {
  const u64 kind = random() % 8;
  if (depth == 0 || kind < 2) return random_leaf(random, length);
  TestTree a = random_tree(random, depth - 1, length, heads_allowed && kind != 2);
  if (kind == 2 && heads_allowed) {
    TestTree b = random_tree(random, depth - 1, length, false);
    return {"heads({" + a.text + ", " + b.text + "})",
            [a, b](const TestCall& c, size_t r, size_t h, size_t i, size_t j) { return (h == 0 ? a : b).rule(c, r, h, i, j); }};
  }
  if (kind == 3) return {"~(" + a.text + ")", [a](const TestCall& c, size_t r, size_t h, size_t i, size_t j) { return !a.rule(c, r, h, i, j); }};
  TestTree b = random_tree(random, depth - 1, length, heads_allowed);
  if (kind < 6)
    return {"(" + a.text + ") & (" + b.text + ")",
            [a, b](const TestCall& c, size_t r, size_t h, size_t i, size_t j) { return a.rule(c, r, h, i, j) && b.rule(c, r, h, i, j); }};
  return {"(" + a.text + ") | (" + b.text + ")",
          [a, b](const TestCall& c, size_t r, size_t h, size_t i, size_t j) { return a.rule(c, r, h, i, j) || b.rule(c, r, h, i, j); }};
}

// Two rows of one length: sorted, packed, repeated, positionless tokens, padding.
TestCall random_call(std::mt19937_64& random, i64 length) {
  TestCall c;
  c.causal = random() % 2 == 0;
  c.shift = static_cast<i64>(random() % 7);
  for (int b = 0; b < 2; ++b) {
    std::vector<TestToken> row;
    std::vector<i64> ids;
    const u64 kind = random() % 4;
    i64 next = 0;
    for (i64 t = 0; t < length; ++t) {
      const i64 random_position = static_cast<i64>(random() % 24) - 1;
      i64 p = kind == 0 ? t : kind == 1 ? (next += static_cast<i64>(random() % 3)) : kind == 2 ? t % 5 : random_position;
      if (kind == 1 && random() % 6 == 0) p = -1;
      row.push_back({p, random() % 5 != 0});
      ids.push_back(static_cast<i64>(random() % 4) - 1);
    }
    c.rows.push_back(row);
    c.ids.push_back(ids);
    c.lengths.push_back(static_cast<i64>(random() % static_cast<u64>(length + 2)));
  }
  return c;
}

MaskCall mask_call_of(const TestCall& t) {
  const i64 length = static_cast<i64>(t.rows[0].size());
  const Tensor positions = make_empty({2, length}, kI64), keep = make_empty({2, length}, kB8), ids = make_empty({2, length}, kI64);
  for (i64 b = 0; b < 2; ++b)
    for (i64 i = 0; i < length; ++i) {
      const TestToken& token = t.rows[static_cast<size_t>(b)][static_cast<size_t>(i)];
      positions.data<i64>()[b * length + i] = token.position;
      keep.data<bool>()[b * length + i] = token.kept;
      ids.data<i64>()[b * length + i] = t.ids[static_cast<size_t>(b)][static_cast<size_t>(i)];
    }
  MaskCall c = self_call(length, Positions(positions), 2, 2);
  c.query_keep = c.key_keep = keep;
  c.causal = t.causal;
  c.shift = t.shift;
  c.arrays.documents = ids;
  c.arrays.lengths = tensor(t.lengths, kI64);
  return c;
}

}  // namespace

TEST_CASE("mask: canonical text, parsed back") {
  for (const auto& entry : std::vector<std::pair<std::string, std::string>>{
           {"causal()&window( 64,64 )|global(count=1)", "causal() & window(64, 64) | global(count=1)"},
           {"window(right=0, left=3)", "window(3, 0)"},
           {"window(1, 2, 1)", "window(1, 2)"},
           {"window(1, 2, 3)", "window(1, 2, dilation=3)"},
           {"blocks(size=4, after=2)", "blocks(4, after=2)"},
           {"global({5, 0, 5})", "global({0, 5})"},
           {"lengths({5, 3, 5})", "lengths({5, 3, 5})"},
           {"documents(input) & (causal() | prefix(3))", "documents(input) & (causal() | prefix(3))"},
           {"(causal() & keys(input)) & ~(columns({2}) | rows({1}))", "causal() & keys(input) & ~(columns({2}) | rows({1}))"},
           {"~~causal()", "causal()"},
           {"~all()", "none()"},
           {"causal() & all()", "causal()"},
           {"causal() | all()", "all()"},
           {"none() & dense(input)", "none()"},
           {"(none() | strided(3))", "strided(3)"},
           {"heads({all(), causal() & ~window(1, 1)})", "heads({all(), causal() & ~window(1, 1)})"},
           {"random_blocks(4, 2)", "random_blocks(4, 2)"},
           {"random_blocks(4, 2, seed=9)", "random_blocks(4, 2, seed=9)"}}) {
    const std::string &text = entry.first, &expected = entry.second;
    CAPTURE(text);
    CHECK(canonical(text) == expected);
    CHECK(canonical(expected) == expected);
  }
  const Mask built = (Mask::causal() & Mask::window(64, 64)) | Mask::global_first(1);
  CHECK(built.to_string() == "causal() & window(64, 64) | global(count=1)");
  CHECK(Mask::heads({Mask::causal(), {}}).to_string(true) == "heads(2 entries)");
  for (const std::string& sample : test::mask_samples()) (void)test::exercise_mask(sample);
}

TEST_CASE("mask: what is wrong with a text") {
  CHECK(mask_problem("windw(1, 2)") == "mask: unknown mask windw. Did you mean window? at column 1\n  windw(1, 2)\n  ^");
  CHECK(mask_problem("causal() causal()") == "mask: expected '|', '&' or the end, found 'c' at column 10\n  causal() causal()\n           ^");
  CHECK(has(mask_problem("causal() &"), "expected a mask, found the end at column 11"));
  CHECK(has(mask_problem("window(1)"), "window needs right"));
  CHECK(has(mask_problem("window(1, 2, 3, 4)"), "window takes 3 arguments"));
  CHECK(has(mask_problem("window(left=1, 2)"), "a positional argument behind a named one"));
  CHECK(has(mask_problem("window(1, left=2)"), "left is given twice"));
  CHECK(has(mask_problem("window(1, rigth=2)"), "window has no argument rigth. Did you mean right?"));
  CHECK(has(mask_problem("window(-1, 2)"), "window: left=-1 must be 0 to 2147483646"));
  CHECK(has(mask_problem("blocks(0)"), "blocks: size=0 must be 1 to"));
  CHECK(has(mask_problem("summary(8, 9)"), "summary: c=9 is larger than stride=8"));
  CHECK(has(mask_problem("columns({-1})"), "columns: -1 must be 0 to"));
  CHECK(has(mask_problem("columns(3)"), "slots must be a set, {...}"));
  CHECK(has(mask_problem("columns(input)"), "columns takes no input"));
  CHECK(has(mask_problem("keys({1})"), "keys takes an array: keys(input)"));
  CHECK(has(mask_problem("global()"), "global needs slots or count, not neither"));
  CHECK(has(mask_problem("global({1}, count=1)"), "global needs slots or count, not both"));
  CHECK(has(mask_problem("window({1}, 2)"), "left must be a number"));
  CHECK(has(mask_problem("window(99999999999999999999, 1)"), "this number is too large"));
  CHECK(has(mask_problem("heads({})"), "heads: there must be an expression for each head"));
  CHECK(has(mask_problem("heads({heads({all()})})"), "heads: an entry that differs by head itself"));
  CHECK(has(mask_problem("all(1)"), "all takes 0 arguments"));
  CHECK(has(mask_problem(std::string(40, '(') + "all()" + std::string(40, ')')), "nested deeper than 32 levels"));
  CHECK(has(mask_problem(std::string(size_t{2} << 20, ' ')), "is no mask expression"));
  std::string many = "columns({0";
  for (int i = 0; i < 20000; ++i) many += ",1";
  CHECK(has(mask_problem(many + "})"), "more than 16384 numbers and masks"));
}

TEST_CASE("mask: mutated texts") {
  test::check_mutations(test::mask_samples(), "acdw1,-()={}&|~ \n\xc3\x01", test::by_level(500, 5000, 200000), test::exercise_mask);
}

TEST_CASE("mask: every primitive by hand") {
  CHECK(grid("causal()", 3) == "100 110 111");
  CHECK(grid("window(1, 0)", 4) == "1000 1100 0110 0011");
  CHECK(grid("window(1, 1, dilation=2)", 4) == "1010 0101 1010 0101");
  CHECK(grid("blocks(2)", 5) == "11000 11000 00110 00110 00001");
  CHECK(grid("blocks(2, before=1)", 5) == "11000 11000 11110 11110 00111");
  CHECK(grid("strided(2)", 4) == "1010 0101 1010 0101");
  CHECK(grid("summary(2, 1)", 4) == "0101 0101 0101 0101");
  CHECK(grid("summary(3, 1)", 5) == "00101 00101 00101 00101 00101");  // 4 is the last kept token of a block that ends early
  CHECK(grid("global({1})", 3) == "010 111 010");
  CHECK(grid("global(count=1)", 3) == "111 100 100");
  CHECK(grid("columns({0, 2, 9})", 3) == "101 101 101");
  CHECK(grid("rows({1})", 3) == "000 111 000");
  CHECK(grid("prefix(2)", 4) == "1100 1100 1110 1111");
  CHECK(grid("none()", 2) == "00 00");
  CHECK(grid("documents({0, 0, -1, 1})", 4) == "1100 1100 0000 0001");
  CHECK(grid("lengths({2})", 3) == "110 110 110");
  MaskCall c = self_call(5, Positions::range(5));
  c.causal = true;
  CHECK(grid(Mask::summary(3, 1), c) == "00100 00100 00100 00100 00100");
  c.causal = false;
  c.shift = 1;
  CHECK(grid(Mask::blocks(2), c) == "10000 01100 01100 00011 00011");
  c.shift = 3;  // modulo the size
  CHECK(grid(Mask::blocks(2), c) == "10000 01100 01100 00011 00011");
  // Tokens without position are outside every distance rule.
  const MaskCall some = self_call(3, Positions(tensor(std::vector<i64>{-1, 0, 9}, kI64)));
  for (const char* text : {"window(1, 1)", "blocks(2)", "strided(2)", "random_blocks(2, 0)"}) {
    CAPTURE(text);
    CHECK(grid(Mask::parse(text), some).substr(0, 6) == "111 1" + std::string(std::string(text) == "random_blocks(2, 0)" ? "0" : "1"));
    CHECK(grid(Mask::parse(text), some)[8] == '1');
  }
  CHECK(grid(Mask::summary(4, 1), some) == "111 101 101");
  CHECK(grid(Mask::causal(), some) == "100 110 111");
  CHECK(grid(Mask::prefix(0), some) == "100 110 111");
}

TEST_CASE("mask: identities hold pair by pair") {
  std::mt19937_64 random(3);
  for (int n = 0; n < test::by_level(20, 100, 1000); ++n) {
    const i64 length = 1 + static_cast<i64>(random() % 9);
    const Mask a = Mask::parse(random_tree(random, 2, length, true).text), b = Mask::parse(random_tree(random, 2, length, true).text),
               c = Mask::parse(random_tree(random, 2, length, true).text);
    const MaskCall call = mask_call_of(random_call(random, length));
    CAPTURE(a.to_string());
    CAPTURE(b.to_string());
    CHECK(same(a & Mask::all(), a, call));
    CHECK(same(a | Mask::none(), a, call));
    CHECK(same(a & ~a, Mask::none(), call));
    CHECK(same(a | ~a, Mask::all(), call));
    CHECK(same(~(a & b), ~a | ~b, call));
    CHECK(same(~(a | b), ~a & ~b, call));
    CHECK(same(a & b, b & a, call));
    CHECK(same(a & (b | c), (a & b) | (a & c), call));
    CHECK(same((a | b) | c, a | (b | c), call));
    CHECK(same(Mask::parse((a & (b | c)).to_string()), a & (b | c), call));
  }
  const MaskCall sorted = self_call(9, Positions::range(9, 3));
  CHECK(same(Mask::causal() & Mask::window(3, 2), Mask::window(3, 0) & Mask::causal(), sorted));
  CHECK(same(Mask::blocks(3) & Mask::blocks(3), Mask::blocks(3), sorted));
  CHECK(same(Mask::summary(4, 4), Mask::all(), sorted));
  CHECK(same(Mask::strided(1), Mask::all(), sorted));
}

TEST_CASE("attentions oracle 4: random expressions agree with the pair rules") {
  std::mt19937_64 random(11);
  i64 allowed = 0, all = 0;
  for (int n = 0; n < test::by_level(60, 400, 5000); ++n) {
    const i64 length = static_cast<i64>(random() % 14);
    const TestTree tree = random_tree(random, 4, length, true);
    const TestCall call = random_call(random, length);
    const MaskCall c = mask_call_of(call);
    CAPTURE(tree.text);
    const Tensor pairs = Mask::parse(tree.text).pairs(c);
    bool equal = true;
    for (i64 b = 0; b < 2; ++b)
      for (i64 h = 0; h < 2; ++h)
        for (i64 i = 0; i < length; ++i)
          for (i64 j = 0; j < length; ++j) {
            const bool got = !pairs.defined() || pairs.at<bool>({pairs.size(0) == 1 ? 0 : b, pairs.size(1) == 1 ? 0 : h, i, j});
            const bool expected = tree.rule(call, static_cast<size_t>(b), static_cast<size_t>(h), static_cast<size_t>(i), static_cast<size_t>(j));
            equal = equal && got == expected;
            allowed += expected;
            ++all;
          }
    CHECK(equal);
  }
  CHECK(allowed > all / 10);
  CHECK(allowed < all * 9 / 10);
}

TEST_CASE("mask: structure is known without a pair") {
  const auto is = [](const std::string& text) { return Mask::parse(text); };
  CHECK(is("all() | causal()").is_all());
  CHECK_FALSE(is("window(9, 9)").is_all());
  for (const char* text : {"causal()", "causal() & window(2, 2)", "none()", "heads({causal(), causal() & strided(2)})", "causal() | none()"})
    CHECK_MESSAGE(is(text).implies_causal(), text);
  for (const char* text : {"all()", "window(2, 0)", "causal() | global(count=1)", "~causal()", "heads({causal(), all()})", "prefix(0)"})
    CHECK_MESSAGE(!is(text).implies_causal(), text);
  for (const char* text : {"all()", "keys(input)", "lengths({3}) & ~columns({1})", "none()"}) CHECK_MESSAGE(is(text).key_only(), text);
  for (const char* text : {"causal()", "keys(input) | rows({1})", "global({1})", "documents(input)"}) CHECK_MESSAGE(!is(text).key_only(), text);
  CHECK(is("documents(input)").documents_only());
  CHECK_FALSE(is("documents(input) & causal()").documents_only());
  CHECK(is("documents(input) & causal()").separates_documents());
  CHECK_FALSE(is("documents(input) | window(1, 1)").separates_documents());
  CHECK(is("heads({all(), causal()}) & causal()").per_head());
  CHECK(is("random_blocks(3, 1)").per_head());
  CHECK_FALSE(is("documents(input) & causal()").per_head());
  const auto distance = [&](const char* text) { return is(text).max_distance().value_or(-1); };
  CHECK(distance("window(3, 1)") == 3);
  CHECK(distance("window(3, 1, dilation=4)") == 12);
  CHECK(distance("blocks(4, before=1)") == 7);
  CHECK(distance("window(3, 1) & blocks(2)") == 1);
  CHECK(distance("window(3, 1) | blocks(8)") == 7);
  CHECK(distance("window(3, 1) | causal()") == -1);
  CHECK(distance("window(3, 1) & documents(input)") == 3);
  CHECK(distance("~window(3, 1)") == -1);
  CHECK(is("columns({1}) | prefix(2)").position_reader() == "prefix(2)");
  CHECK(is("columns({1}) | keys(input)").position_reader().empty());
  CHECK(is("keys(input) & (documents(input) | keys(input))").inputs() == std::vector<std::string>{"keys", "documents"});
}

TEST_CASE("mask: arrays of the call, and calls that do not fit") {
  MaskCall c = self_call(3, Positions::range(3), 2, 2);
  const auto wrong = [&](const std::string& text) { return error_text([&] { (void)Mask::parse(text).pairs(c); }); };
  CHECK(wrong("documents(input)") == "mask: documents(input) needs the array documents of the call, which was not given");
  CHECK(wrong("causal() & heads({all(), all(), all()})") == "mask: causal() & heads(3 entries) but the model has 2 heads");
  CHECK(wrong("lengths({1, 2, 3})") == "mask: lengths: 3 numbers for 2 rows");
  CHECK(wrong("documents({1, 2})") == "mask: documents: 2 ids for 3 tokens");
  c.arrays.documents = tensor(std::vector<i64>{0, 1}, kI64);
  CHECK(wrong("documents(input)") == "mask: documents: the array is [2], but the call has 2 rows of 3 tokens");
  c.arrays.keys = ones({2, 3}, kI64);
  CHECK(wrong("keys(input)") == "mask: keys: the array must be b8, got i64");
  c.arrays.keys = make<bool>({2, 3}, {true, false, true, false, true, true});
  CHECK(grid(Mask::parse("keys(input)"), c, 1) == "011 011 011");
  CHECK(test::difference(Mask::parse("keys(input) & lengths({2, 3})").allowed_keys(c), make<bool>({2, 3}, {true, false, false, false, true, true})) == "");
  CHECK(error_text([&] { (void)Mask::causal().allowed_keys(c); }) == "mask: causal() depends on the query, too: it is no mask of keys");
  c.arrays.global = make<bool>({2, 3}, {true, false, false, false, false, false});
  CHECK(grid(Mask::parse("global(input)"), c, 0) == "111 100 100");
  CHECK(grid(Mask::parse("global(input)"), c, 1) == "000 000 000");
  c.arrays.dense = make<bool>({3, 3}, {true, false, false, false, true, false, false, false, true});
  CHECK(grid(Mask::parse("~dense(input)"), c, 1, 1) == "011 101 110");
  CHECK(Mask::documents(tensor(std::vector<i64>{0, 0, 1}, kI64)).to_string() == "documents(input)");
  CHECK(grid(Mask::documents(tensor(std::vector<i64>{0, 0, 1}, kI64)), c) == "110 110 001");
  c.query_positions = {};
  CHECK(wrong("all() & window(1, 1)") == "mask: window(1, 1) reads positions, and the call has none");
  CHECK(Mask::parse("window(1, 1)").pairs(self_call(0, Positions::range(0), 0)).shape() == Shape{0, 1, 0, 0});
}

TEST_CASE("mask: random blocks are distinct, fixed by their seed, and stay behind in causal calls") {
  MaskCall c = self_call(22, Positions::range(22), 1, 2);
  const auto blocks_of = [&](const Mask& m, i64 h, i64 i) {
    std::set<i64> seen;
    const Tensor pairs = m.pairs(c);
    for (i64 j = 0; j < 22; ++j)
      if (pairs.at<bool>({0, h, i, j})) seen.insert(j / 4);
    return seen;
  };
  const Mask m = Mask::random_blocks(4, 2, 5);
  bool differ = false;
  for (i64 i = 0; i < 22; ++i) {
    CHECK(blocks_of(m, 0, i).size() == 2);
    CHECK(blocks_of(m, 0, i) == blocks_of(m, 0, i / 4 * 4));
    differ |= blocks_of(m, 0, i) != blocks_of(m, 1, i);
  }
  CHECK(differ);
  CHECK(test::difference(m.pairs(c), m.pairs(c)) == "");
  CHECK(test::difference(m.pairs(c), Mask::random_blocks(4, 2, 6).pairs(c)) != "");
  CHECK(blocks_of(Mask::random_blocks(4, 99), 0, 0).size() == 6);
  c.causal = true;
  for (i64 i = 0; i < 22; ++i)
    for (const i64 j : blocks_of(m, 1, i)) CHECK(j < i / 4);
}
