#include "nn/spec/glob.h"

#include <doctest/doctest.h>

#include <string>

using waymark::nn::glob_match;

TEST_CASE("glob: stars and question marks, the whole text") {
  CHECK(glob_match("rope", "rope"));
  CHECK_FALSE(glob_match("rope", "rope2"));
  CHECK(glob_match("t5*", "t5(buckets=32)"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("", ""));
  CHECK_FALSE(glob_match("", "a"));
  CHECK(glob_match("huang-m?", "huang-m4"));
  CHECK_FALSE(glob_match("huang-m?", "huang-m"));
  CHECK(glob_match("*.weight", "encoder.layers.0.weight"));
  CHECK_FALSE(glob_match("*.weight", "encoder.weight.bias"));
  CHECK(glob_match("a*b*c", "a-b-b-c"));
  CHECK_FALSE(glob_match("a*b*c", "a-c-b"));
  CHECK(glob_match("[rope]*3", "[rope]*3"));
  CHECK_FALSE(glob_match("[rope]", "r"));
}

TEST_CASE("glob: many stars do not explode") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(glob_match(pattern + "b", std::string(20000, 'a')));
}
