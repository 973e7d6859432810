// Tasks on a small text.
#pragma once

#include <fstream>

#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "train/tasks/registry.h"

namespace waymark::test {

// A text with some structure: 26 letters in runs, spaces and line ends; n symbols.
inline std::string sample_text(size_t n) {
  std::string text;
  u64 x = 12345;
  while (text.size() < n) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    const char letter = static_cast<char>('a' + (x >> 33) % 26);
    text += std::string(1 + (x >> 40) % 3, letter);
    text += (x >> 50) % 7 == 0 ? "\n" : " ";
  }
  return text.substr(0, n);
}

inline std::string write_text(const TemporaryFolder& folder, const std::string& text, const std::string& name = "text.txt") {
  const auto path = folder / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

struct MadeTask {
  nn::Options spec;
  std::unique_ptr<train::Task> task;
  train::Task* operator->() const { return task.get(); }
};
inline MadeTask make_task(const std::string& spec, train::TaskRequest request = {}) {
  MadeTask made{train::task_tables().resolve(nn::parse_spec(spec)), nullptr};
  request.spec = &made.spec;
  made.task = train::make_task(request);
  return made;
}

}  // namespace waymark::test
