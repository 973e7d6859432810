// The grammar of spec strings: what parses, what does not and where the caret stands, and printing back.
#include <doctest/doctest.h>

#include <random>

#include "nn/spec/spec.h"
#include "tests/error_text.h"

using namespace waymark;
using namespace waymark::nn;
using Kind = SpecValue::Kind;

namespace {

std::string spec_error(const std::string& text) {
  return test::error_text([&] { parse_spec(text); });
}
std::string pattern_error(const std::string& text) {
  return test::error_text([&] { parse_pattern(text); });
}
bool starts_with(const std::string& text, const std::string& head) { return text.rfind(head, 0) == 0; }

}  // namespace

TEST_CASE("values get their type from their form") {
  CHECK(parse_value("16") == SpecValue(16));
  CHECK(parse_value("-3") == SpecValue(-3));
  CHECK(parse_value("+5") == SpecValue(5));
  CHECK(parse_value("9223372036854775807") == SpecValue(i64{9223372036854775807}));
  CHECK(parse_value("1e3") == SpecValue(1000.0));
  CHECK(parse_value("1.") == SpecValue(1.0));
  CHECK(parse_value(".5") == SpecValue(0.5));
  CHECK(parse_value("-2.5e-3") == SpecValue(-0.0025));
  CHECK(parse_value("true") == SpecValue(true));
  CHECK(parse_value("false") == SpecValue(false));
  CHECK(parse_value("\"16\"") == SpecValue::quoted("16"));
  CHECK(parse_value("\"a \\\"b\\\" \\\\ \\n\"") == SpecValue::quoted("a \"b\" \\ \n"));
  CHECK(parse_value("[1, 2.5, [x]]") == SpecValue(std::vector<SpecValue>{1, 2.5, std::vector<SpecValue>{"x"}}));
  CHECK(parse_value("[]") == SpecValue(std::vector<SpecValue>{}));
  CHECK(parse_value("normal(std=0.02)") == SpecValue(Spec{"normal", {{"std", 0.02}}}));
  for (const char* word :
       {"c2p+p2c", "yes", "nan", "inf", "1_000", "0x10", "1e", "1.2.3", "data/x-1.txt", "-", "True"}) {
    CAPTURE(word);
    CHECK(parse_value(word) == SpecValue(word));
  }
  CHECK(!(parse_value("1") == SpecValue(1.0)));
  CHECK(!(parse_value("x") == SpecValue::quoted("x")));
}

TEST_CASE("specs, sums and patterns") {
  const Spec spec = parse_spec(" huang-m4 ( clip = 8 , beyond=zero, ) ");
  CHECK(spec == Spec{"huang-m4", {{"clip", 8}, {"beyond", "zero"}}});
  CHECK(spec.column == 2);
  CHECK(spec.args[1].column == 24);
  CHECK(*spec.find("clip") == SpecValue(8));
  CHECK(spec.find("cli") == nullptr);
  CHECK(parse_spec("none()") == Spec{"none", {}});

  CHECK(parse_sum("learned+t5(buckets=32)") == SpecSum{{"learned", {}}, {"t5", {{"buckets", 32}}}});
  CHECK(parse_sum("deberta(terms=c2p+p2c) + rope").size() == 2);

  auto names = [](const std::string& text) {
    std::string out;
    for (const SpecSum& sum : parse_pattern(text)) out += to_string(sum) + ";";
    return out;
  };
  CHECK(names("rope") == "rope;");
  CHECK(names("[rope]*3, none") == "rope;rope;rope;none;");
  CHECK(names("[ [a, b]*2 , c + d ]*2") == "a;b;a;b;c + d;a;b;a;b;c + d;");
  CHECK(names("[local(window=8)]*1,dense") == "local(window=8);dense;");
}

TEST_CASE("errors name the column and show it with a caret") {
  CHECK(spec_error("huang-m4(clip=16") ==
        "spec: expected ')' or ',', found the end at column 17\n"
        "  huang-m4(clip=16\n"
        "                  ^");
  CHECK(spec_error("a(x=1,x=2)") ==
        "spec: option x is given twice at column 7\n"
        "  a(x=1,x=2)\n"
        "        ^");
  // Columns are characters, not bytes.
  CHECK(
      starts_with(spec_error("a(x=\"\xc3\xbc\xc3\xbc\", ?)"), "spec: expected an option name, found '?' at column 11"));
  CHECK(starts_with(spec_error(""), "spec: expected a name, found the end at column 1"));
  CHECK(starts_with(spec_error("16"), "spec: expected a name, found '1' at column 1"));
  CHECK(starts_with(spec_error("a b"), "spec: '+' joins encodings only where a sum is allowed, found 'b' at column 3"));
  CHECK(starts_with(spec_error("a(8)"), "spec: expected an option name, found '8' at column 3"));
  CHECK(starts_with(spec_error("a(b)"), "spec: expected option=value, found 'b': arguments are named at column 3"));
  CHECK(starts_with(spec_error("a(,)"), "spec: expected an option name, found ',' at column 3"));
  CHECK(starts_with(spec_error("a(x=)"), "spec: expected a value, found ')' at column 5"));
  CHECK(starts_with(spec_error("a(x=[1 2])"), "spec: expected ']' or ',', found '2' at column 8"));
  CHECK(starts_with(spec_error("a(x=\"y)"), "spec: the quote is not closed at column 5"));
  CHECK(starts_with(spec_error("a(x=\"\\q\")"),
                    "spec: in quotes a backslash stands before \" \\ n or t only at column 7"));
  CHECK(starts_with(spec_error("a(x=9223372036854775808)"), "spec: '9223372036854775808' does not fit into 64 bits"));
  CHECK(starts_with(spec_error("a(x=1e999)"), "spec: '1e999' is outside the range of a double"));
  CHECK(starts_with(spec_error("a(x=b+c(d=1))"), "spec: 'b+c' is no name of a spec at column 5"));
  CHECK(starts_with(spec_error("a)"), "spec: '+' joins encodings only where a sum is allowed, found ')' at column 2"));
  CHECK(starts_with(pattern_error("[rope]"),
                    "spec: expected '*' and how often the bracket repeats: [rope]*3, found the end"));
  CHECK(starts_with(pattern_error("[rope]*0"), "spec: expected a number from 1 to 65536 at column 8"));
  CHECK(starts_with(pattern_error("[rope*3"), "spec: expected ']' or ',', found '*' at column 6"));
  CHECK(starts_with(pattern_error("a,"), "spec: expected a name, found the end at column 3"));
  CHECK(starts_with(pattern_error("a+"), "spec: expected a name, found the end at column 3"));
}

TEST_CASE("hostile texts end in an error, soon") {
  const std::string deep(100000, '[');
  CHECK(starts_with(pattern_error(deep), "spec: brackets are nested deeper than 32 levels at column"));
  CHECK(starts_with(spec_error("a(x=" + deep), "spec: brackets are nested deeper than 32 levels at column"));
  std::string calls;
  for (int i = 0; i < 10000; ++i) calls += "a(x=";
  CHECK(starts_with(spec_error(calls), "spec: brackets are nested deeper than 32 levels at column"));
  CHECK(starts_with(spec_error(std::string(2 << 20, 'a')), "spec: a text of 2097152 bytes is no spec"));
  CHECK(starts_with(pattern_error("[[[a]*60000]*60000]*60000"), "spec: the pattern has more than 65536 layers"));
  CHECK(starts_with(pattern_error("[a(x=" + std::string(100000, 'y') + ")]*60000"),
                    "spec: the repetitions of the pattern are too long"));
  std::string many = "a(";
  for (int i = 0; i < 100000; ++i) many += "k" + std::to_string(i) + "=1,";
  CHECK(starts_with(spec_error(many + ")"), "spec: more than 256 options"));
  const std::string message = spec_error("a(" + std::string(500000, 'k') + "=1, ?" + std::string(400000, 'k') + ")");
  CHECK(starts_with(message, "spec: expected an option name, found '?' at column 500007"));
  CHECK(message.size() < 400);
  CHECK(starts_with(spec_error(std::string("a(x=\0)", 6)), "spec: expected a value, found '\\x00' at column 5"));

  // Random bytes of the grammar's own letters: an error or a spec that prints and parses back, nothing else.
  std::mt19937 random(7);
  const std::string letters = "ab1.-+()[]=,\"\\* e\n\xc3";
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const size_t length = random() % 12;
    for (size_t i = 0; i < length; ++i) text += letters[random() % letters.size()];
    try {
      const SpecSum sum = parse_sum(text);
      ++parsed;
      CHECK(parse_sum(to_string(sum)) == sum);
    } catch (const Error&) {}
  }
  CHECK(parsed > 100);
}

TEST_CASE("what is printed parses back to the same value and type") {
  for (const char* text :
       {"1", "1.0", "1e+22", "0.1", "-0.0", "true", "word", "\"two words\"", "\"true\"", "\"1\"", "\"\"",
        "\"a\\\"b\\\\c\\nd\\te\"", "[1, 1.0, \"1\", x]", "[]", "s(a=1)", "[s(a=t(b=[2]))]", "s()"}) {
    CAPTURE(text);
    const SpecValue value = parse_value(text);
    CHECK(parse_value(to_string(value)) == value);
  }
  // A word that a program made may need quotes.
  CHECK(to_string(SpecValue("two words")) == "\"two words\"");
  CHECK(to_string(SpecValue("true")) == "\"true\"");
  CHECK(to_string(SpecValue(1.0)) == "1.0");
  CHECK(to_string(parse_spec("a( x=1,y=[b, 2.5] )")) == "a(x=1, y=[b, 2.5])");
  CHECK(to_string(parse_sum("a+b(x=1)")) == "a + b(x=1)");
  CHECK(pattern_to_string({"a"}) == "a");
  CHECK(pattern_to_string({"a", "a", "a"}) == "a");
  CHECK(pattern_to_string({"a", "a", "b", "c", "c"}) == "[a]*2, b, [c]*2");
}
