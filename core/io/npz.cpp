#include "core/io/npz.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>

#include "core/io/npy_header.h"
#include "core/io/zip_directory.h"

namespace waymark {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr i64 kTrusted = 1 << 20;  // bytes that a small archive may promise without proof
constexpr i64 kMaxRatio = 1032;    // deflate cannot make more bytes out of one

// What libzip calls to read or write bytes. An exception must not pass through C code: it is kept, and thrown again
// when libzip has returned.
class Stream {
 public:
  virtual ~Stream() { zip_error_fini(&error_); }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }
  // Owned by the caller, who keeps it alive longer than the source.
  zip_source_t* source(zip_error_t* error) { return zip_source_function_create(&Stream::callback, this, error); }

 protected:
  // Answer to one command of libzip; -1 for those that are not known.
  virtual zip_int64_t answer(void* data, zip_uint64_t length, zip_source_cmd_t command) = 0;
  zip_error_t* error() { return &error_; }
  // Moves `at` as libzip asks, inside [0, size].
  zip_int64_t seek(i64& at, i64 size, void* data, zip_uint64_t length) {
    const zip_int64_t to = zip_source_seek_compute_offset(static_cast<zip_uint64_t>(at), static_cast<zip_uint64_t>(size),
                                                          data, length, &error_);
    if (to < 0) return -1;
    at = to;
    return 0;
  }

 private:
  static zip_int64_t callback(void* self, void* data, zip_uint64_t length, zip_source_cmd_t command) {
    auto& stream = *static_cast<Stream*>(self);
    if (command == ZIP_SOURCE_ERROR) return zip_error_to_data(&stream.error_, data, length);
    try {
      return stream.answer(data, length, command);
    } catch (...) {
      stream.exception_ = std::current_exception();
      zip_error_set(&stream.error_, ZIP_ER_INTERNAL, 0);
      return -1;
    }
  }
  zip_error_t error_ = [] {
    zip_error_t e;
    zip_error_init(&e);
    return e;
  }();
  std::exception_ptr exception_;
};

zip_int64_t stat_answer(void* data, i64 size) {
  auto* stat = static_cast<zip_stat_t*>(data);
  zip_stat_init(stat);
  stat->size = static_cast<zip_uint64_t>(size);
  stat->valid = ZIP_STAT_SIZE;
  return sizeof(*stat);
}

// The archive that is read.
class InputStream final : public Stream {
 public:
  explicit InputStream(Bytes bytes) : bytes_(std::move(bytes)) {}

 private:
  zip_int64_t answer(void* data, zip_uint64_t length, zip_source_cmd_t command) override {
    switch (command) {
      case ZIP_SOURCE_OPEN: at_ = 0; return 0;
      case ZIP_SOURCE_READ: {
        const auto n = std::min(static_cast<i64>(length), bytes_->size() - at_);
        bytes_->read(at_, {static_cast<std::byte*>(data), static_cast<size_t>(n)});
        at_ += n;
        return n;
      }
      case ZIP_SOURCE_SEEK: return seek(at_, bytes_->size(), data, length);
      case ZIP_SOURCE_TELL: return at_;
      case ZIP_SOURCE_STAT: return stat_answer(data, bytes_->size());
      case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_SEEKABLE;
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE: return 0;
      default: return -1;
    }
  }
  Bytes bytes_;
  i64 at_ = 0;
};

// The archive that is written.
class OutputStream final : public Stream {
 public:
  explicit OutputStream(AtomicFile& file) : file_(file) {}

 private:
  zip_int64_t answer(void* data, zip_uint64_t length, zip_source_cmd_t command) override {
    switch (command) {
      case ZIP_SOURCE_STAT:  // there is no archive yet
        zip_error_set(error(), ZIP_ER_READ, ENOENT);
        return -1;
      case ZIP_SOURCE_BEGIN_WRITE: at_ = 0; return 0;
      case ZIP_SOURCE_WRITE:
        file_.write_at(at_, {static_cast<const std::byte*>(data), static_cast<size_t>(length)});
        at_ += static_cast<i64>(length);
        return static_cast<zip_int64_t>(length);
      case ZIP_SOURCE_SEEK_WRITE: return seek(at_, file_.size(), data, length);
      case ZIP_SOURCE_TELL_WRITE: return at_;
      case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_WRITABLE;
      case ZIP_SOURCE_COMMIT_WRITE:
      case ZIP_SOURCE_ROLLBACK_WRITE:
      case ZIP_SOURCE_REMOVE:
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE: return 0;
      default: return -1;
    }
  }
  AtomicFile& file_;
  i64 at_ = 0;
};

// One member that is written: its npy header, then its data. What has to be converted is, while the member is open.
class MemberStream final : public Stream {
 public:
  MemberStream(ArrayPlace place, Tensor tensor, FileDType type)
      : place_(std::move(place)),
        tensor_(std::move(tensor)),
        type_(type),
        header_(write_npy_header(type_, tensor_.shape())),
        total_(static_cast<i64>(header_.size()) + checked_bytes(place_, type_, tensor_.shape())) {}

 private:
  zip_int64_t answer(void* data, zip_uint64_t length, zip_source_cmd_t command) override {
    switch (command) {
      case ZIP_SOURCE_OPEN: open(); return 0;
      case ZIP_SOURCE_READ: return read(static_cast<char*>(data), static_cast<size_t>(length));
      case ZIP_SOURCE_CLOSE: converted_ = {}; return 0;
      case ZIP_SOURCE_STAT: return stat_answer(data, total_);
      case ZIP_SOURCE_SUPPORTS: return ZIP_SOURCE_SUPPORTS_READABLE;
      case ZIP_SOURCE_FREE: return 0;
      default: return -1;
    }
  }
  void open() {
    at_ = 0;
    if (tensor_.is_contiguous() && type_ == file_dtype(tensor_.dtype())) {
      data_ = {reinterpret_cast<const char*>(tensor_.raw()), static_cast<size_t>(tensor_.nbytes())};
      return;
    }
    converted_.reserve(static_cast<size_t>(total_) - header_.size());
    write_elements(place_, tensor_, type_, [&](std::span<const std::byte> bytes) {
      converted_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    });
    data_ = converted_;
  }
  zip_int64_t read(char* to, size_t length) {
    const bool in_header = at_ < header_.size();
    const std::string_view from = in_header ? std::string_view(header_).substr(at_) : data_.substr(at_ - header_.size());
    const size_t n = std::min(length, from.size());
    if (n > 0) std::memcpy(to, from.data(), n);
    at_ += n;
    return static_cast<zip_int64_t>(n);
  }

  ArrayPlace place_;
  Tensor tensor_;
  FileDType type_;
  std::string header_;
  i64 total_;
  std::string converted_;
  std::string_view data_;
  size_t at_ = 0;
};

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Archive open_archive(Stream& stream, int flags, const std::string& origin) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = stream.source(&error);
  Archive archive(source ? zip_open_from_source(source, flags, &error) : nullptr);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive) return archive;
  if (source) zip_source_free(source);
  stream.rethrow();
  fail("npz", "{}: the archive contradicts itself or is broken: {}", origin, why);
}

// A member that is open for reading.
class Member {
 public:
  Member(zip_t* archive, size_t index, const Stream& stream, const ArrayPlace& place)
      : stream_(stream), place_(place), file_(zip_fopen_index(archive, index, 0)) {
    if (!file_) refuse(zip_strerror(archive));
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() { zip_fclose(file_); }

  void read(std::span<std::byte> to) {
    while (!to.empty()) {
      const zip_int64_t n = get(to);
      if (n == 0) refuse("the data ends too early");
      to = to.subspan(static_cast<size_t>(n));
    }
  }
  // Nothing may be left. libzip compares checksum and size when it meets the end.
  void finish() {
    std::byte more{};
    if (get({&more, 1}) != 0) refuse("the data is longer than the directory says");
  }

 private:
  zip_int64_t get(std::span<std::byte> to) {
    const zip_int64_t n = zip_fread(file_, to.data(), to.size());
    if (n < 0) refuse(zip_file_strerror(file_));
    return n;
  }
  [[noreturn]] void refuse(const char* why) const {
    stream_.rethrow();
    fail(place_.op, "{}: {}", place_.what, why);
  }
  const Stream& stream_;
  const ArrayPlace& place_;
  zip_file_t* file_;
};

std::string label_of(const std::string& member) {
  return member.ends_with(kSuffix) ? member.substr(0, member.size() - kSuffix.size()) : member;
}

ArrayPlace place_of(const std::string& origin, std::string_view name) {
  return {"npz", fmt::format("{}: array {}", origin, quoted_name(name))};
}

// The first name that appears twice, or null.
const std::string* repeated(const std::vector<std::string>& names) {
  std::vector<const std::string*> sorted;
  for (const std::string& name : names) sorted.push_back(&name);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return *a < *b; });
  const auto same = [](const auto* a, const auto* b) { return *a == *b; };
  const auto at = std::adjacent_find(sorted.begin(), sorted.end(), same);
  return at == sorted.end() ? nullptr : *at;
}

}  // namespace

// ---- Reading -------------------------------------------------------------------------------------------------------

struct Npz::Contents {
  explicit Contents(const Bytes& bytes) : source(bytes), stream(bytes) {}
  Bytes source;
  InputStream stream;
  Archive archive;  // after the stream that it reads
  std::vector<ZipMember> members;
  std::vector<std::string> names;
  std::mutex mutex;  // of the archive
};

Npz load_npz(Bytes source) {
  const std::string& origin = source->name();
  auto contents = std::make_shared<Npz::Contents>(source);
  contents->members = read_zip_directory("npz", *source);
  for (const ZipMember& member : contents->members) {
    check_array_name({"npz", origin}, member.name);
    contents->names.push_back(label_of(member.name));
  }
  if (const std::string* name = repeated(contents->names))
    fail("npz", "{}: two members are called {}", origin, quoted_name(*name));
  contents->archive = open_archive(contents->stream, ZIP_RDONLY | ZIP_CHECKCONS, origin);
  const zip_int64_t count = zip_get_num_entries(contents->archive.get(), 0);
  if (count != static_cast<zip_int64_t>(contents->names.size()))
    fail("npz", "{}: the archive has {} members, its directory {}", origin, count, contents->names.size());
  return Npz(std::move(contents));
}

Npz load_npz(const std::filesystem::path& path) { return load_npz(open_file(path)); }

const std::vector<std::string>& Npz::names() const { return contents_->names; }
const std::string& Npz::origin() const { return contents_->source->name(); }
bool Npz::contains(std::string_view name) const {
  return std::find(names().begin(), names().end(), name) != names().end();
}

// One array that is being read, with the archive locked.
class Npz::Reading {
 public:
  Reading(Contents& contents, std::string_view name)
      : contents_(contents), lock_(contents.mutex), place_(place_of(contents.source->name(), name)) {
    const auto it = std::find(contents.names.begin(), contents.names.end(), name);
    if (it == contents.names.end())
      fail("npz", "{}: there is no array {} among its {}", contents.source->name(), quoted_name(name),
           contents.names.size());
    index_ = static_cast<size_t>(it - contents.names.begin());
    zip_stat_t stat;
    if (zip_stat_index(contents.archive.get(), index_, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE) ||
        !(stat.valid & ZIP_STAT_COMP_SIZE) || stat.size > u64{INT64_MAX} || stat.comp_size > u64{INT64_MAX})
      fail(place_.op, "{}: its sizes are not known", place_.what);
    size_ = static_cast<i64>(stat.size);
    const auto packed = static_cast<i64>(stat.comp_size);
    if (packed > contents.source->size() || (deflated() ? size_ / kMaxRatio > packed : size_ != packed))
      fail(place_.op, "{}: {} bytes cannot come out of {} in the archive", place_.what, size_, packed);
  }

  // A deflated member may promise 1,000 times its size. Before so much is allocated it has to prove that it is there.
  void prove_size() {
    if (!deflated() || size_ <= 2 * contents_.source->size() + kTrusted) return;
    Member member = open();
    std::array<std::byte, 1 << 16> buffer;
    for (i64 left = size_; left > 0;) {
      const i64 n = std::min(left, static_cast<i64>(buffer.size()));
      member.read(std::span(buffer).first(static_cast<size_t>(n)));
      left -= n;
    }
    member.finish();
  }
  Member open() { return Member(contents_.archive.get(), index_, contents_.stream, place_); }
  NpyHeader header(Member& member) {
    return read_npy_header(place_, size_, [&](std::span<std::byte> to) { member.read(to); });
  }
  Tensor data(Member& member, const NpyHeader& header) {
    return read_npy_data(place_, header, [&](std::span<std::byte> to) { member.read(to); });
  }

 private:
  bool deflated() const { return contents_.members[index_].method != 0; }
  Contents& contents_;
  std::lock_guard<std::mutex> lock_;
  ArrayPlace place_;
  size_t index_ = 0;
  i64 size_ = 0;  // of header and data
};

Tensor Npz::get(std::string_view name) const {
  Reading array(*contents_, name);
  array.prove_size();
  Member member = array.open();
  Tensor out = array.data(member, array.header(member));
  member.finish();
  return out;
}

Npz::Info Npz::info(std::string_view name) const {
  Reading array(*contents_, name);
  Member member = array.open();
  const NpyHeader header = array.header(member);
  return {header.dtype, header.shape};
}

// ---- Writing -------------------------------------------------------------------------------------------------------

void save_npz(const std::filesystem::path& path, const NamedTensors& tensors, const NpzOptions& options) {
  const std::string origin = path.string();
  std::vector<std::string> names;
  std::vector<std::unique_ptr<MemberStream>> streams;
  for (const auto& [name, tensor] : tensors) {
    const ArrayPlace place = place_of(origin, name);
    if (name.empty()) fail("npz", "{}: an array needs a name", origin);
    names.push_back(name + std::string(kSuffix));
    check_array_name({"npz", origin}, names.back());
    const FileDType type = npy_dtype(place, tensor, options.arrays);
    streams.push_back(std::make_unique<MemberStream>(place, tensor, type));
  }
  if (const std::string* name = repeated(names))
    fail("npz", "{}: two arrays have the name {}", origin, quoted_name(label_of(*name)));

  AtomicFile file(path);
  if (tensors.empty()) {  // libzip removes an archive without members
    file.write("PK\5\6" + std::string(18, '\0'));
    file.commit();
    return;
  }
  OutputStream output(file);
  Archive archive = open_archive(output, ZIP_CREATE | ZIP_TRUNCATE, origin);
  const auto refuse = [&](std::string_view what) {
    fail("npz", "{}: {}: {}", origin, what, zip_strerror(archive.get()));
  };
  for (size_t i = 0; i < streams.size(); ++i) {
    zip_source_t* source = streams[i]->source(zip_get_error(archive.get()));
    const zip_int64_t index = source ? zip_file_add(archive.get(), names[i].c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
      if (source) zip_source_free(source);
      refuse(fmt::format("array {} cannot be added", quoted_name(tensors[i].first)));
    }
    const auto added = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kFirstDay = 1 << 5 | 1;  // 1 January 1980: the bytes do not depend on the clock
    if (zip_set_file_compression(archive.get(), added, options.compress ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.get(), added, 0, kFirstDay, 0) != 0)
      refuse("a member cannot be described");
  }
  if (zip_close(archive.get()) != 0) {
    output.rethrow();
    for (const auto& stream : streams) stream->rethrow();
    refuse("the archive cannot be written");
  }
  static_cast<void>(archive.release());  // zip_close has freed it
  file.commit();
}

}  // namespace waymark
