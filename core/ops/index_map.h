// Internal: from index arguments to rows of memory. What index, gather, scatter and their relatives share.
#pragma once

#include <optional>

#include "core/autograd/record.h"

namespace waymark::ops {

// Indices must be i64; positions outside [0, n), or [-n, n) where negative ones count from the end, are an Error with
// value, position and extent. axis -1: of the flattened tensor.
void check_indices(std::string_view op, const Arg& index, i64 n, int axis, bool negative);
void check_same_dtype(std::string_view op, const Arg& a, const Arg& b);

// start:stop:step of an axis of extent n, ends clamped as Python does.
struct SliceRange {
  i64 start = 0, length = 0;
};
SliceRange slice_range(const Slice& s, i64 n);

// Rows of `inner` neighbouring elements, in row-major order of the result; starts in elements from a tensor's raw().
struct RowMap {
  std::vector<i64> start;
  i64 inner = 1;
  i64 rows() const { return static_cast<i64>(start.size()); }
};
// One axis of the result: c·stride, or offsets[c].
struct RowAxis {
  i64 extent = 0, stride = 0;
  const i64* offsets = nullptr;
};
RowMap make_rows(const std::vector<RowAxis>& axes, i64 base = 0);
// x with axis `dim` replaced by 1-d `index` (checked; negative ones count from the end).
RowMap axis_rows(const Tensor& x, int dim, const Tensor& index);
// Each element of `index` (checked, not negative) names the element with that coordinate on axis `dim` of a tensor with
// these strides.
RowMap element_rows(const Shape& strides, int dim, const Tensor& index);
// All starts multiples of inner, as accumulation wants them.
RowMap aligned(RowMap map);
// What gather and scatter check; return dim, wrapped. `src` may be larger than `index`: the rest is not read.
int check_element_index(std::string_view op, const Arg& x, i64 dim, const Arg& index);
int check_scatter(std::string_view op, const Arg& x, i64 dim, const Arg& index, const Arg& src);
// The part of a source that an index of this shape reads, and the adjoint of that.
Tensor read_part(const Tensor& src, const Shape& shape);
Tensor spread_part(Arg g, const Shape& shape);
// b8 [rows]: false where a later row has the same start. Undefined if there is no such row.
Tensor winners(const RowMap& map, i64 target_elements);

// Values without history; x may have any strides, y must be contiguous.
Tensor gather_value(const Tensor& x, const RowMap& map, const Shape& shape);
void assign_value(const Tensor& y, const RowMap& map, const Tensor& source);
void accumulate_value(const Tensor& y, const RowMap& map, const Tensor& source);
// A contiguous copy.
Tensor copy_value(const Tensor& x);
// Calls write(y) with a contiguous tensor that holds x, and leaves the result in x.
template <class F> void modify(const Tensor& x, F&& write);
void write_back(const Tensor& x, const Tensor& y);

template <class F> void modify(const Tensor& x, F&& write) {
  if (x.is_contiguous()) return write(x);
  const Tensor y = copy_value(x);
  write(y);
  write_back(x, y);
}

// Row-major positions of the elements that are not 0.
std::vector<i64> nonzero_positions(const Tensor& x);

// A list of index items applied to a shape.
struct IndexPlan {
  RowMap rows;  // places of x, in the order of the result
  Shape result;
  std::vector<Tensor> tensors;  // i64 tensors and masks among the items, in order
};
// Items that are 0-d i64 tensors become integers. True if a tensor is left (the result is a copy, not a view).
bool simplify(std::string_view op, std::vector<IndexItem>& items, Loc loc);
IndexPlan plan_index(std::string_view op, const Shape& shape, const Shape& strides, const std::vector<IndexItem>& items,
                     Loc loc);

// The items of an index op inside a rule.
class SavedItems {
 public:
  SavedItems(Saver& s, const std::vector<IndexItem>& items);
  std::vector<IndexItem> operator*() const;

 private:
  std::vector<std::variant<IndexItem, SavedTensor>> items_;
};

}  // namespace waymark::ops
