#include "core/ops/index_map.h"

#include <algorithm>
#include <numeric>

#include "core/kernels/index.h"
#include "core/kernels/truth.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"
#include "core/tensor/strided.h"

namespace waymark::ops {

void check_indices(std::string_view op, const Arg& index, i64 n, int axis, bool negative) {
  check_defined(op, index);
  if (index->dtype() != kI64)
    fail_at(index.loc(), op, "the index must be i64, got {}; convert it with .to(kI64)", name_of(index->dtype()));
  const Tensor t = contiguous_value(*index);
  const i64* p = t.data<i64>();
  const i64 low = negative ? -n : 0;
  const i64 bad = t.numel() == 0 ? -1
                                 : deterministic_reduce<i64>(
                                       t.numel(), kGrain,
                                       [&](i64 begin, i64 end) {
                                         bool wrong = false;
                                         for (i64 i = begin; i < end; ++i) wrong |= (p[i] < low) | (p[i] >= n);
                                         if (!wrong) return i64{-1};
                                         i64 i = begin;
                                         while (p[i] >= low && p[i] < n) ++i;
                                         return i;
                                       },
                                       [](i64 a, i64 b) { return a >= 0 ? a : b; });
  if (bad >= 0 && axis < 0)
    fail_at(index.loc(), op, "index {} at position {} is outside [{}, {}) of the flattened tensor", p[bad],
            position_text(t.shape(), bad), low, n);
  if (bad >= 0)
    fail_at(index.loc(), op, "index {} at position {} is outside [{}, {}) of axis {}", p[bad],
            position_text(t.shape(), bad), low, n, axis);
}

void check_same_dtype(std::string_view op, const Arg& a, const Arg& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (a->dtype() != b->dtype())
    fail_at(a.loc(), op, "dtypes differ: {} x {}; convert one with to(...)", name_of(a->dtype()), name_of(b->dtype()));
}

SliceRange slice_range(const Slice& s, i64 n) {
  const i64 low = s.step > 0 ? 0 : -1, high = s.step > 0 ? n : n - 1;
  const auto clamped = [&](i64 v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  const i64 a = s.start == kNoBound ? (s.step > 0 ? 0 : n - 1) : clamped(s.start);
  const i64 b = s.stop == kNoBound ? (s.step > 0 ? n : -1) : clamped(s.stop);
  // Distances are at most n, so nothing overflows, whatever the step.
  const i64 distance = s.step > 0 ? b - a : a - b, by = s.step > 0 ? s.step : -s.step;
  const i64 length = distance > 0 ? (distance - 1) / by + 1 : 0;
  return {length ? a : 0, length};
}

RowMap make_rows(const std::vector<RowAxis>& axes, i64 base) {
  RowMap map;
  size_t rest = axes.size();
  while (rest > 0 && !axes[rest - 1].offsets && (axes[rest - 1].stride == map.inner || axes[rest - 1].extent == 1))
    map.inner *= axes[--rest].extent;
  map.start = {base};
  std::vector<i64> next;
  for (size_t k = 0; k < rest; ++k) {
    const RowAxis& a = axes[k];
    next.resize(map.start.size() * static_cast<size_t>(a.extent));
    i64* to = next.data();
    for (const i64 at : map.start)
      for (i64 c = 0; c < a.extent; ++c) *to++ = at + (a.offsets ? a.offsets[c] : c * a.stride);
    map.start.swap(next);
  }
  if (map.inner == 0) map.start.clear();
  return map;
}

namespace {

std::vector<i64> offsets_of(const Tensor& index, i64 n, i64 stride) {
  const Tensor t = contiguous_value(index);
  const i64* p = t.data<i64>();
  std::vector<i64> out(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = (p[i] < 0 ? p[i] + n : p[i]) * stride;
  return out;
}

}  // namespace

RowMap axis_rows(const Tensor& x, int dim, const Tensor& index) {
  const i64 n = x.dim() ? x.shape()[dim] : 1, stride = x.dim() ? x.strides()[dim] : 1;
  const std::vector<i64> offsets = offsets_of(index, n, stride);
  std::vector<RowAxis> axes;
  for (int i = 0; i < std::max(x.dim(), 1); ++i) {
    if (i == dim)
      axes.push_back({static_cast<i64>(offsets.size()), 0, offsets.data()});
    else
      axes.push_back({x.shape()[i], x.strides()[i], nullptr});
  }
  return make_rows(axes);
}

RowMap element_rows(const Shape& strides, int dim, const Tensor& index) {
  std::vector<RowAxis> axes;
  for (int i = 0; i < index.dim(); ++i) axes.push_back({index.shape()[i], i == dim ? 0 : strides[i], nullptr});
  axes.push_back({1, -1, nullptr});  // keeps the last axis out of the rows' inner extent
  std::vector<i64> none{0};
  axes.back().offsets = none.data();
  RowMap map = make_rows(axes);
  const Tensor t = contiguous_value(index);
  const i64 stride = strides.empty() ? 1 : strides[dim];
  const i64* p = t.data<i64>();
  for (size_t i = 0; i < map.start.size(); ++i) map.start[i] += p[i] * stride;
  return map;
}

RowMap aligned(RowMap map) {
  i64 common = map.inner;
  for (const i64 s : map.start) {
    if (common == 1) break;
    if (s % common) common = std::gcd(common, s);
  }
  if (common == map.inner) return map;
  RowMap out;
  out.inner = common;
  out.start.reserve(map.start.size() * static_cast<size_t>(map.inner / common));
  for (const i64 s : map.start)
    for (i64 j = 0; j < map.inner; j += common) out.start.push_back(s + j);
  return out;
}

Tensor winners(const RowMap& map, i64 target_elements) {
  std::vector<i64> last(static_cast<size_t>(target_elements), -1);
  bool lost = false;
  for (i64 i = 0; i < map.rows(); ++i) {
    i64& mine = last[static_cast<size_t>(map.start[static_cast<size_t>(i)])];
    lost |= mine >= 0;
    mine = i;
  }
  if (!lost) return {};
  Tensor out = make_empty({map.rows()}, kB8);
  bool* p = out.data<bool>();
  for (i64 i = 0; i < map.rows(); ++i) p[i] = last[static_cast<size_t>(map.start[static_cast<size_t>(i)])] == i;
  return out;
}

Tensor gather_value(const Tensor& x, const RowMap& map, const Shape& shape) {
  Tensor y = make_empty(shape, x.dtype());
  if (y.numel() > 0)
    kernels::gather_rows(size_of(x.dtype()), x.raw(), map.start.data(), map.rows(), map.inner, y.raw());
  return y;
}

// A contiguous source that writing to y does not change.
static Tensor apart_from(const Tensor& y, const Tensor& source) {
  const Tensor x = contiguous_value(source);
  return overlap_of(x, y) == Overlap::none ? x : copy_value(x);
}

void assign_value(const Tensor& y, const RowMap& map, const Tensor& source) {
  if (source.numel() == 0 || map.rows() == 0) return;
  const Tensor x = apart_from(y, source);
  kernels::assign_rows(size_of(y.dtype()), y.raw(), y.numel(), map.start.data(), map.rows(), map.inner, x.raw());
}

void accumulate_value(const Tensor& y, const RowMap& map, const Tensor& source) {
  if (source.numel() == 0 || map.rows() == 0) return;
  const Tensor x = apart_from(y, source);
  const RowMap rows = aligned(map);
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::accumulate_rows<T>(y.data<T>(), y.numel(), rows.start.data(), rows.rows(), rows.inner, x.data<T>());
  });
}

Tensor copy_value(const Tensor& x) {
  Tensor y = make_empty(x.shape(), x.dtype());
  copy_into(y, x);
  return y;
}
void write_back(const Tensor& x, const Tensor& y) { copy_into(x, y); }

std::vector<i64> nonzero_positions(const Tensor& x) {
  const Tensor t = contiguous_value(x);
  return visit_dtype(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* p = t.data<T>();
    const i64 n = t.numel(), chunks = (n + kGrain - 1) / kGrain;
    std::vector<i64> first(static_cast<size_t>(chunks + 1));
    parallel_for(n, kGrain, [&](i64 begin, i64 end) {
      i64 count = 0;
      for (i64 i = begin; i < end; ++i) count += kernels::is_true(p[i]);
      first[static_cast<size_t>(begin / kGrain + 1)] = count;
    });
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<i64> out(static_cast<size_t>(first.back()));
    parallel_for(n, kGrain, [&](i64 begin, i64 end) {
      i64* to = out.data() + first[static_cast<size_t>(begin / kGrain)];
      for (i64 i = begin; i < end; ++i)
        if (kernels::is_true(p[i])) *to++ = i;
    });
    return out;
  });
}

// ---- index items ----------------------------------------------------------------------------------------------------

bool simplify(std::string_view op, std::vector<IndexItem>& items, Loc loc) {
  bool tensors = false;
  for (IndexItem& item : items) {
    const Tensor* t = std::get_if<Tensor>(&item.value());
    if (!t) continue;
    check_defined(op, Arg(*t, loc));
    if (t->dtype() != kI64 && t->dtype() != kB8)
      fail_at(loc, op, "index tensors are i64 positions or b8 masks, got {}", name_of(t->dtype()));
    if (t->dim() == 0 && t->dtype() == kI64)
      item = IndexItem(t->item<i64>());
    else
      tensors = true;
  }
  return tensors;
}

namespace {

// One axis of the tensor after the basic items: plain, or addressed by an index tensor.
struct PlanAxis {
  i64 extent = 0, stride = 0;
  Tensor index;    // undefined: plain
  int source = 0;  // axis of x, for messages
};

int axes_taken(const IndexItem& item) {
  if (std::holds_alternative<NoneIndex>(item.value()) || std::holds_alternative<EllipsisIndex>(item.value())) return 0;
  const Tensor* t = std::get_if<Tensor>(&item.value());
  return t && t->dtype() == kB8 ? t->dim() : 1;
}

// The coordinate on axis `axis` of each true element of a mask.
Tensor mask_column(const std::vector<i64>& positions, const Shape& shape, int axis) {
  i64 below = 1;
  for (int i = axis + 1; i < shape.size(); ++i) below *= shape[i];
  Tensor out = make_empty({static_cast<i64>(positions.size())}, kI64);
  i64* to = out.data<i64>();
  for (const i64 p : positions) *to++ = p / below % shape[axis];
  return out;
}

}  // namespace

IndexPlan plan_index(std::string_view op, const Shape& shape, const Shape& strides, const std::vector<IndexItem>& items,
                     Loc loc) {
  int taken = 0, dots = 0;
  for (const IndexItem& item : items) {
    taken += axes_taken(item);
    dots += std::holds_alternative<EllipsisIndex>(item.value());
  }
  if (dots > 1) fail_at(loc, op, "only one Ellipsis is allowed, got {}", dots);
  if (taken > shape.size()) fail_at(loc, op, "{} indices for a tensor with {} axes ({})", taken, shape.size(), shape);

  IndexPlan plan;
  std::vector<PlanAxis> axes;
  i64 base = 0;
  int at = 0;  // next axis of x
  const auto keep = [&](int count) {
    for (int i = 0; i < count; ++i, ++at) axes.push_back({shape[at], strides[at], {}, at});
  };
  for (const IndexItem& item : items) {
    if (const i64* index = std::get_if<i64>(&item.value())) {
      const i64 n = shape[at];
      if (*index < -n || *index >= n) fail_at(loc, op, "index {} is outside [{}, {}) of axis {}", *index, -n, n, at);
      base += (*index < 0 ? *index + n : *index) * strides[at];
      ++at;
    } else if (const Slice* s = std::get_if<Slice>(&item.value())) {
      if (s->step == 0 || s->step == INT64_MIN) fail_at(loc, op, "step {} is not allowed", s->step);
      const SliceRange r = slice_range(*s, shape[at]);
      base += r.start * strides[at];
      axes.push_back({r.length, r.length > 1 ? strides[at] * s->step : strides[at], {}, at});
      ++at;
    } else if (std::holds_alternative<NoneIndex>(item.value())) {
      axes.push_back({1, 0, {}, -1});
    } else if (std::holds_alternative<EllipsisIndex>(item.value())) {
      keep(shape.size() - taken);
    } else {
      const Tensor& t = std::get<Tensor>(item.value());
      plan.tensors.push_back(t);
      if (t.dtype() == kI64) {
        axes.push_back({shape[at], strides[at], t, at});
        ++at;
        continue;
      }
      for (int i = 0; i < t.dim(); ++i)
        if (t.shape()[i] != shape[at + i])
          fail_at(loc, op, "the mask {} does not fit axes {} to {} of {} (axis {}: {} vs {})", t.shape(), at,
                  at + t.dim() - 1, shape, at + i, t.shape()[i], shape[at + i]);
      const std::vector<i64> positions = nonzero_positions(t);
      if (t.dim() == 0) {  // a 0-d mask adds an axis of extent 1 or 0
        Tensor only = make_empty({static_cast<i64>(positions.size())}, kI64);
        fill_into(only, 0);
        axes.push_back({1, 0, only, -1});
      }
      for (int i = 0; i < t.dim(); ++i, ++at)
        axes.push_back({shape[at], strides[at], mask_column(positions, t.shape(), i), at});
    }
  }
  keep(shape.size() - at);

  Shape block;
  int first = -1, last = -1;
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    const PlanAxis& a = axes[static_cast<size_t>(i)];
    if (!a.index.defined()) continue;
    check_indices(op, Arg(a.index, loc), a.extent, a.source, true);
    block = broadcast_shapes(op, block, a.index.shape());
    if (first < 0) first = i;
    last = i;
  }
  std::vector<i64> offsets;
  bool together = true;
  if (first >= 0) {
    offsets.resize(static_cast<size_t>(checked_numel(op, block)));
    for (int i = first; i <= last; ++i) {
      const PlanAxis& a = axes[static_cast<size_t>(i)];
      together &= a.index.defined();
      if (!a.index.defined()) continue;
      const Tensor t = contiguous_value(expand_value(a.index, block));
      const i64* p = t.data<i64>();
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += (p[k] < 0 ? p[k] + a.extent : p[k]) * a.stride;
    }
  }
  // Index axes that are apart come first; neighbours stay in their place.
  std::vector<RowAxis> rows;
  const auto add_block = [&] {
    rows.push_back({static_cast<i64>(offsets.size()), 0, offsets.data()});
    for (const i64 n : block) plan.result.push_back(n);
  };
  if (first >= 0 && !together) add_block();
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    const PlanAxis& a = axes[static_cast<size_t>(i)];
    if (a.index.defined()) {
      if (together && i == first) add_block();
      continue;
    }
    rows.push_back({a.extent, a.stride, nullptr});
    plan.result.push_back(a.extent);
  }
  plan.rows = make_rows(rows, base);
  return plan;
}

SavedItems::SavedItems(Saver& s, const std::vector<IndexItem>& items) {
  for (const IndexItem& item : items) {
    if (const Tensor* t = std::get_if<Tensor>(&item.value()))
      items_.emplace_back(s.indices(*t));
    else
      items_.emplace_back(item);
  }
}
std::vector<IndexItem> SavedItems::operator*() const {
  std::vector<IndexItem> out;
  for (const auto& item : items_) {
    if (const SavedTensor* t = std::get_if<SavedTensor>(&item))
      out.emplace_back(**t);
    else
      out.push_back(std::get<IndexItem>(item));
  }
  return out;
}

}  // namespace waymark::ops
