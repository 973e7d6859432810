#include <doctest/doctest.h>

#include "core/tensor/error.h"

using namespace waymark;

TEST_CASE("error text is 'op: message', with the op apart") {
  try {
    fail("matmul", "inner sizes differ: {} != {}", 64, 32);
  } catch (const Error& e) {
    CHECK(std::string_view(e.what()) == "matmul: inner sizes differ: 64 != 32");
    CHECK(e.op() == "matmul");
    CHECK_FALSE(e.loc());
    return;
  }
  FAIL("fail() returned");
}

TEST_CASE("error without an op is the message alone and keeps its place") {
  const Error e("", "broken", Loc::here());
  CHECK(std::string_view(e.what()) == "broken");
  CHECK(std::string_view(e.loc().name()) == "test_error.cpp");
  CHECK(e.loc().line > 0);
}
