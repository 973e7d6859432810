#include "core/io/zip_directory.h"

#include <cstring>

#include "core/tensor/error.h"

namespace waymark {
namespace {

// Records of the format (APPNOTE 4.3): signature and bytes of the fixed part.
constexpr u32 kEntry = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr i64 kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr u16 kEncrypted = 1 | 1 << 6 | 1 << 13;  // flags: encryption, strong encryption, masked headers

class Directory {
 public:
  Directory(std::string_view op, const ByteSource& source) : op_(op), source_(source) {}

  std::vector<ZipMember> read() {
    find();
    std::string bytes(static_cast<size_t>(size_), '\0');
    source_.read(begin_, std::as_writable_bytes(std::span(bytes)));
    std::vector<ZipMember> members;
    members.reserve(static_cast<size_t>(count_));
    i64 at = 0;
    for (i64 i = 0; i < count_; ++i) {
      if (size_ - at < kEntryBytes || number<u32>(bytes, at) != kEntry)
        refuse(begin_ + at, "entry {} of the directory was expected", i);
      const auto flags = number<u16>(bytes, at + 8), method = number<u16>(bytes, at + 10);
      const i64 name_bytes = number<u16>(bytes, at + 28), extra_bytes = number<u16>(bytes, at + 30),
                comment_bytes = number<u16>(bytes, at + 32);
      const i64 length = kEntryBytes + name_bytes + extra_bytes + comment_bytes;
      if (length > size_ - at) refuse(begin_ + at, "entry {} reaches beyond the directory", i);
      std::string name = bytes.substr(static_cast<size_t>(at + kEntryBytes), static_cast<size_t>(name_bytes));
      if (number<u16>(bytes, at + 34) != 0) refuse(begin_ + at + 34, "member {} is on another disk", quoted_name(name));
      if (flags & kEncrypted) refuse(begin_ + at + 8, "member {} is encrypted", quoted_name(name));
      if (method != 0 && method != 8)
        refuse(begin_ + at + 10, "member {} is compressed by method {}; known are 0 (stored) and 8 (deflated)",
               quoted_name(name), method);
      members.push_back({std::move(name), method});
      at += length;
    }
    if (at != size_) refuse(begin_ + at, "{} bytes follow the last entry of the directory", size_ - at);
    return members;
  }

 private:
  template <class T> static T number(std::string_view bytes, i64 at) {
    T out;
    std::memcpy(&out, bytes.data() + at, sizeof(T));
    return out;
  }
  std::string record(i64 at, i64 bytes) const {
    std::string out(static_cast<size_t>(bytes), '\0');
    source_.read(at, std::as_writable_bytes(std::span(out)));
    return out;
  }
  template <class... Args> [[noreturn]] void refuse(i64 at, fmt::format_string<Args...> text, Args&&... args) const {
    fail(op_, "{} at byte {}: {}", source_.name(), at, fmt::format(text, std::forward<Args>(args)...));
  }

  // Place, size and number of entries, from the record at the very end of the file.
  void find() {
    const i64 end_at = source_.size() - kEndBytes;
    if (end_at < 0)
      fail(op_, "{}: {} bytes are too few for a zip archive, which has {} at least", source_.name(), source_.size(),
           kEndBytes);
    const std::string end = record(end_at, kEndBytes);
    if (number<u32>(end, 0) != kEnd || number<u16>(end, 20) != 0)
      refuse(end_at, "this is no zip archive: its last {} bytes are no end of a directory (or have a comment behind it)",
             kEndBytes);
    u64 here = number<u16>(end, 8), all = number<u16>(end, 10);
    u64 size = number<u32>(end, 12), begin = number<u32>(end, 16);
    if (number<u16>(end, 4) != 0 || number<u16>(end, 6) != 0 || here != all)
      refuse(end_at + 4, "the archive is on several disks");
    i64 limit = end_at;
    const i64 locator_at = end_at - kLocator64Bytes;
    const std::string locator = locator_at < 0 ? "" : record(locator_at, kLocator64Bytes);
    if (locator_at >= 0 && number<u32>(locator, 0) == kLocator64) {
      if (number<u32>(locator, 4) != 0 || number<u32>(locator, 16) != 1)
        refuse(locator_at + 4, "the archive is on several disks");
      limit = locator_at - kEnd64Bytes;
      if (number<u64>(locator, 8) != static_cast<u64>(limit))
        refuse(locator_at + 8, "the zip64 end of the directory lies at byte {}, not right before its locator",
               number<u64>(locator, 8));
      const std::string end64 = record(limit, kEnd64Bytes);
      if (number<u32>(end64, 0) != kEnd64) refuse(limit, "the zip64 end of the directory was expected");
      if (number<u64>(end64, 4) != u64{kEnd64Bytes} - 12)
        refuse(limit + 4, "the zip64 end of the directory has {} bytes, not {}", number<u64>(end64, 4),
               kEnd64Bytes - 12);
      here = number<u64>(end64, 24), all = number<u64>(end64, 32);
      size = number<u64>(end64, 40), begin = number<u64>(end64, 48);
      if (number<u32>(end64, 16) != 0 || number<u32>(end64, 20) != 0 || here != all)
        refuse(limit + 16, "the archive is on several disks");
    }
    if (begin > static_cast<u64>(limit) || size != static_cast<u64>(limit) - begin)
      refuse(end_at, "a directory of {} bytes from byte {} does not end where its end record begins, at byte {}", size,
             begin, limit);
    if (all > size / u64{kEntryBytes})
      refuse(end_at, "{} entries do not fit a directory of {} bytes", all, size);
    begin_ = static_cast<i64>(begin);
    size_ = static_cast<i64>(size);
    count_ = static_cast<i64>(all);
  }

  std::string_view op_;
  const ByteSource& source_;
  i64 begin_ = 0, size_ = 0, count_ = 0;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(std::string_view op, const ByteSource& source) {
  return Directory(op, source).read();
}

}  // namespace waymark
