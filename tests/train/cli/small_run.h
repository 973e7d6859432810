// A folder with a small text, and the arguments of a run on it that ends at once.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace waymark::test {

struct SmallRun : TemporaryFolder {
  SmallRun() {
    std::ofstream file(text());
    for (int i = 0; i < 300; ++i) file << "in the beginning was the word " << i % 9 << '\n';
  }
  std::string text() const { return (*this / "text.txt").string(); }
  std::vector<std::string> words(const std::string& command) const {
    return {command, "--task", "char-mlm(source=file, path=\"" + text() + "\", context=16)", "--position", "huang-m4(clip=3)",
            "--set", "model.embed_dim=16", "--set", "model.num_heads=2", "--set", "model.num_layers=1", "--set",
            "train.batch_size=4"};
  }
};

}  // namespace waymark::test
