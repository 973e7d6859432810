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

// Magic, version, length, this text, and the data.
std::string npy_bytes(std::string_view text, std::string_view data = {}, int version = 1);
std::vector<SampleFile> npy_samples();

// A zip archive of these members.
struct ZipPart {
  std::string name;
  std::string bytes;
  bool deflate = false;
  bool zip64 = false;       // sizes in an extra field of 64-bit numbers
  bool described = false;   // checksum and sizes behind the data, as a writer does that cannot go back
  std::string behind = {};  // more packed data, behind the end of the deflate stream
};
std::string zip_bytes(const std::vector<ZipPart>& parts);
std::vector<SampleFile> npz_samples();

}  // namespace waymark::test
