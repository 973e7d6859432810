#include "train/report/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/tensor/error.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

std::string reason(int code) { return std::error_code(code, std::generic_category()).message(); }

// Closes and removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) {
    static std::atomic<u64> counter{0};
    // The process in the name tells remove_temporary_files whether somebody still writes.
    path_ = target.parent_path() / fmt::format("{}{}-{}", kTemporaryPrefix, ::getpid(), counter++);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("", "cannot write {}: {}", target.string(), reason(errno));
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw std::system_error(errno, std::generic_category());
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP)
      throw std::system_error(errno, std::generic_category());
  }
  void rename_to(const fs::path& target) {
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) throw std::system_error(errno, std::generic_category());
    if (::rename(path_.c_str(), target.c_str()) != 0) throw std::system_error(errno, std::generic_category());
    path_.clear();
  }

 private:
  fs::path path_;
  int fd_ = -1;
};

}  // namespace

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  Temporary file(path);
  try {
    file.write(bytes);
    file.rename_to(path);
  } catch (const std::system_error& e) {
    fail("", "cannot write {}: {}", path.string(), e.code().message());
  }
  sync_folder(path.parent_path());
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

i64 remove_temporary_files(const fs::path& folder) {
  i64 removed = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(kTemporaryPrefix, 0) != 0) continue;
    pid_t pid = 0;
    const char* digits = name.data() + kTemporaryPrefix.size();
    const auto parsed = std::from_chars(digits, name.data() + name.size(), pid);
    const bool ours = parsed.ec == std::errc() && *parsed.ptr == '-' && pid > 0;
    if (ours && (pid == ::getpid() || ::kill(pid, 0) == 0 || errno == EPERM)) continue;
    std::error_code ignored;
    if (fs::remove_all(it->path(), ignored) != static_cast<std::uintmax_t>(-1)) ++removed;
  }
  return removed;
}

std::string read_file(const fs::path& path, i64 limit) {
  struct Fd {
    int fd;
    ~Fd() {
      if (fd >= 0) ::close(fd);
    }
  } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a FIFO must not block
  if (file.fd < 0) fail("", "cannot read {}: {}", path.string(), reason(errno));
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail("", "cannot read {}: {}", path.string(), reason(errno));
  if (S_ISDIR(info.st_mode)) fail("", "cannot read {}: it is a folder", path.string());
  if (!S_ISREG(info.st_mode)) fail("", "cannot read {}: it is no regular file", path.string());
  if (info.st_size > limit)
    fail("", "cannot read {}: it has {} bytes, the limit is {}", path.string(), info.st_size, limit);
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(info.st_size));
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("", "cannot read {}: {}", path.string(), reason(errno));
    if (n == 0) return bytes;
    bytes.append(chunk, static_cast<std::size_t>(n));
    if (static_cast<i64>(bytes.size()) > limit)
      fail("", "cannot read {}: it has more than {} bytes", path.string(), limit);
  }
}

}  // namespace waymark::train
