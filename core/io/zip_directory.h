// Internal. The directory of a zip archive (PKWARE's APPNOTE, 4.3): where each member lies. Our own code and not
// libzip's, which takes memory for as many entries as any end record in the last 64 KiB claims.
#pragma once

#include <string>
#include <vector>

#include "core/io/files.h"

namespace waymark {

struct ZipMember {
  std::string name;
  bool deflated = false;  // else stored
  u32 crc = 0;            // of the member's own bytes
  i64 size = 0;           // of the member
  i64 packed = 0;         // of its data in the archive
  i64 begin = 0;          // place of its data
};

// The members in the order of the directory. Error(op) for what npz.h refuses, as far as the directory and the local
// headers show it. Every member's data lies in the file and overlaps no other; `size` is at most what deflate can make.
std::vector<ZipMember> read_zip_directory(std::string_view op, const ByteSource& source);

}  // namespace waymark
