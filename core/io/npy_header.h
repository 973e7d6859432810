// Internal. The header of an npy array, also inside an npz archive.
#pragma once

#include <functional>

#include "core/io/npy.h"

namespace waymark {

struct NpyHeader {
  FileDType dtype{};
  bool swapped = false;  // big-endian
  bool fortran_order = false;
  Shape shape;
  i64 header_bytes = 0;  // where the data begins
  i64 data_bytes = 0;
};

// next(to) gives the following bytes; `total` is how many there are in all, header and data. Everything is checked: a
// shape that is returned fits `total` exactly.
NpyHeader read_npy_header(const ArrayPlace& place, i64 total, const std::function<void(std::span<std::byte>)>& next);

// The array behind a header that was read.
Tensor read_npy_data(const ArrayPlace& place, const NpyHeader& header,
                     const std::function<void(std::span<std::byte>)>& next);

// Type in which a tensor is written. Error(place) if npy has no such type.
FileDType npy_dtype(const ArrayPlace& place, const Tensor& t, const NpyOptions& options);
// Magic, version, length and header text.
std::string write_npy_header(FileDType dtype, const Shape& shape);

}  // namespace waymark
