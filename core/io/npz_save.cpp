// Writing npz, with libzip.
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "core/io/npy_header.h"
#include "core/io/npz.h"
#include "core/io/npz_names.h"

namespace waymark {
namespace {

// What libzip calls to get or to put bytes. An exception must not pass through C code: it is kept, and thrown again when
// libzip has returned.
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
      case ZIP_SOURCE_SEEK_WRITE: {
        const zip_int64_t to = zip_source_seek_compute_offset(
            static_cast<zip_uint64_t>(at_), static_cast<zip_uint64_t>(file_.size()), data, length, error());
        if (to < 0) return -1;
        at_ = to;
        return 0;
      }
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

Archive new_archive(OutputStream& stream, const std::string& origin) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = stream.source(&error);
  Archive archive(source ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error) : nullptr);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive) return archive;
  if (source) zip_source_free(source);
  stream.rethrow();
  fail("npz", "{}: an archive cannot be begun: {}", origin, why);
}

}  // namespace

void save_npz(const std::filesystem::path& path, const NamedTensors& tensors, const NpzOptions& options) {
  const std::string origin = path.string();
  std::vector<std::string> names;
  std::vector<std::unique_ptr<MemberStream>> streams;
  for (const auto& [name, tensor] : tensors) {
    const ArrayPlace place = npz_place(origin, name);
    if (name.empty()) fail("npz", "{}: an array needs a name", origin);
    names.push_back(name + std::string(kNpySuffix));
    check_array_name({"npz", origin}, names.back());
    const FileDType type = npy_dtype(place, tensor, options.arrays);
    streams.push_back(std::make_unique<MemberStream>(place, tensor, type));
  }
  if (const std::string* name = repeated_name(names))
    fail("npz", "{}: two arrays have the name {}", origin, quoted_name(npz_label(*name)));

  AtomicFile file(path);
  if (tensors.empty()) {  // libzip removes an archive without members
    file.write("PK\5\6" + std::string(18, '\0'));
    file.commit();
    return;
  }
  OutputStream output(file);
  Archive archive = new_archive(output, origin);
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
