// Runs the program as a user would: arguments in, exit code and both streams out.
#pragma once

#include <string>
#include <vector>

namespace waymark::test {

struct Outcome {
  int code = -1;  // exit code, or 128 + the signal
  std::string out, err;
};
// The built `waymark` in the folder `directory` (empty: the current one). Output is read to the end; no shell.
Outcome run_program(const std::vector<std::string>& words, const std::string& directory = "");

}  // namespace waymark::test
