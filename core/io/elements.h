// The element types that files have, and arrays of them as tensors and back.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark {

// Read as: F64 and F32 as themselves; F16 and BF16 as f32, exactly; all integers as i64 (a U64 of 2^63 or more is an
// Error); BOOL as b8 (bytes other than 0 and 1 are an Error). The names are those of safetensors.
enum class FileDType : u8 { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

WAYMARK_API int size_of(FileDType type);
WAYMARK_API std::string_view name_of(FileDType type);
// Type of the tensor that holds it.
WAYMARK_API DType tensor_dtype(FileDType type);
// Type in which a tensor is written unless another is asked for.
WAYMARK_API FileDType file_dtype(DType type);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// What an array belongs to, for messages: "safetensors: model.safetensors: tensor "a": ...".
struct ArrayPlace {
  std::string_view op;
  std::string what;
};

// Error(place) if no reader would take this name of an array: over 4 KiB, or with NUL.
WAYMARK_API void check_array_name(const ArrayPlace& place, std::string_view name);

// Number of bytes of the array. Error(place) if there are more than 64 axes or the bytes, in the file or as a tensor,
// exceed 2^63-1. Allocates nothing, so a reader calls it before it believes a shape.
WAYMARK_API i64 checked_bytes(const ArrayPlace& place, FileDType type, const Shape& shape);

// A new tensor of row-major elements; next(to) is called for the bytes in their order. `swapped`: big-endian.
WAYMARK_API Tensor read_elements(const ArrayPlace& place, FileDType type, const Shape& shape, bool swapped,
                                 const std::function<void(std::span<std::byte>)>& next);

// The elements of `t` in row-major order, little-endian, by calls of put. `type`: f32 and f64 may become F16 or BF16
// (nearest, ties to even, too large becomes infinite), i64 may become I32 (Error for a value that does not fit).
WAYMARK_API void write_elements(const ArrayPlace& place, const Tensor& t, FileDType type,
                                const std::function<void(std::span<const std::byte>)>& put);

}  // namespace waymark
