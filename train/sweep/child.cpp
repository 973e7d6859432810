#include "train/sweep/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/tensor/error.h"

namespace waymark::train {

Child::Child(const std::vector<std::string>& argv, const std::filesystem::path& log) {
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out < 0) fail("sweep", "cannot write {}: {}", log.string(), std::strerror(errno));
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int broken[2];  // tells an exec that failed from a program that did
  if (in < 0 || pipe2(broken, O_CLOEXEC) != 0) {
    close(out);
    if (in >= 0) close(in);
    fail("sweep", "cannot start {}: {}", argv[0], std::strerror(errno));
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {  // only async-signal-safe calls until exec: other threads may hold locks
    // A group of its own: Ctrl-C reaches the sweep alone, which passes it on once. And no child survives the sweep,
    // however that ends.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(143);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    execv(args[0], args.data());
    const int error = errno;
    (void)!write(broken[1], &error, sizeof(error));
    _exit(127);
  }
  close(in);
  close(out);
  close(broken[1]);
  int error = pid_ < 0 ? errno : 0;
  if (pid_ > 0 && read(broken[0], &error, sizeof(error)) == static_cast<ssize_t>(sizeof(error))) waitpid(pid_, nullptr, 0);
  close(broken[0]);
  if (error) {
    pid_ = -1;
    fail("sweep", "cannot start {}: {}", argv[0], std::strerror(error));
  }
}

Child::~Child() {
  if (pid_ < 0) return;
  // Only left behind by an exception: no child may outlive the sweep.
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}
Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

std::optional<int> Child::poll() {
  int status = 0;
  if (pid_ < 0 || waitpid(pid_, &status, WNOHANG) != pid_) return {};
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void Child::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

}  // namespace waymark::train
