#include "core/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/tensor/strided.h"

namespace waymark {
namespace {

std::atomic<DType> default_float{kF32};

// Smallest and largest element offset that a layout reaches; numel > 0.
std::pair<i64, i64> reach_of(const Shape& shape, const Shape& strides, i64 offset) {
  i64 lo = offset, hi = offset;
  for (int i = 0; i < shape.size(); ++i) (strides[i] < 0 ? lo : hi) += strides[i] * (shape[i] - 1);
  return {lo, hi};
}

}  // namespace

DType default_dtype() { return default_float.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  if (!is_float(t)) fail("set_default_dtype", "{} is no float type; f32 and f64 are allowed", name_of(t));
  default_float.store(t, std::memory_order_relaxed);
}

TensorImpl::TensorImpl(Intrusive<Storage> s, DType t, Shape sh, Shape st, i64 off)
    : storage(std::move(s)), shape(std::move(sh)), strides(std::move(st)), offset(off), dtype(t) {
  const Layout layout = layout_of(shape, strides);
  numel = layout.numel;
  contiguous = layout.contiguous;
  dense = layout.dense;
  overlaps = layout.overlaps;
  count(Count::tensors);
}
TensorImpl::TensorImpl(Intrusive<Storage> s, DType t, const Shape& sh, i64 n)
    : storage(std::move(s)), shape(sh), numel(n), dtype(t), contiguous(true), dense(true) {
  strides.resize(shape.size());
  i64 step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<i64>(shape[i], 1);
  }
  count(Count::tensors);
}
TensorImpl::TensorImpl(const TensorImpl& v)
    : RefCounted(),
      storage(v.storage),
      shape(v.shape),
      strides(v.strides),
      offset(v.offset),
      numel(v.numel),
      dtype(v.dtype),
      contiguous(v.contiguous),
      dense(v.dense),
      overlaps(v.overlaps) {
  count(Count::tensors);
}
i64 TensorImpl::live() { return counted(Count::tensors); }

std::vector<int> Dims::wrapped(std::string_view op, int axes) const {
  std::vector<int> out;
  if (all_) {
    out.resize(static_cast<size_t>(axes));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  for (i64 d : dims_) out.push_back(wrap_dim(op, d, axes));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    fail(op, "a dim appears twice in [{}]", fmt::join(dims_, ", "));
  if (axes == 0) out.clear();  // dims 0 and -1 of a 0-d tensor: nothing to reduce over
  return out;
}

void Tensor::undefined() { fail("tensor", "this tensor is undefined (default-constructed, or a gradient that is not there)"); }

void Tensor::check_dtype(std::string_view op, DType t) const {
  if (dtype() != t) fail(op, "the tensor is {}, not {}; convert it with to(...)", name_of(dtype()), name_of(t));
}

namespace {

template <class To, class From> To convert(From v) {
  if constexpr (std::is_same_v<To, i64> && std::is_floating_point_v<From>) return float_to_i64(static_cast<double>(v));
  else if constexpr (std::is_same_v<To, bool>) return v != From(0);
  else return static_cast<To>(v);
}

}  // namespace

template <class T> T Tensor::item() const {
  if (numel() != 1) fail("item", "the tensor has {} elements ({}); item() needs exactly one", numel(), shape());
  return visit_dtype(dtype(), [&](auto zero) { return convert<T>(*data<decltype(zero)>()); });
}
template float Tensor::item<float>() const;
template double Tensor::item<double>() const;
template i64 Tensor::item<i64>() const;
template bool Tensor::item<bool>() const;

template <class T> std::vector<T> Tensor::to_vector() const {
  std::vector<T> out;
  out.reserve(static_cast<size_t>(numel()));
  visit_dtype(dtype(), [&](auto zero) {
    const auto* p = data<decltype(zero)>();
    for_each_offset(*this, [&](i64 at) { out.push_back(convert<T>(p[at])); });
  });
  return out;
}
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<i64> Tensor::to_vector<i64>() const;
template std::vector<bool> Tensor::to_vector<bool>() const;

template <class T> T& Tensor::at(std::initializer_list<i64> index) const {
  if (static_cast<int>(index.size()) != dim())
    fail("at", "{} indices for a tensor with {} axes ({})", index.size(), dim(), shape());
  i64 offset = 0;
  int axis = 0;
  for (i64 i : index) {
    const i64 n = shape()[axis];
    if (i < -n || i >= n) fail("at", "index {} at axis {} is outside [{}, {})", i, axis, -n, n);
    offset += (i < 0 ? i + n : i) * strides()[axis++];
  }
  return data<T>()[offset];
}
template float& Tensor::at<float>(std::initializer_list<i64>) const;
template double& Tensor::at<double>(std::initializer_list<i64>) const;
template i64& Tensor::at<i64>(std::initializer_list<i64>) const;
template bool& Tensor::at<bool>(std::initializer_list<i64>) const;

Tensor::operator bool() const {
  if (numel() != 1) fail("bool", "a tensor with {} elements is ambiguous as a condition: use any() or all()", numel());
  return item<bool>();
}

std::string position_text(const Shape& shape, i64 flat) {
  Shape index(shape.size());
  for (int i = shape.size() - 1; i >= 0; --i) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return waymark::to_string(index);
}

namespace {

// Fresh memory of a tensor; if there is none, the Error says for what.
Intrusive<Storage> storage_for(i64 bytes, const Shape& shape, DType dtype) {
  try {
    return Storage::allocate(bytes);
  } catch (const OutOfMemory& e) {
    fail("empty", "cannot get {} for {} {} ({})", e.wanted, shape, name_of(dtype), e.why);
  }
}

}  // namespace

Tensor make_empty(const Shape& shape, DType dtype) {
  const i64 size = size_of(dtype), numel = checked_numel("empty", shape, size);
  return Tensor(Intrusive<TensorImpl>(new TensorImpl(storage_for(numel * size, shape, dtype), dtype, shape, numel)));
}

Tensor make_empty_like(const Tensor& like, DType dtype) {
  if (like.is_contiguous() || !like.impl()->dense) return make_empty(like.shape(), dtype);
  const i64 bytes = like.numel() * size_of(dtype);
  return Tensor(Intrusive<TensorImpl>(
      new TensorImpl(storage_for(bytes, like.shape(), dtype), dtype, like.shape(), like.strides(), 0)));
}

Tensor alias(const Tensor& t, const Shape& shape, const Shape& strides, i64 offset) {
  checked_numel("view", shape, size_of(t.dtype()));  // repeated elements count, too
  auto* impl = new TensorImpl(t.impl()->storage, t.dtype(), shape, strides, offset);
  Tensor out{Intrusive<TensorImpl>(impl)};
  if (impl->numel > 0) {
    const auto [lo, hi] = reach_of(shape, strides, offset);
    const i64 n = impl->storage->bytes() / size_of(impl->dtype);
    if (lo < 0 || hi >= n)
      fail("as_strided", "{} with strides {} and offset {} reaches outside the storage of {} elements", shape, strides,
           offset, n);
  }
  return out;
}

Tensor tensor_in_block(const Intrusive<Block>& block, DType dtype, const Shape& shape, const Shape& strides, i64 offset) {
  const i64 size = size_of(dtype), numel = checked_numel("tensor_in_block", shape, size);
  const auto [low, high] = reach_of(shape, strides, 0);
  const i64 used = numel ? high + 1 : 0;
  if (numel == 0) offset = 0;  // nothing fits anywhere
  if (offset < 0 || (numel && low < 0) || used > block->bytes() / size - offset)
    fail("tensor_in_block", "{} with strides {} and offset {} does not fit into a block of {} bytes", shape, strides, offset,
         block->bytes());
  return Tensor(Intrusive<TensorImpl>(
      new TensorImpl(Storage::part_of(block, offset * size, used * size), dtype, shape, strides, 0)));
}

Overlap overlap_of(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = *a.impl(), &y = *b.impl();
  if (x.numel == 0 || y.numel == 0) return Overlap::none;
  if (!x.storage->shares_memory(*y.storage)) return Overlap::none;
  const auto range = [](const Tensor& t) {
    const auto [lo, hi] = reach_of(t.shape(), t.strides(), 0);
    const i64 size = size_of(t.dtype());
    return std::pair{t.raw() + lo * size, t.raw() + (hi + 1) * size};
  };
  const auto [x0, x1] = range(a);
  const auto [y0, y1] = range(b);
  if (x1 <= y0 || y1 <= x0) return Overlap::none;
  if (x.storage == y.storage && x.offset == y.offset && x.shape == y.shape && x.dtype == y.dtype) {
    bool same = true;
    for (int i = 0; i < x.shape.size(); ++i) same &= x.shape[i] == 1 || x.strides[i] == y.strides[i];
    if (same) return Overlap::full;
  }
  // Regular strides: both step by multiples of g; elements can only meet where their offsets agree modulo g.
  if (x.dtype == y.dtype) {
    i64 g = 0;
    for (const TensorImpl* t : {&x, &y})
      for (int i = 0; i < t->shape.size(); ++i)
        if (t->shape[i] != 1) g = std::gcd(g, std::abs(t->strides[i]));
    const i64 distance = (a.raw() - b.raw()) / size_of(x.dtype);
    if (g == 0 ? distance != 0 : distance % g != 0) return Overlap::none;
    // Two two-level lattices with one common outer stride: compare the inner ranges, as for columns of one matrix.
    if (x.shape.size() == y.shape.size() && x.strides == y.strides && x.shape.size() > 0) {
      int outer = 0;
      for (int i = 1; i < x.shape.size(); ++i)
        if (std::abs(x.strides[i]) > std::abs(x.strides[outer])) outer = i;
      const i64 step = std::abs(x.strides[outer]);
      const auto inner = [&](const TensorImpl& t) {
        i64 lo = 0, hi = 0;
        for (int i = 0; i < t.shape.size(); ++i)
          if (i != outer) (t.strides[i] < 0 ? lo : hi) += t.strides[i] * (t.shape[i] - 1);
        return std::pair{lo, hi};
      };
      const auto [xl, xh] = inner(x);
      const auto [yl, yh] = inner(y);
      if (step > 0 && xh - xl < step && yh - yl < step) {
        const i64 shift = ((distance % step) + step) % step;  // x relative to y inside one period
        const bool meets = (xl + shift <= yh && yl <= xh + shift) || (xl + shift - step <= yh && yl <= xh + shift - step);
        if (!meets) return Overlap::none;
      }
    }
  }
  return Overlap::partial;
}

}  // namespace waymark
