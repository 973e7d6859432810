#include "core/ops/create.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/creation.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

#define WAYMARK_CREATION(K, NAME, DOC, SCHEMA, FORMULA, ...)                                                \
  extern constexpr OpInfo K{.name = NAME, .family = "create", .doc = DOC, .schema = SCHEMA,                 \
                            .formula = FORMULA, .rule = not_differentiable("it has no tensor to differentiate by"), \
                            .apply = [](OpCall& c) { __VA_ARGS__ }};

WAYMARK_CREATION(kEmpty, "empty", "uninitialised memory", "empty(int[] size, *, dtype dtype=None) -> Tensor", "y undefined",
                 c.result(empty(Shape(c.list("size")), creation_options(c)));)
WAYMARK_CREATION(kZeros, "zeros", "filled with 0", "zeros(int[] size, *, dtype dtype=None) -> Tensor", "y = 0",
                 c.result(zeros(Shape(c.list("size")), creation_options(c)));)
WAYMARK_CREATION(kOnes, "ones", "filled with 1", "ones(int[] size, *, dtype dtype=None) -> Tensor", "y = 1",
                 c.result(ones(Shape(c.list("size")), creation_options(c)));)
WAYMARK_CREATION(kFull, "full", "filled with a value, of its dtype",
                 "full(int[] size, Scalar fill_value, *, dtype dtype=None) -> Tensor", "y = v",
                 c.result(full(Shape(c.list("size")), c.scalar("fill_value"), creation_options(c)));)
WAYMARK_CREATION(kEye, "eye", "ones on the diagonal", "eye(int n, int m=None, *, dtype dtype=None) -> Tensor", "y = [i = j]",
                 const i64 n = c.integer("n"); c.result(eye(n, c.integer("m", n), creation_options(c)));)
WAYMARK_CREATION(kArange, "arange", "evenly spaced values in [start, end)",
                 "arange(Scalar start=0, Scalar end, Scalar step=1, *, dtype dtype=None) -> Tensor", "y = start + i·step",
                 const Scalar start = c.scalar("start", Scalar(0)), step = c.scalar("step", Scalar(1));
                 c.result(arange(start, c.scalar("end"), step, creation_options(c)));)
WAYMARK_CREATION(kLinspace, "linspace", "steps values from start to end, both included",
                 "linspace(Scalar start, Scalar end, int steps, *, dtype dtype=None) -> Tensor",
                 "y = start + i·(end − start)/(steps − 1)",
                 c.result(linspace(c.scalar("start"), c.scalar("end"), c.integer("steps"), creation_options(c)));)
WAYMARK_CREATION(kLogspace, "logspace", "powers of base with evenly spaced exponents",
                 "logspace(Scalar start, Scalar end, int steps, float base=10, *, dtype dtype=None) -> Tensor",
                 "y = base^linspace(start, end, steps)",
                 c.result(logspace(c.scalar("start"), c.scalar("end"), c.integer("steps"), c.number("base", 10.0), creation_options(c)));)
WAYMARK_CREATION(kTrilIndices, "tril_indices", "places of the lower triangle of a matrix, [2, n]",
                 "tril_indices(int row, int col, int offset=0) -> Tensor", "y = {(i, j): j ≤ i + offset}",
                 c.result(tril_indices(c.integer("row"), c.integer("col"), c.integer("offset", 0)));)
WAYMARK_CREATION(kTriuIndices, "triu_indices", "places of the upper triangle of a matrix, [2, n]",
                 "triu_indices(int row, int col, int offset=0) -> Tensor", "y = {(i, j): j ≥ i + offset}",
                 c.result(triu_indices(c.integer("row"), c.integer("col"), c.integer("offset", 0)));)
WAYMARK_CREATION(kScalarTensor, "scalar_tensor", "0-d tensor of one number",
                 "scalar_tensor(Scalar s, *, dtype dtype=None) -> Tensor", "y = s",
                 c.result(scalar_tensor(c.scalar("s"), creation_options(c)));)

namespace {

// Of a checked shape: the message names the op, the memory's own would not.
Tensor blank(std::string_view op, const Shape& shape, DType t) {
  checked_numel(op, shape, size_of(t));
  return make_empty(shape, t);
}

Tensor filled(const OpInfo& op, Tensor y, const Scalar& v, const TensorOptions& o) {
  fill_into(y, v);
  return created(op, std::move(y), o);
}

Tensor trash(Tensor y) {
#ifndef NDEBUG
  // Reads of memory that nobody wrote should be seen: signalling NaN, 0x5A..., true.
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T>) std::fill_n(y.data<T>(), y.numel(), std::numeric_limits<T>::signaling_NaN());
    else std::fill_n(y.data<T>(), y.numel(), static_cast<T>(0x5A5A5A5A5A5A5A5A));
  });
#endif
  return y;
}

DType dtype_of_value(const Scalar& v) { return v.category() == 2 ? default_dtype() : v.category() == 1 ? kI64 : kB8; }

// y[i] = f(i), as f64 or i64 by the dtype of y.
template <class F> void fill_by_index(const Tensor& y, F&& f) {
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* p = y.data<T>();
    parallel_for(y.numel(), kGrain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) p[i] = Scalar(f(i)).template to<T>();
    });
  });
}

}  // namespace

Tensor empty(const Shape& shape, const TensorOptions& o) {
  return created(kEmpty, trash(blank("empty", shape, o.dtype.value_or(default_dtype()))), o);
}
Tensor zeros(const Shape& shape, const TensorOptions& o) {
  return filled(kZeros, blank("zeros", shape, o.dtype.value_or(default_dtype())), 0, o);
}
Tensor ones(const Shape& shape, const TensorOptions& o) {
  return filled(kOnes, blank("ones", shape, o.dtype.value_or(default_dtype())), 1, o);
}
Tensor full(const Shape& shape, Scalar value, const TensorOptions& o) {
  return filled(kFull, blank("full", shape, o.dtype.value_or(dtype_of_value(value))), value, o);
}
Tensor empty_like(const Tensor& x, const TensorOptions& o) {
  return created(kEmpty, trash(make_empty_like(x, o.dtype.value_or(x.dtype()))), o);
}
Tensor zeros_like(const Tensor& x, const TensorOptions& o) {
  return filled(kZeros, make_empty_like(x, o.dtype.value_or(x.dtype())), 0, o);
}
Tensor ones_like(const Tensor& x, const TensorOptions& o) {
  return filled(kOnes, make_empty_like(x, o.dtype.value_or(x.dtype())), 1, o);
}
Tensor full_like(const Tensor& x, Scalar value, const TensorOptions& o) {
  return filled(kFull, make_empty_like(x, o.dtype.value_or(x.dtype())), value, o);
}

Tensor eye(i64 n, const TensorOptions& o) { return eye(n, n, o); }
Tensor eye(i64 n, i64 m, const TensorOptions& o) {
  Tensor y = blank("eye", {n, m}, o.dtype.value_or(default_dtype()));
  fill_into(y, 0);
  const i64 k = std::min(n, m);
  fill_into(alias(y, {k}, {m + 1}, 0), 1);
  return created(kEye, std::move(y), o);
}

Tensor arange(Scalar end, const TensorOptions& o) { return arange(0, end, 1, o); }
Tensor arange(Scalar start, Scalar end, const TensorOptions& o) { return arange(start, end, 1, o); }
Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& o) {
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(s))
    fail("arange", "start {}, end {} and step {} must be finite", a, b, s);
  if (s == 0) fail("arange", "the step must not be 0");
  if (s > 0 ? b < a : b > a) fail("arange", "the end {} lies before the start {} for a step of {}", b, a, s);
  const bool whole = start.is_integral() && end.is_integral() && step.is_integral();
  i64 count = 0;
  if (whole) {
    const u64 span = s > 0 ? static_cast<u64>(end.to_i64()) - static_cast<u64>(start.to_i64())
                           : static_cast<u64>(start.to_i64()) - static_cast<u64>(end.to_i64());
    const u64 by = s > 0 ? static_cast<u64>(step.to_i64()) : u64{0} - static_cast<u64>(step.to_i64());
    const u64 n = span / by + (span % by != 0);
    if (n > static_cast<u64>(std::numeric_limits<i64>::max())) fail("arange", "from {} to {} by {} has more than 2^63-1 elements", a, b, s);
    count = static_cast<i64>(n);
  } else {
    const double n = std::ceil((b - a) / s);
    if (!(n < 0x1p62)) fail("arange", "from {} to {} by {} has more than 2^62 elements", a, b, s);
    count = static_cast<i64>(n);
  }
  Tensor y = blank("arange", {count}, o.dtype.value_or(whole ? kI64 : default_dtype()));
  if (whole) {
    const u64 first = static_cast<u64>(start.to_i64()), by = static_cast<u64>(step.to_i64());
    fill_by_index(y, [&](i64 i) { return static_cast<i64>(first + static_cast<u64>(i) * by); });
  } else {
    fill_by_index(y, [&](i64 i) { return a + static_cast<double>(i) * s; });
  }
  return created(kArange, std::move(y), o);
}

namespace {

// Element i of linspace: from both ends, so that reversing the arguments reverses the values exactly.
double spaced(double a, double b, i64 steps, i64 i) {
  const double by = steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0;
  return i < steps - i || steps == 1 ? a + by * static_cast<double>(i) : b - by * static_cast<double>(steps - 1 - i);
}

Tensor blank_line(std::string_view op, i64 steps, const TensorOptions& o) {
  if (steps < 0) fail(op, "steps must not be negative, got {}", steps);
  return blank(op, {steps}, o.dtype.value_or(default_dtype()));
}

}  // namespace

Tensor linspace(Scalar start, Scalar end, i64 steps, const TensorOptions& o) {
  Tensor y = blank_line("linspace", steps, o);
  const double a = start.to_double(), b = end.to_double();
  fill_by_index(y, [&](i64 i) { return spaced(a, b, steps, i); });
  return created(kLinspace, std::move(y), o);
}
Tensor logspace(Scalar start, Scalar end, i64 steps, double base, const TensorOptions& o) {
  Tensor y = blank_line("logspace", steps, o);
  const double a = start.to_double(), b = end.to_double();
  fill_by_index(y, [&](i64 i) { return std::pow(base, spaced(a, b, steps, i)); });
  return created(kLogspace, std::move(y), o);
}

namespace {

// Columns [first, last) of each row.
template <class Range> Tensor triangle(const OpInfo& op, i64 row, i64 col, Range range) {
  if (row < 0 || col < 0) fail(op.name, "row {} and col {} must not be negative", row, col);
  i64 n = 0;
  for (i64 i = 0; i < row; ++i) {
    const auto [first, last] = range(i);
    n += std::max<i64>(0, last - first);
  }
  Tensor y = blank(op.name, {2, n}, kI64);
  i64* to = y.data<i64>();
  for (i64 i = 0, k = 0; i < row; ++i) {
    const auto [first, last] = range(i);
    for (i64 j = first; j < last; ++j, ++k) {
      to[k] = i;
      to[n + k] = j;
    }
  }
  return created(op, std::move(y), {});
}

// Beyond the matrix an offset changes nothing; so it is cut off there, before it is added to a row number.
i64 near(i64 offset, i64 row, i64 col) { return std::clamp(offset, -row - 1, col + 1); }

}  // namespace

Tensor tril_indices(i64 row, i64 col, i64 offset) {
  return triangle(kTrilIndices, row, col, [=, o = row < 0 || col < 0 ? 0 : near(offset, row, col)](i64 i) {
    return std::pair<i64, i64>(0, std::clamp<i64>(i + o + 1, 0, col));
  });
}
Tensor triu_indices(i64 row, i64 col, i64 offset) {
  return triangle(kTriuIndices, row, col, [=, o = row < 0 || col < 0 ? 0 : near(offset, row, col)](i64 i) {
    return std::pair<i64, i64>(std::clamp<i64>(i + o, 0, col), col);
  });
}

Tensor scalar_tensor(Scalar value, const TensorOptions& o) {
  return filled(kScalarTensor, make_empty({}, o.dtype.value_or(default_dtype())), value, o);
}

// ---- tensor(...) ----------------------------------------------------------------------------------------------------

void NestedList::add(const NestedList& item) {
  if (count_ == 0) shape_ = item.shape_;
  if (!ragged_) {
    const auto text = [](const NestedList& l) {
      return l.shape_.empty() ? std::string("a number") : fmt::format("a list of shape {}", l.shape_);
    };
    if (item.ragged_) {
      ragged_ = std::make_shared<Ragged>(*item.ragged_);
      ragged_->place.insert(ragged_->place.begin(), count_);
    } else if (!(item.shape_ == shape_)) {
      NestedList first(Scalar(0));
      first.shape_ = shape_;
      ragged_ = std::make_shared<Ragged>(Ragged{{count_}, text(item), text(first)});
    }
  }
  ++count_;
  values_.insert(values_.end(), item.values_.begin(), item.values_.end());
}

void NestedList::finish() { shape_.insert(0, count_); }

void NestedList::check() const {
  if (!ragged_) return;
  std::vector<i64> before = ragged_->place;
  before.back() = 0;
  fail("tensor", "the lists are ragged: [{}] is {}, but [{}] is {}", fmt::join(ragged_->place, ", "), ragged_->found,
       fmt::join(before, ", "), ragged_->wanted);
}

Tensor tensor(const NestedList& list, const TensorOptions& o) {
  list.check();
  int category = list.values().empty() ? 2 : 0;
  for (const Scalar& v : list.values()) category = std::max(category, v.category());
  const DType t = o.dtype.value_or(category == 2 ? default_dtype() : category == 1 ? kI64 : kB8);
  Tensor y = blank("tensor", list.shape(), t);
  visit_dtype(t, [&](auto zero) {
    using T = decltype(zero);
    T* to = y.data<T>();
    for (const Scalar& v : list.values()) *to++ = v.to<T>();
  });
  if (o.requires_grad) y.requires_grad_();
  return y;
}

Tensor from_blob(void* data, const Shape& shape, const Shape& strides, DType t, std::function<void(void*)> deleter) {
  const i64 size = size_of(t), n = checked_numel("from_blob", shape, size);
  if (strides.size() != shape.size()) fail("from_blob", "{} strides for the shape {}", strides.size(), shape);
  if (!data && n > 0) fail("from_blob", "the data of a tensor of shape {} is null", shape);
  if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(size) != 0)
    fail("from_blob", "the data is not aligned to the {} bytes of an element of {}", size, name_of(t));
  i64 low = 0, high = 0;
  if (n > 0)
    for (int i = 0; i < shape.size(); ++i) {
      i64 reach = 0;
      i64& end = strides[i] < 0 ? low : high;
      if (__builtin_mul_overflow(strides[i], shape[i] - 1, &reach) || __builtin_add_overflow(end, reach, &end) ||
          std::abs(end) > std::numeric_limits<i64>::max() / (4 * size))
        fail("from_blob", "the strides {} of {} reach too far", strides, shape);
    }
  struct Context {
    std::function<void(void*)> deleter;
    void* data;
  };
  const auto release = [](void* c) {
    const std::unique_ptr<Context> context(static_cast<Context*>(c));
    if (context->deleter) context->deleter(context->data);
  };
  const i64 bytes = n > 0 ? (high - low + 1) * size : 0;
  auto* first = static_cast<std::byte*>(data) + low * size;
  if (t == kB8)
    for (i64 i = 0; i < bytes; ++i)
      if (static_cast<u8>(first[i]) > 1) fail("from_blob", "byte {} is {}; b8 is 0 or 1", i, static_cast<u8>(first[i]));
  auto context = std::make_unique<Context>(Context{std::move(deleter), data});
  Intrusive<Block> block = Block::borrow(first, bytes, release, context.get());
  static_cast<void>(context.release());
  Intrusive<Storage> storage = Storage::part_of(std::move(block), 0, bytes);
  return Tensor(Intrusive<TensorImpl>(new TensorImpl(std::move(storage), t, shape, strides, -low)));
}

}  // namespace waymark
