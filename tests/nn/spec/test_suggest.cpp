// Suggestions: distances by hand, the limit, the order, and hostile names.
#include <doctest/doctest.h>

#include "nn/spec/suggest.h"

using namespace waymark;
using namespace waymark::nn;

TEST_CASE("edit distance counts edits and swaps") {
  CHECK(edit_distance("", "", 9) == 0);
  CHECK(edit_distance("rope", "rope", 9) == 0);
  CHECK(edit_distance("rope", "rop", 9) == 1);
  CHECK(edit_distance("rope", "rpoe", 9) == 1);  // a swap is one edit
  CHECK(edit_distance("kitten", "sitting", 9) == 3);
  CHECK(edit_distance("ca", "abc", 9) == 2);  // swapped letters with an insertion between them
  CHECK(edit_distance("abcdef", "badcfe", 9) == 3);
  CHECK(edit_distance("", "abc", 9) == 3);
  CHECK(edit_distance("kitten", "sitting", 2) == 3);  // limit + 1
  CHECK(edit_distance("a", "abcdefgh", 2) == 3);
}

TEST_CASE("suggestions lie within max(2, length / 3), nearest first, at most three") {
  CHECK(suggestion_limit("abcd") == 2);
  CHECK(suggestion_limit("abcdefghi") == 3);
  CHECK(suggestion_limit("ab") == 1);  // never all letters
  const std::vector<std::string> names{"sinusoid", "learned",  "shaw", "huang-m1", "huang-m2",
                                       "huang-m3", "huang-m4", "rope", "none"};
  CHECK(suggest("sinsuoid", names) == std::vector<std::string>{"sinusoid"});
  CHECK(suggest("huang-m5", names) == std::vector<std::string>{"huang-m1", "huang-m2", "huang-m3"});
  CHECK(suggest("huang-m3", names) == std::vector<std::string>{"huang-m3"});
  CHECK(suggest("performer", names).empty());
  CHECK(suggest("", names).empty());
  CHECK(did_you_mean("roep", names) == " Did you mean rope?");
  CHECK(did_you_mean("huangm", {"huang-m1", "huang-m2"}) == " Did you mean huang-m1 or huang-m2?");
  CHECK(did_you_mean("zzzzzz", names).empty());
}

TEST_CASE("only the nearest rank is suggested, but an exact name always, and nothing twice") {
  const std::vector<Candidate> candidates{
      {"abce", "other", 1}, {"abxx", "far", 0}, {"abcg", "near", 0}, {"abch", "near", 0}};
  CHECK(suggest("abcd", candidates) == std::vector<std::string>{"near", "far"});
  CHECK(suggest("abce", candidates) == std::vector<std::string>{"other"});
  CHECK(suggest("abce1", std::vector<Candidate>{{"zzzz", "no", 0}, {"abce", "other", 1}}) ==
        std::vector<std::string>{"other"});
}

TEST_CASE("a name of a megabyte is compared at once and shown short") {
  const std::string huge(1 << 20, 'x');
  CHECK(suggest(huge, std::vector<std::string>{"rope", "none"}).empty());
  CHECK(printable(huge).size() < 100);
}

TEST_CASE("names of strangers are printed without control characters") {
  CHECK(printable("a\nb\tc\x1b[2J") == "a\\nb\\tc\\x1b[2J");
  CHECK(printable("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\xc2\\x9b2J");               // a one-character CSI
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(printable("abcdef", 3) == "abc... (6 bytes)");
}
