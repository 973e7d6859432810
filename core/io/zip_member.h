// Internal. Reading the bytes of one member of a zip archive, in order, with its checksum.
#pragma once

#include <span>

#include "core/io/elements.h"
#include "core/io/zip_directory.h"

namespace waymark {

class ZipMemberReader {
 public:
  // All three must outlive the reader.
  ZipMemberReader(const ByteSource& source, const ZipMember& member, const ArrayPlace& place);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;

  // The following bytes. Error(place) if the member has fewer, or its data is broken.
  void read(std::span<std::byte> to);
  // After the last byte: Error(place) if more follow, in the member or in its packed data, or the checksum differs.
  void finish();

 private:
  struct Inflater;
  size_t inflate_some(std::span<std::byte> to);
  const ByteSource& source_;
  const ZipMember& member_;
  const ArrayPlace& place_;
  i64 taken_ = 0;  // bytes of packed data
  u32 crc_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null: stored
};

}  // namespace waymark
