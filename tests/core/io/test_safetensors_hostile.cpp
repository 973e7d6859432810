// Broken and hostile safetensors files give an Error with the place, never anything worse.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "core/io/safetensors.h"
#include "tests/core/io/exercise.h"
#include "tests/core/io/hostile_files.h"
#include "tests/core/io/mutations.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::test;

TEST_CASE("safetensors: every fault has its message") {
  std::set<std::string> names;
  for (const SampleFile& file : safetensors_samples()) {
    CAPTURE(file.name);
    CHECK(names.insert(file.name).second);
    CHECK(safetensors_error(file.bytes) == file.message);
  }
}

TEST_CASE("safetensors: a file cut anywhere, or with a byte more, is refused") {
  for (const SampleFile& file : safetensors_samples()) {
    if (!file.message.empty() || file.bytes.size() > 1000) continue;
    CAPTURE(file.name);
    for (size_t n = 0; n < file.bytes.size(); ++n) {
      CAPTURE(n);
      CHECK_FALSE(exercise_safetensors(file.bytes.substr(0, n)));
    }
    CHECK_FALSE(exercise_safetensors(file.bytes + '\0'));
  }
}

TEST_CASE("safetensors: flipped bits are refused or read, nothing else") {
  check_bit_flips(safetensors_samples(), by_level(500, 2000, 100000), exercise_safetensors);
}

TEST_CASE("safetensors: a shape costs nothing before it is checked") {
  // 2^40 elements in a file of a few bytes.
  const std::string bytes =
      safetensors_bytes(R"({"a":{"dtype":"F64","shape":[1099511627776],"data_offsets":[0,8796093022208]}})");
  reset_peak();
  const i64 before = memory_counters().bytes_peak;
  CHECK_FALSE(exercise_safetensors(bytes));
  CHECK(memory_counters().bytes_peak == before);
}

TEST_CASE("safetensors: many names are checked quickly") {
  std::string header = "{";
  for (int i = 0; i < 50000; ++i)
    header += fmt::format("{}\"{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", i ? "," : "", i);
  const SafeTensors file = load_safetensors(memory_bytes(safetensors_bytes(header + "}"), "f"));
  CHECK(file.size() == 50000);
  CHECK(file.contains("49999"));
  CHECK_FALSE(file.contains("50000"));
}
