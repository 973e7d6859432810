#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/memory_watch.h"
#include "tests/train/config/exercise_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool registries_are_made = waymark::test::exercise_config("task = 'toy'\n");
  static_cast<void>(registries_are_made);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // A pattern of encodings is written out: "[rope]*65536" is that many specs.
  const waymark::test::MemoryWatch watch(size, 128 << 20);
  waymark::test::exercise_config(bytes);
  return 0;
}
