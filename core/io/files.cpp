#include "core/io/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/tensor/error.h"

namespace waymark {

namespace fs = std::filesystem;

namespace {

std::string reason(int code) { return std::error_code(code, std::generic_category()).message(); }

// A regular file open for reading.
class Input {
 public:
  explicit Input(const fs::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block
    if (fd_ < 0) fail_read(reason(errno));
    struct stat info {};
    const int code = ::fstat(fd_, &info) == 0 ? 0 : errno;
    size_ = info.st_size;
    try {
      if (code != 0) fail_read(reason(code));
      if (S_ISDIR(info.st_mode)) fail_read("it is a folder");
      if (!S_ISREG(info.st_mode)) fail_read("it is no regular file");
    } catch (...) {
      ::close(fd_);
      throw;
    }
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  ~Input() { ::close(fd_); }

  i64 size() const { return size_; }
  // As many bytes as the file has from there, up to to.size().
  size_t read(i64 offset, std::span<std::byte> to) const {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = ::pread(fd_, to.data() + done, to.size() - done, offset + static_cast<i64>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail_read(reason(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
  [[noreturn]] void fail_read(const std::string& why) const { fail("", "cannot read {}: {}", path_.string(), why); }

 private:
  fs::path path_;
  int fd_ = -1;
  i64 size_ = 0;
};

class FileSource final : public ByteSource {
 public:
  FileSource(const fs::path& path, std::unique_ptr<const Input> input)
      : ByteSource(path.string(), input->size()), input_(std::move(input)) {}

 private:
  void get(i64 offset, std::span<std::byte> to) const override {
    const size_t n = input_->read(offset, to);
    if (n < to.size())
      input_->fail_read(fmt::format("it ended at byte {} while it was read, and had {} when it was opened",
                                    offset + static_cast<i64>(n), size()));
  }
  std::unique_ptr<const Input> input_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string bytes, std::string name)
      : ByteSource(std::move(name), static_cast<i64>(bytes.size())), bytes_(std::move(bytes)) {}

 private:
  void get(i64 offset, std::span<std::byte> to) const override {
    std::memcpy(to.data(), bytes_.data() + offset, to.size());
  }
  std::string bytes_;
};

}  // namespace

// ---- Writing -------------------------------------------------------------------------------------------------------

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  static std::atomic<u64> counter{0};
  // The process in the name tells remove_temporary_files whether somebody still writes.
  temporary_ = path_.parent_path() / fmt::format("{}{}-{}", kTemporaryPrefix, ::getpid(), counter++);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_write(errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail_write(int code) const { fail("", "cannot write {}: {}", path_.string(), reason(code)); }

void AtomicFile::write(std::span<const std::byte> bytes) { write_at(size_, bytes); }

void AtomicFile::write_at(i64 offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write(errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
    size_ = std::max(size_, offset);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP) fail_write(errno);
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_write(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(errno);
  temporary_.clear();
  sync_folder(path_.parent_path());
}

void write_file_atomic(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
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

// ---- Reading -------------------------------------------------------------------------------------------------------

std::string read_file(const fs::path& path, i64 limit) {
  const Input file(path);
  if (file.size() > limit) file.fail_read(fmt::format("it has {} bytes, the limit is {}", file.size(), limit));
  std::string bytes;
  bytes.reserve(static_cast<size_t>(file.size()));
  char chunk[1 << 16];
  for (;;) {  // to the end, not to the size: what the kernel shows as a file may say 0, and a log may be growing
    const size_t n = file.read(static_cast<i64>(bytes.size()), std::as_writable_bytes(std::span(chunk)));
    if (n == 0) return bytes;
    bytes.append(chunk, n);
    if (static_cast<i64>(bytes.size()) > limit) file.fail_read(fmt::format("it has more than {} bytes", limit));
  }
}

void ByteSource::read(i64 offset, std::span<std::byte> to) const {
  if (offset < 0 || offset > size_ || static_cast<i64>(to.size()) > size_ - offset)
    fail("", "cannot read {}: {} bytes from byte {} were asked for, it has {}", name_, to.size(), offset, size_);
  if (!to.empty()) get(offset, to);
}

Bytes open_file(const fs::path& path) { return std::make_shared<FileSource>(path, std::make_unique<Input>(path)); }

Bytes memory_bytes(std::string bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

std::string quoted_name(std::string_view text) {
  constexpr size_t kLimit = 60;
  std::string out = "\"";
  for (const char c : text.substr(0, kLimit)) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (c >= 0x20 && c < 0x7f) out += c;
    else out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > kLimit ? "\"..." : "\"");
}

}  // namespace waymark
