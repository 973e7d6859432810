#include "core/io/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/io/files.h"
#include "core/io/half.h"
#include "core/tensor/strided.h"

namespace waymark {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read without swapping");

struct TypeRow {
  std::string_view name;
  int size;
  DType tensor;
};
constexpr std::array<TypeRow, 13> kTypes = {{{"F64", 8, kF64},
                                             {"F32", 4, kF32},
                                             {"F16", 2, kF32},
                                             {"BF16", 2, kF32},
                                             {"I64", 8, kI64},
                                             {"I32", 4, kI64},
                                             {"I16", 2, kI64},
                                             {"I8", 1, kI64},
                                             {"U64", 8, kI64},
                                             {"U32", 4, kI64},
                                             {"U16", 2, kI64},
                                             {"U8", 1, kI64},
                                             {"BOOL", 1, kB8}}};
const TypeRow& row_of(FileDType type) { return kTypes[static_cast<size_t>(type)]; }

constexpr size_t kChunk = 1 << 16;
constexpr size_t kNameLimit = 4096;

// In the file as in memory.
bool is_native(FileDType type) {
  return type == FileDType::F64 || type == FileDType::F32 || type == FileDType::I64 || type == FileDType::BOOL;
}

void swap_elements(std::span<std::byte> bytes, int size) {
  for (size_t i = 0; size > 1 && i < bytes.size(); i += static_cast<size_t>(size))
    std::reverse(bytes.data() + i, bytes.data() + i + size);
}

// One kind of element in a file, as a number of the tensor's type.
template <class Stored> struct Plain {
  using Bits = Stored;
  static i64 decode(Bits v) { return static_cast<i64>(v); }
};
struct Float16 {
  using Bits = u16;
  static float decode(Bits v) { return F16::to_f32(v); }
};
struct BFloat16 {
  using Bits = u16;
  static float decode(Bits v) { return BF16::to_f32(v); }
};

template <class F> void visit_converted(FileDType type, F&& f) {
  switch (type) {
    case FileDType::F16: return f(Float16{});
    case FileDType::BF16: return f(BFloat16{});
    case FileDType::I32: return f(Plain<i32>{});
    case FileDType::I16: return f(Plain<i16>{});
    case FileDType::I8: return f(Plain<i8>{});
    case FileDType::U64: return f(Plain<u64>{});
    case FileDType::U32: return f(Plain<u32>{});
    case FileDType::U16: return f(Plain<u16>{});
    default: return f(Plain<u8>{});
  }
}

void check_bools(const ArrayPlace& place, const Tensor& t) {
  const auto* bytes = reinterpret_cast<const u8*>(t.raw());
  for (i64 i = 0; i < t.numel(); ++i)
    if (bytes[i] > 1)
      fail(place.op, "{}: the byte of the boolean at {} is {}; it must be 0 or 1", place.what,
           position_text(t.shape(), i), bytes[i]);
}

template <class Kind>
void read_converted(const ArrayPlace& place, const Tensor& out, bool swapped,
                    const std::function<void(std::span<std::byte>)>& next) {
  using Bits = typename Kind::Bits;
  using To = decltype(Kind::decode(Bits{}));
  std::array<Bits, kChunk / sizeof(Bits)> chunk;
  To* to = out.data<To>();
  for (i64 done = 0; done < out.numel();) {
    const auto n = std::min(static_cast<i64>(chunk.size()), out.numel() - done);
    const auto bytes = std::as_writable_bytes(std::span(chunk.data(), static_cast<size_t>(n)));
    next(bytes);
    if (swapped) swap_elements(bytes, sizeof(Bits));
    for (i64 i = 0; i < n; ++i) {
      const Bits v = chunk[static_cast<size_t>(i)];
      if constexpr (std::is_same_v<Bits, u64>)
        if (v > u64{INT64_MAX})
          fail(place.op, "{}: the U64 at {} is {}; tensors hold integers up to 2^63-1", place.what,
               position_text(out.shape(), done + i), v);
      to[done + i] = Kind::decode(v);
    }
    done += n;
  }
}

// Gathers the elements of t, converted, into chunks.
template <class From, class To, class Convert>
void write_converted(const Tensor& t, const std::function<void(std::span<const std::byte>)>& put, Convert&& convert) {
  std::array<To, kChunk / sizeof(To)> chunk;
  size_t n = 0;
  const auto flush = [&] {
    put(std::as_bytes(std::span(chunk.data(), n)));
    n = 0;
  };
  const From* from = t.data<From>();
  for_each_offset(t, [&](i64 at) {
    chunk[n++] = convert(from[at]);
    if (n == chunk.size()) flush();
  });
  if (n > 0) flush();
}

}  // namespace

int size_of(FileDType type) { return row_of(type).size; }
std::string_view name_of(FileDType type) { return row_of(type).name; }
DType tensor_dtype(FileDType type) { return row_of(type).tensor; }
FileDType file_dtype(DType type) {
  switch (type) {
    case kF64: return FileDType::F64;
    case kF32: return FileDType::F32;
    case kI64: return FileDType::I64;
    default: return FileDType::BOOL;
  }
}

void check_array_name(const ArrayPlace& place, std::string_view name) {
  if (name.size() > kNameLimit)
    fail(place.op, "{}: the name {} has {} bytes; at most {} are allowed", place.what, quoted_name(name), name.size(),
         kNameLimit);
  if (name.find('\0') != std::string_view::npos)
    fail(place.op, "{}: the name {} has a NUL character", place.what, quoted_name(name));
}

i64 checked_bytes(const ArrayPlace& place, FileDType type, const Shape& shape) {
  const i64 widest = std::max<i64>(size_of(type), size_of(tensor_dtype(type)));
  i64 count = 1, bytes = 0;
  bool empty = false, overflow = false;
  for (const i64 extent : shape) {
    empty |= extent == 0;
    overflow |= __builtin_mul_overflow(count, extent ? extent : 1, &count);
  }
  if (overflow || __builtin_mul_overflow(count, widest, &bytes))
    fail(place.op, "{}: {} {} has more than 2^63-1 bytes", place.what, shape, name_of(type));
  return empty ? 0 : count * size_of(type);
}

Tensor read_elements(const ArrayPlace& place, FileDType type, const Shape& shape, bool swapped,
                     const std::function<void(std::span<std::byte>)>& next) {
  const Tensor out = make_empty(shape, tensor_dtype(type));
  if (out.numel() == 0) return out;
  if (is_native(type)) {
    const std::span<std::byte> bytes(out.raw(), static_cast<size_t>(out.nbytes()));
    next(bytes);
    if (swapped) swap_elements(bytes, size_of(type));
    if (type == FileDType::BOOL) check_bools(place, out);
  } else {
    visit_converted(type, [&](auto kind) { read_converted<decltype(kind)>(place, out, swapped, next); });
  }
  return out;
}

void write_elements(const ArrayPlace& place, const Tensor& t, FileDType type,
                    const std::function<void(std::span<const std::byte>)>& put) {
  const bool to_half = is_float(t.dtype()) && (type == FileDType::F16 || type == FileDType::BF16);
  const bool to_i32 = t.dtype() == kI64 && type == FileDType::I32;
  if (type != file_dtype(t.dtype()) && !to_half && !to_i32)
    fail(place.op, "{}: {} cannot be written as {}; float tensors can as F16 or BF16, i64 as I32", place.what,
         name_of(t.dtype()), name_of(type));
  if (t.numel() == 0) return;
  if (to_half) {
    visit_float(t.dtype(), [&](auto zero) {
      using From = decltype(zero);
      const auto round = type == FileDType::F16 ? F16::from_f64 : BF16::from_f64;
      write_converted<From, u16>(t, put, [&](From v) { return round(double{v}); });
    });
  } else if (to_i32) {
    i64 flat = 0;
    write_converted<i64, i32>(t, put, [&](i64 v) {
      if (v < INT32_MIN || v > INT32_MAX)
        fail(place.op, "{}: the value {} at {} does not fit I32", place.what, v, position_text(t.shape(), flat));
      ++flat;
      return static_cast<i32>(v);
    });
  } else if (t.is_contiguous()) {
    put({t.raw(), static_cast<size_t>(t.nbytes())});
  } else {
    visit_dtype(t.dtype(), [&](auto zero) {
      using T = decltype(zero);
      write_converted<T, T>(t, put, [](T v) { return v; });
    });
  }
}

}  // namespace waymark
