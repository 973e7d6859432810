#include "train/report/escape.h"

#include <doctest/doctest.h>

#include <string>

#include "core/tensor/error.h"

using namespace waymark;
using namespace waymark::train;

TEST_CASE("escape: one line of valid UTF-8 from any bytes") {
  CHECK(clean_line("a\nb\tc\x7f") == "a b c ");
  CHECK(clean_line("Gödel ± † 字") == "Gödel ± † 字");
  CHECK(clean_line("\x1b[31mred") == " [31mred");
  CHECK(clean_line("x\xe2\x80\xaey") == "x y");                 // right-to-left override
  CHECK(clean_line("\xff") == "\xef\xbf\xbd");                  // no UTF-8 byte
  CHECK(clean_line("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");  // overlong slash
  CHECK(clean_line("\xed\xa0\x80").substr(0, 3) == "\xef\xbf\xbd");  // surrogate
  CHECK(clean_line("ab\xe2\x82") == "ab\xef\xbf\xbd\xef\xbf\xbd");   // cut off
  CHECK(clean_line("\xf4\x90\x80\x80").substr(0, 3) == "\xef\xbf\xbd");  // above U+10FFFF
  CHECK(clean_line("\xf0\x9f\x8e\xb9") == "\xf0\x9f\x8e\xb9");
}

TEST_CASE("escape: no mark that turns the writing direction is left") {
  for (const char* mark : {"\u061C", "\u200E", "\u200F", "\u202E", "\u2066", "\u2069"}) {
    CHECK(clean_line(std::string("a") + mark + "b") == "a b");
    CHECK(escape_xml(std::string("a") + mark + "b") == "a\uFFFDb");
  }
}

TEST_CASE("escape: shortening counts code points") {
  CHECK(shorten("abcdef", 6) == "abcdef");
  CHECK(shorten("abcdefg", 6) == "abcde…");
  CHECK(shorten("ööö", 2) == "ö…");
  CHECK(shorten(std::string(10000, 'x'), 5) == "xxxx…");
  CHECK(shorten("", 1).empty());
  CHECK(display_width("ö±x") == 3);
  CHECK_THROWS_AS(shorten("x", 0), Error);
}

TEST_CASE("escape: hostile names in every format") {
  const std::string evil = "<script>alert(\"x\")</script> & '|`[a](javascript:b)*\n";
  CHECK(escape_xml("<script src='a'>&\"") == "&lt;script src=&#39;a&#39;&gt;&amp;&quot;");
  CHECK(escape_xml(evil).find('<') == std::string::npos);
  CHECK(escape_xml(std::string_view("a\0b", 3)) == "a\xef\xbf\xbd" "b");
  CHECK(escape_markdown("a|b") == "a\\|b");
  CHECK(escape_markdown("<b>&amp;") == "&lt;b&gt;&amp;amp;");
  CHECK(escape_markdown("[x](y) `z` *w* ~s~") == "\\[x\\](y) \\`z\\` \\*w\\* \\~s\\~");
  CHECK(escape_markdown("[local(window=8)]*3, [x]") == "[local(window=8)]\\*3, [x]");
  CHECK(escape_markdown("[x][y]") == "\\[x\\]\\[y\\]");
  CHECK(escape_markdown("model.embed_dim _em_ a\\") == "model.embed_dim \\_em\\_ a\\\\");
  CHECK(escape_markdown("two\nlines") == "two lines");
  CHECK(escape_latex("50 % of $x_1 & {a}~^\\#") ==
        "50 \\% of \\$x\\_1 \\& \\{a\\}\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\#");
  CHECK(escape_latex("a<b>\n|\"") == "a\\textless{}b\\textgreater{} \\textbar{}\\textquotedbl{}");
  CHECK(csv_field("plain") == "plain");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
  CHECK(csv_field("cr\r") == "\"cr\r\"");
  CHECK(json_string("a\"b\\c\n\t\r\x01") == "\"a\\\"b\\\\c\\n\\t\\r\\u0001\"");
  CHECK(json_string("\xff") == "\"\xef\xbf\xbd\"");
}

TEST_CASE("escape: file names stay in their folder") {
  CHECK(file_name("../../etc/passwd") == "etc-passwd");
  CHECK(file_name("..") == "unnamed");
  CHECK(file_name("") == "unnamed");
  CHECK(file_name("/") == "unnamed");
  CHECK(file_name("\n\x1b") == "unnamed");
  CHECK(file_name(".tmp-x") == "tmp-x");
  CHECK(file_name("-rf") == "rf");
  CHECK(file_name("learned(max_len=256)") == "learned-max_len=256");
  CHECK(file_name("[local(window=8)]*3, dense") == "local-window=8-3-dense");
  CHECK(file_name("<script>\nx") == "script-x");
  const std::string a(10000, 'a'), b = std::string(9999, 'a') + "b";
  CHECK(file_name(a).size() == 96);
  CHECK(file_name(a) != file_name(b));
  CHECK(file_name(a, 40).size() == 40);
  CHECK_THROWS_AS(file_name("a", 5), Error);
}
