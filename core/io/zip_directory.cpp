#include "core/io/zip_directory.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/error.h"

namespace waymark {
namespace {

// Signatures, and bytes of the fixed part.
constexpr u32 kLocal = 0x04034b50, kEntry = 0x02014b50, kDescriptor = 0x08074b50;
constexpr u32 kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr i64 kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;

constexpr u16 kEncrypted = 1 | 1 << 6 | 1 << 13;  // flags: encryption, strong encryption, masked headers
constexpr u16 kDescribedBehind = 1 << 3;          // flag: checksum and sizes stand behind the data
constexpr u16 kStored = 0, kDeflated = 8;
constexpr u16 kExtra64 = 1;        // the extra field with the numbers that need 64 bits
constexpr u32 kIn64 = 0xffffffff;  // instead of such a number
constexpr i64 kMaxRatio = 1032;    // deflate cannot make more bytes out of one

template <class T> T number(std::string_view bytes, i64 at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return out;
}

// The sizes (and offset) of a header, from 32-bit fields or the extra field. False if the extra field lacks one.
bool widen(std::string_view extra, std::initializer_list<u64*> numbers) {
  std::string_view wide;
  while (extra.size() >= 4) {
    const auto id = number<u16>(extra, 0), length = number<u16>(extra, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) return false;
    if (id == kExtra64) wide = extra.substr(0, length);
    extra.remove_prefix(length);
  }
  for (u64* n : numbers) {
    if (*n != kIn64) continue;
    if (wide.size() < 8) return false;
    *n = number<u64>(wide, 0);
    wide.remove_prefix(8);
  }
  return true;
}

class Directory {
 public:
  Directory(std::string_view op, const ByteSource& source) : op_(op), source_(source) {}

  std::vector<ZipMember> read() {
    find();
    const std::string bytes = record(begin_, size_);
    std::vector<ZipMember> members;
    std::vector<std::pair<i64, i64>> ranges;  // of the file, from local header to the end of the data
    members.reserve(static_cast<size_t>(count_));
    i64 at = 0;
    for (i64 i = 0; i < count_; ++i) {
      if (size_ - at < kEntryBytes || number<u32>(bytes, at) != kEntry)
        refuse(begin_ + at, "entry {} of the directory was expected", i);
      const i64 name_bytes = number<u16>(bytes, at + 28), extra_bytes = number<u16>(bytes, at + 30),
                comment_bytes = number<u16>(bytes, at + 32);
      const i64 length = kEntryBytes + name_bytes + extra_bytes + comment_bytes;
      if (length > size_ - at) refuse(begin_ + at, "entry {} reaches beyond the directory", i);
      const auto entry = std::string_view(bytes).substr(static_cast<size_t>(at), static_cast<size_t>(length));
      i64 local = 0;
      members.push_back(read_entry(entry, begin_ + at, &local));
      ranges.emplace_back(local, members.back().begin + members.back().packed);
      at += length;
    }
    if (at != size_) refuse(begin_ + at, "{} bytes follow the last entry of the directory", size_ - at);
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second) refuse(ranges[i].first, "two members overlap");
    return members;
  }

 private:
  std::string record(i64 at, i64 bytes) const {
    std::string out(static_cast<size_t>(bytes), '\0');
    source_.read(at, std::as_writable_bytes(std::span(out)));
    return out;
  }
  template <class... Args> [[noreturn]] void refuse(i64 at, fmt::format_string<Args...> text, Args&&... args) const {
    fail(op_, "{} at byte {}: {}", source_.name(), at, fmt::format(text, std::forward<Args>(args)...));
  }

  // One entry of the directory and the local header that it points to.
  ZipMember read_entry(std::string_view entry, i64 at, i64* local) const {
    const auto flags = number<u16>(entry, 8), method = number<u16>(entry, 10);
    const size_t name_bytes = number<u16>(entry, 28), extra_bytes = number<u16>(entry, 30);
    ZipMember m;
    m.name = entry.substr(kEntryBytes, name_bytes);
    const std::string name = quoted_name(m.name);
    if (number<u16>(entry, 34) != 0) refuse(at + 34, "member {} is on another disk", name);
    if (flags & kEncrypted) refuse(at + 8, "member {} is encrypted", name);
    if (method != kStored && method != kDeflated)
      refuse(at + 10, "member {} is compressed by method {}; known are 0 (stored) and 8 (deflated)", name, method);
    u64 packed = number<u32>(entry, 20), size = number<u32>(entry, 24), offset = number<u32>(entry, 42);
    if (!widen(entry.substr(kEntryBytes + name_bytes, extra_bytes), {&size, &packed, &offset}))
      refuse(at, "the extra field of member {} is broken", name);
    m.deflated = method == kDeflated;
    m.crc = number<u32>(entry, 16);
    const auto limit = static_cast<u64>(begin_);  // members lie before the directory
    if (packed > limit || size > u64{INT64_MAX} ||
        (m.deflated ? static_cast<i64>(size) / kMaxRatio > static_cast<i64>(packed) : size != packed))
      refuse(at + 20, "member {}: {} bytes cannot come out of {} in an archive of {}", name, size, packed,
             source_.size());
    m.size = static_cast<i64>(size);
    m.packed = static_cast<i64>(packed);
    if (offset > limit || limit - offset < u64{kLocalBytes})
      refuse(at + 42, "member {} begins at byte {}, but the directory at {}", name, offset, begin_);
    *local = static_cast<i64>(offset);
    read_local(m, flags, method, *local);
    return m;
  }

  void read_local(ZipMember& m, u16 flags, u16 method, i64 at) const {
    const std::string fixed = record(at, kLocalBytes), name = quoted_name(m.name);
    if (number<u32>(fixed, 0) != kLocal) refuse(at, "the local header of member {} was expected", name);
    const i64 name_bytes = number<u16>(fixed, 26), extra_bytes = number<u16>(fixed, 28);
    if (name_bytes + extra_bytes + m.packed > begin_ - at - kLocalBytes)
      refuse(at, "member {} of {} bytes reaches into the directory at byte {}", name, m.packed, begin_);
    m.begin = at + kLocalBytes + name_bytes + extra_bytes;
    const std::string more = record(at + kLocalBytes, name_bytes + extra_bytes);
    const auto differ = [&](std::string_view what) {
      refuse(at, "the local header of member {} has another {} than the directory", name, what);
    };
    if (more.substr(0, static_cast<size_t>(name_bytes)) != m.name) differ("name");
    if ((number<u16>(fixed, 6) ^ flags) & (kEncrypted | kDescribedBehind)) differ("set of flags");
    if (number<u16>(fixed, 8) != method) differ("method");
    u64 packed = number<u32>(fixed, 18), size = number<u32>(fixed, 22);
    if (!widen(std::string_view(more).substr(static_cast<size_t>(name_bytes)), {&size, &packed}))
      refuse(at, "the extra field of member {} is broken", name);
    const u32 crc = number<u32>(fixed, 14);
    if (flags & kDescribedBehind && crc == 0 && packed == 0 && size == 0) return read_descriptor(m);
    if (crc != m.crc) differ("checksum");
    if (packed != static_cast<u64>(m.packed) || size != static_cast<u64>(m.size)) differ("size");
  }

  // Behind the data: an optional signature, the checksum, both sizes in 32 or in 64 bits.
  void read_descriptor(const ZipMember& m) const {
    const i64 at = m.begin + m.packed;
    const std::string bytes = record(at, std::min<i64>(24, begin_ - at));
    const auto fits = [&](i64 skip, bool wide) {
      const i64 length = skip + (wide ? 20 : 12);
      if (static_cast<i64>(bytes.size()) < length || number<u32>(bytes, skip) != m.crc) return false;
      const u64 packed = wide ? number<u64>(bytes, skip + 4) : number<u32>(bytes, skip + 4);
      const u64 size = wide ? number<u64>(bytes, skip + 12) : number<u32>(bytes, skip + 8);
      return packed == static_cast<u64>(m.packed) && size == static_cast<u64>(m.size);
    };
    const bool marked = bytes.size() >= 4 && number<u32>(bytes, 0) == kDescriptor;
    for (const bool wide : {false, true})
      if ((marked && fits(4, wide)) || fits(0, wide)) return;
    refuse(at, "the checksum and sizes behind member {} differ from the directory's", quoted_name(m.name));
  }

  // Place, size and number of entries of the directory, from the record at the very end of the file.
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
      if (limit < 0 || number<u64>(locator, 8) != static_cast<u64>(limit))
        refuse(locator_at + 8, "the zip64 end of the directory lies at byte {}, not right before its locator",
               number<u64>(locator, 8));
      const std::string end64 = record(limit, kEnd64Bytes);
      if (number<u32>(end64, 0) != kEnd64) refuse(limit, "the zip64 end of the directory was expected");
      if (number<u64>(end64, 4) != u64{kEnd64Bytes} - 12)
        refuse(limit + 4, "the zip64 end of the directory has {} bytes, not {}", number<u64>(end64, 4),
               kEnd64Bytes - 12);
      const bool same = (all == 0xffff || all == number<u64>(end64, 32)) &&
                        (size == kIn64 || size == number<u64>(end64, 40)) &&
                        (begin == kIn64 || begin == number<u64>(end64, 48));
      if (!same) refuse(end_at, "the end of the directory differs from its zip64 end");
      here = number<u64>(end64, 24), all = number<u64>(end64, 32);
      size = number<u64>(end64, 40), begin = number<u64>(end64, 48);
      if (number<u32>(end64, 16) != 0 || number<u32>(end64, 20) != 0 || here != all)
        refuse(limit + 16, "the archive is on several disks");
    }
    if (begin > static_cast<u64>(limit) || size != static_cast<u64>(limit) - begin)
      refuse(end_at, "a directory of {} bytes from byte {} does not end where its end record begins, at byte {}", size,
             begin, limit);
    if (all > size / u64{kEntryBytes}) refuse(end_at, "{} entries do not fit a directory of {} bytes", all, size);
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
