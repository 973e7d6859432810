// Broken and hostile files with the message that each must give, and good ones. The tests of the readers go through
// them, and the fuzz targets start from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waymark::test {

struct SampleFile {
  std::string name;
  std::string bytes;
  std::string message;  // whole text of the Error when the file is called "f" and read to its end; empty: a good file
};

// A file of this header and data, with the length in front.
std::string safetensors_bytes(std::string_view header, std::string_view data = {});
std::vector<SampleFile> safetensors_samples();

}  // namespace waymark::test
