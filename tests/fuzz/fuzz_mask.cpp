#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fuzz/memory_watch.h"
#include "tests/nn/attention/exercise_mask.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const waymark::test::MemoryWatch watch(size, 16 << 20);
  waymark::test::exercise_mask(text);
  return 0;
}
