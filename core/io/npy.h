// npy: one array in one file, the format of NumPy (documented in its module numpy.lib.format).
//
//   6 bytes     "\x93NUMPY"
//   2 bytes     version: 1.0, 2.0 or 3.0
//   2 or 4      length of the header, little-endian (2 in version 1.0)
//   header      {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } as a Python literal, spaces, line break
//   the rest    the data, to the end of the file
//
// Read are numbers and booleans (f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1) of either byte order. Arrays of Python objects
// (pickle), of text, of records, of dates and of complex numbers are an Error that says why.
#pragma once

#include <filesystem>
#include <optional>

#include "core/io/elements.h"
#include "core/io/files.h"

namespace waymark {

// f2 becomes f32, exactly; integers become i64; Fortran order gives the transposed view of what is stored.
WAYMARK_API Tensor load_npy(const std::filesystem::path& path);
WAYMARK_API Tensor load_npy(const Bytes& source);

struct NpyOptions {
  std::optional<FileDType> floats{};    // write f32 and f64 as F16
  std::optional<FileDType> integers{};  // write i64 as I32; Error for a value that does not fit
};

// Version 1.0, row-major, little-endian, written atomically.
WAYMARK_API void save_npy(const std::filesystem::path& path, const Tensor& t, const NpyOptions& options = {});

}  // namespace waymark
