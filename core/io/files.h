// Files: written whole or not at all (under a temporary name in the same folder, synced, renamed); read by checked
// ranges, so that a file which is shorter than it claims gives an Error.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark {

// ---- Writing -------------------------------------------------------------------------------------------------------

// Temporary names begin with this; what is left of a killed process is removed at the next start.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// A file that appears under its name only with commit(). Whatever happens before, also a kill in the middle or a full
// disk, `path` stays what it was; without commit() nothing is left. The folder must exist. Errors have path and reason.
class WAYMARK_API AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);  // at the end of what was written so far
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes.data(), bytes.size()))); }
  void write_at(i64 offset, std::span<const std::byte> bytes);
  i64 size() const { return size_; }
  // Syncs, renames, syncs the folder. Nothing may be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail_write(int code) const;
  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  i64 size_ = 0;
};

// Replaces `path` by a file of these bytes, by an AtomicFile.
WAYMARK_API void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

// Makes new entries of a folder (a rename) survive a loss of power. A file system that cannot do it is no error.
WAYMARK_API void sync_folder(const std::filesystem::path& folder);

// Removes entries of `folder` (not below it) whose names begin with the prefix. Returns how many. A file that a live
// process of this machine is writing stays.
WAYMARK_API i64 remove_temporary_files(const std::filesystem::path& folder);

// ---- Reading -------------------------------------------------------------------------------------------------------

// The whole file. Error with path and reason, also for a folder and for more than `limit` bytes.
WAYMARK_API std::string read_file(const std::filesystem::path& path, i64 limit = i64{1} << 30);

// Bytes that can be read in any order: an open file, or memory. Reading is thread-safe.
class WAYMARK_API ByteSource {
 public:
  virtual ~ByteSource() = default;
  // For messages: the path, or what the maker of a memory source called it.
  const std::string& name() const { return name_; }
  i64 size() const { return size_; }
  // Fills `to` with the bytes from `offset` on. Error if they are not all there.
  void read(i64 offset, std::span<std::byte> to) const;

 protected:
  ByteSource(std::string name, i64 size) : name_(std::move(name)), size_(size) {}
  virtual void get(i64 offset, std::span<std::byte> to) const = 0;

 private:
  std::string name_;
  i64 size_;
};
using Bytes = std::shared_ptr<const ByteSource>;

// A regular file, kept open. It is not mapped: a file that another process cuts short gives an Error, not a signal.
WAYMARK_API Bytes open_file(const std::filesystem::path& path);
WAYMARK_API Bytes memory_bytes(std::string bytes, std::string name = "memory");

// A name or text from a file, for messages: in quotes, at most 60 bytes of it, and what is not plain ASCII escaped.
WAYMARK_API std::string quoted_name(std::string_view text);

}  // namespace waymark
