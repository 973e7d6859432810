// make_corpus FOLDER: writes the good, broken and hostile files of the tests into FOLDER/<format>/, for the fuzz
// targets to start from.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "tests/core/io/hostile_files.h"
#include "tests/nn/attention/exercise_mask.h"
#include "tests/nn/spec/exercise_spec.h"
#include "tests/train/config/exercise_config.h"

int main(int count, char** arguments) {
  using namespace waymark::test;
  namespace fs = std::filesystem;
  if (count != 2) {
    fmt::print(stderr, "make_corpus FOLDER\n");
    return 2;
  }
  const auto bytes_of = [](const std::vector<SampleFile>& samples) {
    std::vector<std::string> list;
    for (const SampleFile& file : samples) list.push_back(file.bytes);
    return list;
  };
  const std::pair<const char*, std::vector<std::string>> formats[] = {{"safetensors", bytes_of(safetensors_samples())},
                                                                      {"npy", bytes_of(npy_samples())},
                                                                      {"npz", bytes_of(npz_samples())},
                                                                      {"spec", spec_samples()},
                                                                      {"mask", mask_samples()},
                                                                      {"config", config_samples()}};
  for (const auto& [format, files] : formats) {
    const fs::path folder = fs::path(arguments[1]) / format;
    fs::create_directories(folder);
    int number = 0;
    for (const std::string& bytes : files) {
      std::ofstream out(folder / fmt::format("{:03}", number++), std::ios::binary);
      out << bytes;
      if (!out.flush()) {
        fmt::print(stderr, "cannot write into {}\n", folder.string());
        return 1;
      }
    }
    fmt::print("{}: {} files\n", folder.string(), number);
  }
}
