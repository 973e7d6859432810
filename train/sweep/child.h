// Internal: one child process of a sweep.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace waymark::train {

class Child {
 public:
  // Starts argv[0]; standard output and error go to `log` (appended), standard input is empty. Error if it cannot start.
  Child(const std::vector<std::string>& argv, const std::filesystem::path& log);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  // The exit code if the child has ended (128 + n for signal n), else nothing. Does not wait.
  std::optional<int> poll();
  void signal(int number) const;

 private:
  pid_t pid_ = -1;
};

}  // namespace waymark::train
