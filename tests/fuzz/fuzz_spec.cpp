#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/memory_watch.h"
#include "tests/nn/spec/exercise_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(waymark::test::sample_tables());
  const std::string text(reinterpret_cast<const char*>(data), size);
  // A pattern is written out: "[a]*65536" is that many specs.
  const waymark::test::MemoryWatch watch(size, 128 << 20);
  waymark::test::exercise_spec(text);
  return 0;
}
