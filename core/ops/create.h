// Creation of tensors. Nothing here is differentiable.
//
//   zeros({2, 3})   zeros({2, 3}, kF64)   ones({2}, {.dtype = kI64})   tensor({{1, 2}, {3, 4}})   tensor(1.5)
#pragma once

#include <memory>
#include <optional>

#include "core/autograd/arg.h"

namespace waymark {

struct TensorOptions {
  std::optional<DType> dtype{};        // unset: what the function says, mostly the default float
  bool requires_grad = false;          // float dtypes only
  std::string_view stream = "user";    // of random numbers
};

[[nodiscard]] WAYMARK_API Tensor empty(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor zeros(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor ones(const Shape& shape, const TensorOptions& options = {});
// dtype of the value: b8, i64, or the default float.
[[nodiscard]] WAYMARK_API Tensor full(const Shape& shape, Scalar value, const TensorOptions& options = {});
[[nodiscard]] inline Tensor empty(const Shape& shape, DType t) { return empty(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] inline Tensor zeros(const Shape& shape, DType t) { return zeros(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] inline Tensor ones(const Shape& shape, DType t) { return ones(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] inline Tensor full(const Shape& shape, Scalar v, DType t) { return full(shape, v, TensorOptions{.dtype = t}); }

// Shape, dtype (unless options set one) and memory order of x.
[[nodiscard]] WAYMARK_API Tensor empty_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor zeros_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor ones_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor full_like(const Tensor& x, Scalar value, const TensorOptions& options = {});

// n×n or n×m with ones on the diagonal.
[[nodiscard]] WAYMARK_API Tensor eye(i64 n, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor eye(i64 n, i64 m, const TensorOptions& options = {});
// start + i·step for i < ⌈(end − start)/step⌉; i64 if all arguments are, else the default float. Errors: step 0,
// arguments that are not finite, an end on the wrong side of start.
[[nodiscard]] WAYMARK_API Tensor arange(Scalar end, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor arange(Scalar start, Scalar end, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& options = {});
// `steps` values from start to end, both included; 1 gives [start]. Symmetric: the second half counts down from end.
[[nodiscard]] WAYMARK_API Tensor linspace(Scalar start, Scalar end, i64 steps, const TensorOptions& options = {});
// base to the power of linspace.
[[nodiscard]] WAYMARK_API Tensor logspace(Scalar start, Scalar end, i64 steps, double base = 10, const TensorOptions& options = {});
// [2, n]: rows and columns of the lower (upper) triangle of a row×col matrix, in row-major order.
[[nodiscard]] WAYMARK_API Tensor tril_indices(i64 row, i64 col, i64 offset = 0);
[[nodiscard]] WAYMARK_API Tensor triu_indices(i64 row, i64 col, i64 offset = 0);
// 0-d, the default float unless options say otherwise.
[[nodiscard]] WAYMARK_API Tensor scalar_tensor(Scalar value, const TensorOptions& options = {});

// Numbers in nested braces, or in (nested) vectors. Knows its shape and how the numbers were written.
class WAYMARK_API NestedList {
 public:
  template <class T> requires std::is_arithmetic_v<T>
  NestedList(T v) : values_{Scalar(v)} {}                      // NOLINT: implicit on purpose
  NestedList(Scalar v) : values_{v} {}                         // NOLINT
  NestedList(std::initializer_list<NestedList> list) { for (const NestedList& item : list) add(item); finish(); }  // NOLINT
  template <class T> NestedList(const std::vector<T>& list) {  // NOLINT
    for (const T& item : list) add(NestedList(item));
    finish();
  }
  const Shape& shape() const { return shape_; }
  const std::vector<Scalar>& values() const { return values_; }
  // Error naming the place if lists of the same level differ in length.
  void check() const;

 private:
  struct Ragged {
    std::vector<i64> place;
    std::string found, wanted;
  };
  void add(const NestedList& item);
  void finish();
  Shape shape_;
  std::vector<Scalar> values_;
  i64 count_ = 0;
  std::shared_ptr<Ragged> ragged_;
};

// tensor({{1, 2}, {3, 4}}): b8, i64 or the default float, whichever the highest category among the numbers is.
[[nodiscard]] WAYMARK_API Tensor tensor(const NestedList& values, const TensorOptions& options = {});
[[nodiscard]] inline Tensor tensor(const NestedList& values, DType t) { return tensor(values, TensorOptions{.dtype = t}); }
// 1-d, from a vector of numbers; without a dtype: b8, i64 or the default float.
template <class T> requires std::is_arithmetic_v<T>
[[nodiscard]] Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  constexpr bool truth = std::is_same_v<T, bool>;
  const DType dtype = options.dtype.value_or(truth ? kB8 : std::is_integral_v<T> ? kI64 : default_dtype());
  Tensor out = make_empty({static_cast<i64>(values.size())}, dtype);
  visit_dtype(dtype, [&](auto zero) {
    using To = decltype(zero);
    To* to = out.data<To>();
    for (const T v : values) *to++ = Scalar(v).to<To>();
  });
  if (options.requires_grad) out.requires_grad_();
  return out;
}
template <class T> requires std::is_arithmetic_v<T>
[[nodiscard]] Tensor tensor(const std::vector<T>& values, DType t) {
  return tensor(values, TensorOptions{.dtype = t});
}

// A tensor on memory of the caller, who keeps it alive until `deleter` (may be empty) is called. Strides in elements;
// empty: row-major. Nothing beyond the elements is read, and only the element's own alignment is needed.
[[nodiscard]] WAYMARK_API Tensor from_blob(void* data, const Shape& shape, const Shape& strides, DType dtype,
                                           std::function<void(void*)> deleter = {});
template <class T> [[nodiscard]] Tensor from_blob(T* data, const Shape& shape, std::function<void(void*)> deleter = {}) {
  return from_blob(static_cast<void*>(data), shape, contiguous_strides(shape), dtype_of<T>, std::move(deleter));
}
template <class T>
[[nodiscard]] Tensor from_blob(T* data, const Shape& shape, const Shape& strides, std::function<void(void*)> deleter = {}) {
  return from_blob(static_cast<void*>(data), shape, strides, dtype_of<T>, std::move(deleter));
}

}  // namespace waymark
