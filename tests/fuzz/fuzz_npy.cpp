#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/core/io/exercise.h"
#include "tests/fuzz/memory_watch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const waymark::test::MemoryWatch watch(size);
  waymark::test::exercise_npy(std::move(bytes));
  return 0;
}
