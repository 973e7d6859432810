#include <doctest/doctest.h>

#include "tests/error_text.h"
#include "train/data/text.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

TEST_CASE("UTF-8 goes in and out") {
  const std::string text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\n";
  const std::u32string points = decode_utf8(text, "t");
  CHECK(points == U"a\u00E4\u20AC\U0001F600\n");
  CHECK(encode_utf8(points) == text);
  CHECK(decode_utf8("\xEF\xBB\xBFx", "t") == U"x");
  CHECK(decode_utf8("", "t").empty());
  for (const char* bad : {"ab\ncd\xFF", "ab\nc\xC0\x80", "ab\nc\xED\xA0\x80", "ab\nc\xE2\x82", "ab\nc\xF4\x90\x80\x80"}) {
    const std::string message = error_text([&] { (void)decode_utf8(bad, "file.txt"); });
    CAPTURE(message);
    CHECK(has(message, "file.txt: line 2, byte "));
    CHECK(has(message, "no UTF-8"));
  }
}

TEST_CASE("lower case without a locale") {
  CHECK(prepare_text(U"AZaz09[\u00C4\u00D7\u00DE\u0116\u0178\u017D\u0391\u03A9\u0386\u0419\u0401\u0531\u1E9E\u1EA0",
                     {.lower = true}) ==
        U"azaz09[\u00E4\u00D7\u00FE\u0117\u00FF\u017E\u03B1\u03C9\u03AC\u0439\u0451\u0561\u00DF\u1EA1");
  // Nothing that is lower already changes, and nothing is changed twice.
  for (char32_t c = 0; c < 0x3000; ++c) {
    const char32_t once = lower_case(c);
    CHECK(lower_case(once) == once);
  }
}

TEST_CASE("white space collapses") {
  CHECK(prepare_text(U" \n a \t\u00A0 b\u2003c  ", {.collapse = true}) == U"a b c");
  CHECK(prepare_text(U"  ", {.collapse = true}).empty());
  CHECK(prepare_text(U"abc", {.collapse = true}) == U"abc");
  CHECK(prepare_text(U"a  b", {}) == U"a  b");
}

TEST_CASE("ids depend on the set of code points alone") {
  Vocabulary v = Vocabulary::of_text(U"hello \U0001F600\n");
  CHECK(v.symbols() == 7);
  CHECK(v.encode(U"\n ehlo\U0001F600") == std::vector<i32>{0, 1, 2, 3, 4, 5, 6});
  CHECK(v.add_special("[MASK]") == 7);
  CHECK(v.size() == 8);
  CHECK(v.name_of(0) == "\\n");
  CHECK(v.name_of(7) == "[MASK]");
  const std::vector<i64> ids = {3, 5, 7, 6};
  CHECK(v.decode(ids) == "ho[MASK]\xF0\x9F\x98\x80");
  CHECK(has(error_text([&] { (void)v.encode(U"hex"); }), "symbol 2 (U+0078 \"x\")"));
  CHECK(has(error_text([&] { (void)v.name_of(8); }), "no symbol 8"));
  const Vocabulary bytes = Vocabulary::of_bytes();
  CHECK(bytes.size() == 256);
  CHECK(bytes.name_of(0xE4) == "0xE4");
  const std::vector<i64> raw = {0xE4, 'a'};
  CHECK(bytes.decode(raw) == "\xE4" "a");
}
