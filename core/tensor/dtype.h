// DType: the element types of tensors, and the promotion rule between them (as in PyTorch).
#pragma once

#include <string_view>
#include <type_traits>

#include "core/tensor/types.h"

namespace waymark {

// f16, bf16 and the other integer types exist in files only (core/io).
enum class DType : u8 { F32, F64, I64, B8 };

inline constexpr DType kF32 = DType::F32, kF64 = DType::F64, kI64 = DType::I64, kB8 = DType::B8;

constexpr i64 size_of(DType t) { return t == kF32 ? 4 : t == kB8 ? 1 : 8; }
constexpr bool is_float(DType t) { return t == kF32 || t == kF64; }
constexpr std::string_view name_of(DType t) {
  return t == kF32 ? "f32" : t == kF64 ? "f64" : t == kI64 ? "i64" : "b8";
}
constexpr int category_of(DType t) { return t == kB8 ? 0 : t == kI64 ? 1 : 2; }  // b8 < i64 < float

// The C++ type behind a DType. b8 is stored as one byte that is 0 or 1, nothing else.
template <class T> struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = kF32; };
template <> struct DTypeOf<double> { static constexpr DType value = kF64; };
template <> struct DTypeOf<i64> { static constexpr DType value = kI64; };
template <> struct DTypeOf<bool> { static constexpr DType value = kB8; };
template <class T> inline constexpr DType dtype_of = DTypeOf<T>::value;

// The default float type of this process: f32 unless set. Only f32 and f64 are allowed.
WAYMARK_API DType default_dtype();
WAYMARK_API void set_default_dtype(DType t);

// Calls f with a value of the C++ type of `t`: visit(t, [&](auto zero) { using T = decltype(zero); ... }).
template <class F> decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
    case kF32: return f(float{});
    case kF64: return f(double{});
    case kI64: return f(i64{});
    default: return f(bool{});
  }
}
template <class F> decltype(auto) visit_float(DType t, F&& f) {
  return t == kF64 ? f(double{}) : f(float{});
}

// A C++ number that is an argument of an op. It never becomes a tensor.
class Scalar {
 public:
  Scalar(double v) : kind_(kF64), d_(v), i_(0) {}           // NOLINT: implicit on purpose
  Scalar(float v) : Scalar(double{v}) {}                    // NOLINT
  Scalar(i64 v) : kind_(kI64), d_(double(v)), i_(v) {}      // NOLINT
  Scalar(int v) : Scalar(i64{v}) {}                         // NOLINT
  Scalar(unsigned v) : Scalar(i64{v}) {}                    // NOLINT
  Scalar(u64 v) : Scalar(static_cast<i64>(v)) {}            // NOLINT
  Scalar(long long v) : Scalar(static_cast<i64>(v)) {}      // NOLINT
  Scalar(bool v) : kind_(kB8), d_(v ? 1 : 0), i_(v) {}      // NOLINT

  double to_double() const { return d_; }
  i64 to_i64() const;                                       // truncates; NaN and out of range give INT64_MIN
  bool to_bool() const { return kind_ == kF64 ? d_ != 0 : i_ != 0; }
  bool is_integral() const { return kind_ != kF64; }
  int category() const { return category_of(kind_); }
  template <class T> T to() const {
    if constexpr (std::is_same_v<T, bool>) return to_bool();
    else if constexpr (std::is_same_v<T, i64>) return to_i64();
    else return static_cast<T>(d_);
  }

 private:
  DType kind_;  // kF64 stands for "float category"
  double d_;
  i64 i_;
};

// float -> i64: truncate toward zero; NaN, infinities and values outside i64 give INT64_MIN.
inline i64 float_to_i64(double v) {
  return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? static_cast<i64>(v) : INT64_MIN;
}
inline i64 Scalar::to_i64() const { return kind_ == kF64 ? float_to_i64(d_) : i_; }

}  // namespace waymark
