// Runs the program as a user would: arguments in, exit code and both streams out.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace waymark::test {

struct Outcome {
  int code = -1;  // exit code, or 128 + the signal
  std::string out, err;
};
// The built `waymark` in the folder `directory` (empty: the current one). Output is read to the end; no shell.
// `in_child` is called in the new process before the program begins: to close a stream, set a limit or a variable.
Outcome run_waymark(const std::vector<std::string>& words, const std::string& directory = "",
                    const std::function<void()>& in_child = {});
// Any program, found in PATH.
Outcome run_command(const std::vector<std::string>& words, const std::string& directory = "",
                    const std::function<void()>& in_child = {});

}  // namespace waymark::test
