#include "tests/train/cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace waymark::test {

namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Outcome run_waymark(const std::vector<std::string>& words, const std::string& directory,
                    const std::function<void()>& in_child) {
  std::vector<std::string> all{WAYMARK_PROGRAM};
  all.insert(all.end(), words.begin(), words.end());
  return run_command(all, directory, in_child);
}

Outcome run_command(const std::vector<std::string>& words, const std::string& directory,
                    const std::function<void()>& in_child) {
  // Files, not pipes: neither stream can block the other.
  std::string out = (std::filesystem::temp_directory_path() / "waymark-out-XXXXXX").string(), err = out;
  const int out_fd = ::mkstemp(out.data()), err_fd = ::mkstemp(err.data());
  if (out_fd < 0 || err_fd < 0) throw std::runtime_error("no temporary file");
  std::vector<std::string> all = words;
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::dup2(out_fd, 1);
    ::dup2(err_fd, 2);
    if (!directory.empty() && ::chdir(directory.c_str()) != 0) ::_exit(126);
    if (in_child) in_child();
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("the program cannot be started");
  ::close(out_fd);
  ::close(err_fd);
  Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_all(out), read_all(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return outcome;
}

}  // namespace waymark::test
