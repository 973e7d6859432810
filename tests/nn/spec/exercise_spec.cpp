#include "tests/nn/spec/exercise_spec.h"

#include <cstdlib>

#include "core/tensor/error.h"
#include "nn/spec/glob.h"
#include "nn/spec/suggest.h"

namespace waymark::test {

using namespace nn;

namespace {

// Not a doctest check: the fuzz target is built without doctest.
void require(bool ok) {
  if (!ok) std::abort();
}

template <class F> bool accepted(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Names and options: problems, or options whose texts mean the same again.
void resolve(const SpecSum& sum) {
  const SpecTables& tables = sample_tables();
  std::vector<std::string> problems;
  const auto options = tables.resolve_sum(sum, problems);
  require(options.has_value() == problems.empty());
  if (!options) return;
  for (const bool canonical : {false, true}) {
    std::vector<std::string> none;
    const std::string text = sum_text(*options, canonical);
    const auto again = tables.resolve_sum(parse_sum(text), none);
    require(none.empty() && again && sum_text(*again, canonical) == text);
  }
}

}  // namespace

const SpecTables& sample_tables() {
  static const SpecTables inner("inner", {{"unit", {{"depth", int_option(1, 0, 9), ""}}}, {"none", {}}});
  static const SpecTables tables(
      "thing", {{"none", {}},
                {"a", {{"x", int_option(1, -5, 5), "an int"}, {"y", real_option(0.5).greater_than(0), "a float"}}},
                {"huang-m4",
                 {{"clip", int_option(16, 0, 1 << 20), "rows"},
                  {"per_head", bool_option(false), "switch"},
                  {"beyond", word_option("clip", {"clip", "zero", "error"}), "word"},
                  {"heads", int_option("all", 1).or_word({"all"}), "int or word"}}},
                {"text",
                 {{"path", text_option(std::nullopt), "any text"},
                  {"sizes", int_list_option(std::vector<i64>{1, 2}, 0, 99, 0, 8), "ints"},
                  {"rates", real_list_option(std::vector<double>{0.5}, 0, 1), "floats"},
                  {"words", word_list_option(std::vector<std::string>{}, {"c2p", "p2c"}), "words"}}},
                {"outer", {{"of", spec_option("unit", inner), "a spec"}}}});
  return tables;
}

bool exercise_spec(const std::string& text) {
  bool any = false;
  any |= accepted([&] {
    const SpecValue value = parse_value(text);
    require(parse_value(to_string(value)) == value);
  });
  any |= accepted([&] {
    const Spec spec = parse_spec(text);
    require(parse_spec(to_string(spec)) == spec);
  });
  any |= accepted([&] {
    const SpecSum sum = parse_sum(text);
    require(!sum.empty() && parse_sum(to_string(sum)) == sum);
    resolve(sum);
  });
  any |= accepted([&] {
    const SpecPattern pattern = parse_pattern(text);
    require(!pattern.empty());
    std::vector<std::string> items;
    for (const SpecSum& sum : pattern) items.push_back(to_string(sum));
    const SpecPattern again = parse_pattern(pattern_to_string(items));
    // A pattern of equal items prints as one, which serves every layer.
    const bool folded = again.size() == 1 && std::equal(items.begin() + 1, items.end(), items.begin());
    require(folded ? again[0] == pattern[0] : again == pattern);
  });
  if (text.size() < 300) {
    require(glob_match(text, text) && glob_match("*", text) && glob_match("*" + text + "*", "x" + text));
    static_cast<void>(did_you_mean(text, sample_tables().names()));
    require(is_utf8(printable(text)));
  }
  return any;
}

const std::vector<std::string>& spec_samples() {
  static const std::vector<std::string> samples = [] {
    std::vector<std::string> list = {
        "none", "a", "a(x=3, y=0.25)", "a(x=-3)+none", "huang-m4(clip=8, per_head=true, beyond=zero, heads=all)",
        "huang-m4(heads=4,)", "text(path=\"a \\\"b\\\" \\\\ \\n\\t\", sizes=[1, 2, 3], rates=[0.5, 1e-3], words=[c2p])",
        "outer(of=unit(depth=2))", "outer(of=unit(depth=1))", "[a(x=1)]*3, none", "[[a, none]*2, a + huang-m4]*2", "9223372036854775807",
        "-9223372036854775808", "1e308", "-0.0", ".5", "1.", "true", "\"true\"", "[]", "[1, 2.5, [x], \"y\", s()]",
        "c2p+p2c", " a ( x = 1 ) ", "\xc3\xbc", "a(x=\"\xc3\xbc\")",
        // broken ones
        "", "a(", "a(x", "a(x=", "a(x=1", "a(x=1,,)", "a(x=1,x=2)", "a(8)", "a+", "a,", "[a]", "[a]*0", "[a]*65536",
        "[[a]*65536]*2", "a(x=9223372036854775808)", "a(x=1e999)", "\"open", "\"\\q\"", "a b", "a)", "1 2", "[1 2]",
        std::string("a(x=\0)", 6), "a(x=\xff)", std::string(40, '['), "a(x=[1e5, nan, inf, -inf, 0x10])"};
    std::string deep;
    for (int i = 0; i < 40; ++i) deep += "a(x=";
    list.push_back(deep);
    std::string many = "a(";
    for (int i = 0; i < 300; ++i) many += "k" + std::to_string(i) + "=1,";
    list.push_back(many + ")");
    return list;
  }();
  return samples;
}

}  // namespace waymark::test
