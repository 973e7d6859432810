// The directory of a zip archive, read and checked before libzip sees the file: libzip believes the number of entries
// when it allocates, and does not look at all the numbers of disks.
#pragma once

#include <string>
#include <vector>

#include "core/io/files.h"

namespace waymark {

struct ZipMember {
  std::string name;
  u16 method = 0;  // 0 stored, 8 deflated
};

// The members in the order of the directory, which is also libzip's. Error(op) for what npz.h refuses, as far as the
// directory shows it.
std::vector<ZipMember> read_zip_directory(std::string_view op, const ByteSource& source);

}  // namespace waymark
