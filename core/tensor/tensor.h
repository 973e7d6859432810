// Tensor: an n-dimensional array with automatic differentiation. Names, argument order, broadcasting, dtype promotion
// and edge cases follow PyTorch; the README lists the differences.
//
// Note [handles]: a Tensor is one pointer to a TensorImpl. Copies are the same tensor: they share in-place results,
// history, requires_grad and .grad. View ops make a new impl on the same Storage. A default-constructed Tensor is
// undefined: `defined()` is false and every op refuses it.
//
// Note [layering]: this header only declares the methods. Those that are ops are defined in core/ops/methods.cpp,
// those that concern gradients in core/autograd and core/engine. Each method that records ends in
// `Loc loc = Loc::here()`, the line of the call.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor/count.h"
#include "core/tensor/dtype.h"
#include "core/tensor/error.h"
#include "core/tensor/index.h"
#include "core/tensor/intrusive.h"
#include "core/tensor/loc.h"
#include "core/tensor/shape.h"
#include "core/tensor/storage.h"

namespace waymark {

class Tensor;
class GradMap;
struct RunOptions;

// What autograd keeps for a tensor; defined in core/autograd/meta.h.
struct MetaBase {
  virtual ~MetaBase() = default;
  // Its part of a printed tensor: "grad_fn=<mul #12>", "requires_grad=True", or nothing.
  virtual std::string footer() const = 0;
};

// Note [impl]: shape, strides, offset and dtype never change after construction (there is no set_ or resize_), so
// kernels and graph nodes may keep what they read. Strides and offset count elements. Axes of extent 1 and empty
// tensors have no meaningful stride: contiguity, viewability and overlap ignore them.
class WAYMARK_API TensorImpl : public RefCounted {
 public:
  TensorImpl(Intrusive<Storage> storage, DType dtype, Shape shape, Shape strides, i64 offset);
  // All of a fresh storage, row-major; numel as checked_numel gave it.
  TensorImpl(Intrusive<Storage> storage, DType dtype, const Shape& shape, i64 numel);
  // The same view once more, without metadata.
  explicit TensorImpl(const TensorImpl& view);
  ~TensorImpl() { count(Count::tensors, -1); }
  static void* operator new(size_t bytes) { return small_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { small_free(p, bytes); }
  static void destroy(TensorImpl* impl) { delete impl; }
  static i64 live();

  Intrusive<Storage> storage;
  Shape shape, strides;
  i64 offset = 0, numel = 0;
  DType dtype;
  bool contiguous = false, dense = false, overlaps = false;
  std::unique_ptr<MetaBase> meta;  // null: no gradient, no view, no name
};

// dim arguments: one axis, several, or none (all axes).
class Dims {
 public:
  Dims() = default;                                                   // all
  Dims(int dim) : dims_{i64{dim}}, all_(false) {}                     // NOLINT: implicit on purpose
  Dims(i64 dim) : dims_{dim}, all_(false) {}                          // NOLINT
  Dims(std::initializer_list<i64> dims) : dims_(dims), all_(dims.size() == 0) {}
  Dims(const std::vector<i64>& dims) : dims_(dims), all_(dims.empty()) {}  // NOLINT
  bool all() const { return all_; }
  const std::vector<i64>& list() const { return dims_; }
  // Wrapped, sorted, checked for duplicates; all axes of a tensor with `axes` axes if all().
  std::vector<int> wrapped(std::string_view op, int axes) const;

 private:
  std::vector<i64> dims_;
  bool all_ = true;
};

class HookHandle;
struct ValuesIndices;  // what max(dim), sort, topk, ... return
struct MinMax;         // of aminmax
struct Unique;         // of unique
class IndexItem;       // one item of index({...})

// The index in x[3], with the line it stands in.
struct Position {
  Position(i64 i, Loc at = Loc::here()) : index(i), loc(at) {}  // NOLINT: implicit on purpose
  i64 index;
  Loc loc;
};

class WAYMARK_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Intrusive<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // A variable can be made another tensor. A result cannot: `x[0] = y` would change no element.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor& operator=(const Tensor&) && = delete;  // x[0] = y: write x[0].copy_(y) or x.index_put_({0}, y)

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  // Same tensor (not: equal values).
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  // --- layout -------------------------------------------------------------------------------------------------
  DType dtype() const { return get().dtype; }
  const Shape& shape() const { return get().shape; }
  const Shape& strides() const { return get().strides; }
  i64 offset() const { return get().offset; }
  int dim() const { return get().shape.size(); }
  i64 size(i64 d) const { return get().shape[wrap_dim("size", d, dim())]; }
  i64 stride(i64 d) const { return get().strides[wrap_dim("stride", d, dim())]; }
  i64 numel() const { return get().numel; }
  i64 nbytes() const { return get().numel * size_of(get().dtype); }
  bool is_contiguous() const { return get().contiguous; }
  bool is_floating_point() const { return is_float(get().dtype); }
  u32 version() const { return get().storage->version(); }

  // --- host access --------------------------------------------------------------------------------------------
  // First element in memory order of the layout; Error unless T is the dtype's C++ type.
  template <class T> T* data() const {
    check_dtype("data", dtype_of<T>);
    return reinterpret_cast<T*>(raw());
  }
  std::byte* raw() const { return get().storage->data() + get().offset * size_of(get().dtype); }
  // The value of a tensor with one element, converted to T.
  template <class T> T item() const;
  // All values in logical (row-major) order, converted to T.
  template <class T> std::vector<T> to_vector() const;
  // One element, all indices checked, negative ones from the end. The reference writes without raising the version.
  template <class T> T& at(std::initializer_list<i64> index) const;
  // Unchecked access after one check of dtype and rank: a[i][j] by strides.
  template <class T, int N> class Accessor;
  template <class T, int N> Accessor<T, N> accessor() const;
  // A tensor of one element in a condition; Error ("ambiguous: use any() or all()") for others.
  explicit operator bool() const;
  // As PyTorch prints it: 4 digits, at most 1,000 elements, footer with shape if empty, dtype if not default, grad_fn.
  std::string to_string() const;

  // --- autograd (core/autograd, core/engine) ------------------------------------------------------------------
  bool requires_grad() const;
  const Tensor& requires_grad_(bool on = true) const;  // leaves only; float dtypes only
  bool is_leaf() const;
  // Gradient of a leaf after backward (undefined before), or of a watched tensor. Error on another non-leaf.
  Tensor grad() const;
  // Same shape and dtype, or an undefined tensor (which clears it).
  void set_grad(const Tensor& g) const;
  // Keep the gradient of a non-leaf, also in .grad(); watch() gives it a name besides.
  const Tensor& retain_grad() const;
  const Tensor& watch(std::string name) const;
  // f sees the complete gradient of this tensor and may return a replacement (or an undefined tensor: no change).
  HookHandle register_hook(std::function<Tensor(const Tensor&)> f) const;
  HookHandle register_post_accumulate_grad_hook(std::function<void(const Tensor&)> f) const;
  // Name for messages, cards and pages: a parameter's path or what watch() said; empty without.
  std::string name() const;
  // Runs backward from this tensor and commits to .grad of the leaves; see core/engine/backward.h.
  GradMap backward() const;
  GradMap backward(const RunOptions& options) const;
  // Seed of a root that is not one element.
  GradMap backward(const Tensor& seed) const;

  // --- ops, by family, as free functions of the same name in core/ops -------------------------------------------
#include "core/tensor/methods.inc"

 private:
  TensorImpl& get() const {
    if (!impl_) [[unlikely]] undefined();
    return *impl_;
  }
  [[noreturn]] static void undefined();
  void check_dtype(std::string_view op, DType t) const;
  Intrusive<TensorImpl> impl_;
};

struct ValuesIndices {
  Tensor values, indices;  // indices: i64
};

// An int, Slice, None, Ellipsis, or a tensor (i64 positions, b8 mask).
class IndexItem {
 public:
  IndexItem(i64 index) : value_(index) {}              // NOLINT: implicit on purpose, like all below
  IndexItem(int index) : value_(i64{index}) {}         // NOLINT
  IndexItem(Slice slice) : value_(slice) {}            // NOLINT
  IndexItem(NoneIndex none) : value_(none) {}          // NOLINT
  IndexItem(EllipsisIndex dots) : value_(dots) {}      // NOLINT
  IndexItem(Tensor tensor) : value_(std::move(tensor)) {}  // NOLINT
  using Value = std::variant<i64, Slice, NoneIndex, EllipsisIndex, Tensor>;
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// New memory, uninitialised. Error if the extents are negative or overflow. (The op `empty` in core/ops adds options.)
WAYMARK_API Tensor make_empty(const Shape& shape, DType dtype);
// Like `like` in shape and dtype, dense, with its order of axes if that is dense, else contiguous.
WAYMARK_API Tensor make_empty_like(const Tensor& like, DType dtype);
// Another view of the same storage, without history. Error if an element lies outside the storage.
WAYMARK_API Tensor alias(const Tensor& t, const Shape& shape, const Shape& strides, i64 offset);
inline Tensor alias(const Tensor& t) { return Tensor(Intrusive<TensorImpl>(new TensorImpl(*t.impl()))); }
// A tensor on a part of a shared block, with a Storage of its own: parameters that lie flat in memory, column windows of
// one product. Changing one in place does not raise the version of another. offset: elements from the block's start.
// Strides >= 0. Error if it does not fit.
WAYMARK_API Tensor tensor_in_block(const Intrusive<Block>& block, DType dtype, const Shape& shape, const Shape& strides, i64 offset);
// Two tensors share memory: none, full (same view), or partial (also where it cannot be decided cheaply).
enum class Overlap : u8 { none, full, partial };
WAYMARK_API Overlap overlap_of(const Tensor& a, const Tensor& b);

// Strided element access without checks inside.
template <class T, int N> class Tensor::Accessor {
 public:
  Accessor(T* data, const i64* sizes, const i64* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](i64 i) const {
    T* p = data_ + i * strides_[0];
    if constexpr (N == 1) return static_cast<T&>(*p);
    else return Accessor<T, N - 1>(p, sizes_ + 1, strides_ + 1);
  }
  i64 size() const { return sizes_[0]; }

 private:
  T* data_;
  const i64* sizes_;
  const i64* strides_;
};
template <class T, int N> Tensor::Accessor<T, N> Tensor::accessor() const {
  check_dtype("accessor", dtype_of<T>);
  if (dim() != N) fail("accessor", "the tensor has {} axes ({}), the accessor {}", dim(), shape(), N);
  return {data<T>(), shape().begin(), strides().begin()};
}

extern template float Tensor::item<float>() const;
extern template double Tensor::item<double>() const;
extern template i64 Tensor::item<i64>() const;
extern template bool Tensor::item<bool>() const;
extern template std::vector<float> Tensor::to_vector<float>() const;
extern template std::vector<double> Tensor::to_vector<double>() const;
extern template std::vector<i64> Tensor::to_vector<i64>() const;

}  // namespace waymark

template <> struct WAYMARK_API fmt::formatter<waymark::Tensor> : waymark::PlainText {
  fmt::appender format(const waymark::Tensor& value, fmt::format_context& c) const;
};
