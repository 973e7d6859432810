#include "core/io/zip_member.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "core/tensor/error.h"

namespace waymark {

namespace {

constexpr size_t kStep = size_t{1} << 30;  // zlib counts in 32 bits

Bytef* raw(std::byte* p) { return reinterpret_cast<Bytef*>(p); }

}  // namespace

struct ZipMemberReader::Inflater {
  Inflater() { ready = inflateInit2(&stream, -MAX_WBITS) == Z_OK; }  // no header of zlib around the data
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
  bool ready = false, ended = false;
  std::array<std::byte, 1 << 16> input{};
};

ZipMemberReader::ZipMemberReader(const ByteSource& source, const ZipMember& member, const ArrayPlace& place)
    : source_(source), member_(member), place_(place) {
  if (!member.deflated) return;
  inflater_ = std::make_unique<Inflater>();
  if (!inflater_->ready) fail(place.op, "{}: zlib cannot start", place.what);
}
ZipMemberReader::~ZipMemberReader() = default;

// At least one byte, unless the packed data is at its end.
size_t ZipMemberReader::inflate_some(std::span<std::byte> to) {
  Inflater& in = *inflater_;
  to = to.first(std::min(to.size(), kStep));
  in.stream.next_out = raw(to.data());
  in.stream.avail_out = static_cast<uInt>(to.size());
  while (in.stream.avail_out == to.size() && !in.ended) {
    if (in.stream.avail_in == 0 && taken_ < member_.packed) {
      const auto n = static_cast<size_t>(std::min(member_.packed - taken_, static_cast<i64>(in.input.size())));
      source_.read(member_.begin + taken_, std::span(in.input).first(n));
      taken_ += static_cast<i64>(n);
      in.stream.next_in = raw(in.input.data());
      in.stream.avail_in = static_cast<uInt>(n);
    }
    const int code = inflate(&in.stream, Z_NO_FLUSH);
    in.ended = code == Z_STREAM_END;
    if (code == Z_BUF_ERROR && taken_ == member_.packed) break;  // the stream goes on and the data does not
    if (code != Z_OK && code != Z_STREAM_END)
      fail(place_.op, "{}: its deflated data is broken before byte {} of the archive ({})", place_.what,
           member_.begin + taken_, in.stream.msg ? in.stream.msg : "zlib gives no reason");
  }
  return to.size() - in.stream.avail_out;
}

void ZipMemberReader::read(std::span<std::byte> to) {
  while (!to.empty()) {
    size_t n = 0;
    if (inflater_) {
      n = inflate_some(to);
    } else {
      n = std::min({to.size(), kStep, static_cast<size_t>(member_.packed - taken_)});
      source_.read(member_.begin + taken_, to.first(n));
      taken_ += static_cast<i64>(n);
    }
    if (n == 0) fail(place_.op, "{}: its data in the archive ends too early", place_.what);
    crc_ = static_cast<u32>(crc32(crc_, raw(to.data()), static_cast<uInt>(n)));
    to = to.subspan(n);
  }
}

void ZipMemberReader::finish() {
  std::byte more{};
  if (inflater_ && inflate_some({&more, 1}) != 0)
    fail(place_.op, "{}: its deflated data has more than the {} bytes of the directory", place_.what, member_.size);
  if (inflater_ && !inflater_->ended) fail(place_.op, "{}: its data in the archive ends too early", place_.what);
  const i64 left = member_.packed - taken_ + (inflater_ ? i64{inflater_->stream.avail_in} : 0);
  if (left != 0) fail(place_.op, "{}: {} bytes follow its data in the archive", place_.what, left);
  if (crc_ != member_.crc)
    fail(place_.op, "{}: its checksum is {:08x}, the directory says {:08x}: the data was changed", place_.what, crc_,
         member_.crc);
}

}  // namespace waymark
