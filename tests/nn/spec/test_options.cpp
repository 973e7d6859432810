// Option tables: types, ranges, defaults, suggestions, several problems at once, and the two printed forms.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "core/tensor/error.h"
#include "nn/spec/options.h"

using namespace waymark;
using namespace waymark::nn;

namespace {

OptionTable sample_table() {
  return OptionTable{"sample",
                     {{"clip", int_option(16, 0, 1 << 20), "largest distance"},
                      {"heads", int_option("all", 1).or_word({"all"}), "how many heads"},
                      {"base", real_option(10000).greater_than(0), "base"},
                      {"lr", real_option("relative", 0).or_word({"relative"}), "rate"},
                      {"values", bool_option(false), "also values"},
                      {"beyond", word_option("clip", {"clip", "zero", "error"}), "farther pairs"},
                      {"file", text_option(""), "path"},
                      {"betas", real_list_option(std::vector<double>{0.9, 0.999}, 0, 1, 2, 2), "moments"},
                      {"lengths", int_list_option(std::vector<i64>{}, 1, 1 << 20), "lengths"},
                      {"terms", word_list_option(std::vector<std::string>{"c2p"}, {"c2p", "p2c"}), "terms"}},
                     "a table with an option of every type"};
}
SpecTables option_tables() {
  SpecTables tables("gadget", {sample_table(), OptionTable{"plain", {}, "no options"}});
  tables.add(OptionTable{"needs", {{"window", int_option(required(), 1, 64), "size"}}, "one required option"});
  tables.add_alias("short", "sample(clip=4)");
  return tables;
}
std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> problems;
  const auto options = option_tables().resolve(parse_spec(text), problems);
  CHECK(options.has_value() == problems.empty());
  return problems;
}
std::string problem_of(const std::string& text) {
  const auto problems = problems_of(text);
  REQUIRE(problems.size() == 1);
  return problems[0];
}

}  // namespace

TEST_CASE("values reach the program in their types") {
  const Options o = option_tables().resolve(
      parse_spec("sample(clip=8, base=2, values=true, beyond=\"zero\", file=\"a b\", betas=[0, 1e-1], lengths=[3,4], "
                 "lr=0.5, heads=2, terms=[p2c,c2p])"));
  CHECK(o.name() == "sample");
  CHECK(o.integer("clip") == 8);
  CHECK(o.real("base") == 2.0);
  CHECK(o.boolean("values"));
  CHECK(o.word("beyond") == "zero");
  CHECK(o.word("file") == "a b");
  CHECK(o.reals("betas") == std::vector<double>{0, 0.1});
  CHECK(o.integers("lengths") == std::vector<i64>{3, 4});
  CHECK(o.words("terms") == std::vector<std::string>{"p2c", "c2p"});
  CHECK(o.real("lr") == 0.5);
  CHECK(o.integer("heads") == 2);
  CHECK_FALSE(o.is_word("heads", "all"));
  CHECK(o.given("clip"));
  CHECK_THROWS_AS(o.integer("base"), Error);
  CHECK_THROWS_AS(o.integer("nothing"), Error);

  const Options d = option_tables().resolve(parse_spec("sample"));
  CHECK(d.integer("clip") == 16);
  CHECK(d.is_word("heads", "all"));
  CHECK_THROWS_AS(d.integer("heads"), Error);  // it is the word
  CHECK_FALSE(d.given("clip"));
  CHECK_FALSE(d == o);
}

TEST_CASE("type slips, ranges and unknown names are refused with what would be right") {
  CHECK(problem_of("sample(clip=1.0)") == "sample: option clip must be int 0..1048576, not float 1.0");
  CHECK(problem_of("sample(clip=1e3)") == "sample: option clip must be int 0..1048576, not float 1000.0");
  CHECK(problem_of("sample(clip=\"8\")") == "sample: option clip must be int 0..1048576, not text \"8\"");
  CHECK(problem_of("sample(clip=-1)") == "sample: option clip must be int 0..1048576, not int -1");
  CHECK(problem_of("sample(base=0)") == "sample: option base must be float > 0, not int 0");
  CHECK(problem_of("sample(base=nan)") == "sample: option base must be float > 0, not word nan");
  CHECK(problem_of("sample(values=yes)") == "sample: option values must be bool (true or false), not word yes");
  CHECK(problem_of("sample(values=1)") == "sample: option values must be bool (true or false), not int 1");
  CHECK(problem_of("sample(beyond=zer)") ==
        "sample: option beyond must be clip | zero | error, not word zer. Did you mean zero?");
  CHECK(problem_of("sample(heads=none)") == "sample: option heads must be int >= 1 or all, not word none");
  CHECK(problem_of("sample(file=3)") == "sample: option file must be text, not int 3");
  CHECK(problem_of("sample(betas=[0.9])") == "sample: option betas must be list of 2 of float 0..1, not a list of 1");
  CHECK(problem_of("sample(betas=[0.9,2])") == "sample: option betas must be list of 2 of float 0..1, not int 2");
  CHECK(problem_of("sample(lengths=3)") == "sample: option lengths must be list of int 1..1048576, not int 3");
  CHECK(problem_of("sample(terms=[c2c])") ==
        "sample: option terms must be list of c2p | p2c, not word c2c. Did you mean c2p or p2c?");
  CHECK(problem_of("sample(valeus=3)") == "sample: unknown option valeus. Did you mean values?");
  CHECK(problem_of("plain(x=3)") == "plain: unknown option x; it has no options");
  CHECK(problem_of("needs") == "needs: option window must be given (int 1..64)");
  CHECK(problems_of("needs(width=3)") == std::vector<std::string>{"needs: unknown option width. It has window.",
                                                                  "needs: option window must be given (int 1..64)"});
  CHECK(problem_of("sampel") == "unknown gadget sampel. Did you mean sample?");
  CHECK(problem_of("zzzzzzzz") == "unknown gadget zzzzzzzz. Known: sample, plain, needs, short.");
}

TEST_CASE("a planned name is told from an unknown one") {
  SpecTables tables = option_tables();
  tables.set_planned({"later"});
  std::vector<std::string> problems;
  tables.resolve(parse_spec("later(x=1)"), problems);
  tables.resolve(parse_spec("latr"), problems);
  CHECK(problems == std::vector<std::string>{"the gadget later is not part of this version. Known: sample, plain, needs.",
                                             "unknown gadget latr. Known: sample, plain, needs, short."});
}

TEST_CASE("all problems of a spec are reported, and the throwing form shows them all") {
  CHECK(problems_of("sample(clip=x, base=x, values=x, beyond=x, lengths=x, zzzzzzzzz=1)").size() == 6);
  try {
    option_tables().resolve(parse_spec("sample(clip=x, values=x)"));
    FAIL("no error");
  } catch (const Error& e) {
    const std::string text = e.what();
    CHECK(text.find("option clip") != std::string::npos);
    CHECK(text.find("option values") != std::string::npos);
  }
}

TEST_CASE("short and canonical forms") {
  const SpecTables tables = option_tables();
  const Options o = tables.resolve(parse_spec("sample(beyond=zero, base=1e5, clip=16)"));
  CHECK(o.short_form() == "sample(base=100000, beyond=zero)");
  CHECK(o.canonical() ==
        "sample(clip=16, heads=all, base=100000, lr=relative, values=false, beyond=zero, file=\"\", betas=[0.9,0.999], "
        "lengths=[], terms=[c2p])");
  CHECK(tables.resolve(parse_spec("plain")).canonical() == "plain");
  CHECK(tables.find("sample")->signature() ==
        "sample(clip=16, heads=all, base=10000, lr=relative, values=false, beyond=clip|zero|error, file=\"\", "
        "betas=[0.9,0.999], lengths=[], terms=[c2p])");
  // One value, one text: the id of a run hangs on it.
  CHECK(tables.resolve(parse_spec("sample(lr=-0.0)")).canonical() ==
        tables.resolve(parse_spec("sample(lr=0)")).canonical());
  CHECK(tables.resolve(parse_spec("sample(beyond=\"zero\")")) == tables.resolve(parse_spec("sample(beyond=zero)")));
  CHECK(tables.resolve(parse_spec("short")).short_form() == "sample(clip=4)");
  CHECK(tables.resolve(parse_spec("short(clip=5, values=true)")).short_form() == "sample(clip=5, values=true)");
}

TEST_CASE("a default from outside is shown in the short form") {
  const OptionTable learned{
      "learned", {{"max_len", int_option(512, 1).default_from("model.max_len"), "rows"}}, "table"};
  const Defaults outer{{"model.max_len", SpecValue(64)}};
  CHECK(learned.resolve(parse_spec("learned")).short_form() == "learned(max_len=512)");
  CHECK(learned.resolve(parse_spec("learned"), outer).short_form() == "learned(max_len=64)");
  // The written value wins, also where it equals the default without surroundings.
  const std::string text = learned.resolve(parse_spec("learned(max_len=512)"), outer).short_form();
  CHECK(learned.resolve(parse_spec(text), outer).integer("max_len") == 512);
}

TEST_CASE("sums are sorted, and a name appears once") {
  const SpecTables tables = option_tables();
  std::vector<std::string> problems;
  const auto a = tables.resolve_sum(parse_sum("plain + sample(clip=2)"), problems);
  const auto b = tables.resolve_sum(parse_sum("sample(clip=2) + plain"), problems);
  REQUIRE(problems.empty());
  CHECK(sum_text(*a, true) == sum_text(*b, true));
  CHECK(sum_text(*a, false) == "sample(clip=2) + plain");
  CHECK_FALSE(tables.resolve_sum(parse_sum("plain + plain + nope"), problems).has_value());
  CHECK(problems == std::vector<std::string>{"plain appears twice in the sum",
                                             "unknown gadget nope. Known: sample, plain, needs, short."});
}

TEST_CASE("rules over several options, nested specs, and tables that are wrong themselves") {
  const SpecTables inner = option_tables();
  OptionTable outer{"outer",
                    {{"low", int_option(1), "low"},
                     {"high", int_option(2), "high"},
                     {"part", spec_option("sample(clip=3)", inner), "a spec"}},
                    "",
                    [](const Options& o, std::vector<std::string>& problems) {
                      if (o.integer("low") > o.integer("high")) problems.push_back("low is above high");
                    }};
  const Options o = outer.resolve(parse_spec("outer(part=needs(window=4))"));
  CHECK(o.spec("part").integer("window") == 4);
  CHECK(o.short_form() == "outer(part=needs(window=4))");
  CHECK(outer.resolve(parse_spec("outer")).spec("part").integer("clip") == 3);
  CHECK(outer.resolve(parse_spec("outer")).short_form() == "outer");
  std::vector<std::string> problems;
  outer.resolve(parse_spec("outer(low=3)"), problems);
  outer.resolve(parse_spec("outer(part=needs(window=99))"), problems);
  CHECK(problems ==
        std::vector<std::string>{"outer: low is above high", "needs: option window must be int 1..64, not int 99"});
  SpecTables tables("gadget");
  CHECK_THROWS_AS(tables.add(OptionTable{"bad", {{"clip", int_option(-1, 0), ""}}, ""}), Error);
  tables.add(OptionTable{"one", {}, ""});
  CHECK_THROWS_AS(tables.add(OptionTable{"one", {}, ""}), Error);
  CHECK_THROWS_AS(tables.add_alias("two", "nothing"), Error);
}

namespace {

struct Random {
  std::mt19937 engine;
  explicit Random(unsigned seed) : engine(seed) {}
  size_t below(size_t n) { return engine() % n; }
  bool coin() { return below(2) == 0; }
  double real() {
    const double scale[] = {1, 1e-8, 1e5, 1e22, 1e-300, 3};
    return (coin() ? 1 : -1) * std::uniform_real_distribution<double>(0, 1)(engine) * scale[below(6)];
  }
  std::string word() {
    const std::string letters = "abcXYZ019_-./+ \"\\\n\t()[]=,";
    std::string out;
    for (size_t i = below(6) + 1; i > 0; --i) out += letters[below(letters.size())];
    return out;
  }
};

// A table with random types and defaults, and a spec that it accepts.
std::pair<OptionTable, Spec> random_case(Random& random, int round) {
  OptionTable table{fmt::format("t{}", round)};
  Spec spec{table.name, {}};
  const size_t count = random.below(7);
  for (size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("o{}", i);
    auto reals = [&] { return std::vector<double>{random.real(), random.real()}; };
    auto list = [](auto values) { return SpecValue(std::vector<SpecValue>(values.begin(), values.end())); };
    const std::vector<std::string> choices{"true-ish", "a/b", "c2p+p2c", "1x"};
    OptionRule rule;
    SpecValue value;
    switch (random.below(7)) {
      case 0:
        rule = int_option(static_cast<i64>(random.below(5)));
        value = static_cast<i64>(random.below(5));
        break;
      case 1:
        rule = real_option(random.real());
        value = random.coin() ? SpecValue(random.real()) : SpecValue(7);
        break;
      case 2:
        rule = bool_option(random.coin());
        value = random.coin();
        break;
      case 3:
        rule = word_option(choices[0], choices);
        value = choices[random.below(4)];
        break;
      case 4:
        rule = text_option(random.word());
        value = random.coin() ? SpecValue::quoted(random.word()) : SpecValue("w");
        break;
      case 5:
        rule = real_list_option(reals(), -1e300, 1e300);
        value = list(reals());
        break;
      default:
        rule = word_list_option(std::vector<std::string>{"x"}, {});
        value = list(std::vector<std::string>{"a b", "true", "1"});
    }
    table.options.push_back({name, rule, ""});
    if (random.coin()) spec.args.push_back({name, value});
  }
  std::shuffle(spec.args.begin(), spec.args.end(), random.engine);
  return {table, spec};
}

}  // namespace

TEST_CASE("property: parse(short(x)) = parse(canonical(x)) = x") {
  Random random(11);
  int shorter = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto [table, spec] = random_case(random, round);
    const Options x = table.resolve(spec);
    CAPTURE(x.canonical());
    CHECK(table.resolve(parse_spec(x.short_form())) == x);
    CHECK(table.resolve(parse_spec(x.canonical())) == x);
    CHECK(table.resolve(parse_spec(to_string(spec))) == x);
    CHECK(table.resolve(parse_spec(x.short_form())).short_form() == x.short_form());
    shorter += x.short_form().size() < x.canonical().size();
  }
  CHECK(shorter > 500);
}
