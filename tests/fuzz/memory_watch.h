// The limit on memory that a reader may take for an input: 2 x its size + 1 MiB, or + `spare` where the format allows
// short texts for long things. Needs AddressSanitizer.
#pragma once

#include <cstddef>

namespace waymark::test {

// From construction to destruction every allocation of the process counts; passing the limit aborts the process, which
// libFuzzer reports with the input.
class MemoryWatch {
 public:
  explicit MemoryWatch(std::size_t input_bytes, std::size_t spare = std::size_t{1} << 20);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
};

}  // namespace waymark::test
