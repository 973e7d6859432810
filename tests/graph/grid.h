// Grid: a tensor of scalars for the interpreter. Views are lists of places in a shared store, so that in-place changes
// are seen by every view; nothing is known here of strides.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/types.h"
#include "tests/graph/tape.h"

namespace waymark::test::graph {

using Ints = std::vector<i64>;
enum class Kind : u8 { real, integer, boolean };

struct Store {
  std::vector<Num> cells;
  bool leaf = false;    // of a leaf that requires grad: may not be changed
  bool row_major = false;  // lies in memory as here
  bool frozen = false;  // whether another tensor shares it depends on strides: not changed either
};

class Grid {
 public:
  Kind kind = Kind::real;
  Ints shape;
  std::shared_ptr<Store> store;
  std::vector<size_t> at;   // place of each element, in row-major order
  bool one_of_many = false; // of split, unbind, ...: may not be changed in place

  size_t numel() const { return at.size(); }
  i64 rank() const { return static_cast<i64>(shape.size()); }
  Num operator[](size_t i) const { return store->cells[at[i]]; }
  double value(size_t i) const { return primal((*this)[i]); }
  i64 integer(size_t i) const { return static_cast<i64>(value(i)); }
  bool has_grad() const;
  bool overlaps() const;  // two elements in one place
};

i64 product(const Ints& shape);
Ints strides_of(const Ints& shape);
size_t flat(const Ints& shape, const Ints& index);
// Every index of the shape, in row-major order.
void each(const Ints& shape, const std::function<void(const Ints&)>& f);
std::vector<Ints> indices_of(const Ints& shape);
i64 wrap(i64 dim, i64 rank);  // negative ones count from the end; rank 0 counts as 1

Grid fresh(Kind kind, const Ints& shape, std::vector<Num> values);
Grid fresh_numbers(Kind kind, const Ints& shape, const std::vector<double>& values);
// Element `index` of the result is element from(index) of x.
using IndexMap = std::function<Ints(const Ints&)>;
Grid view(const Grid& x, const Ints& shape, const IndexMap& from);
Grid copy(const Grid& x);
Grid contents(const Grid& x, const Ints& shape);  // a copy of other shape, in row-major order
// From(index) is absent: `fill`.
Grid gathered(const Grid& x, const Ints& shape, const std::function<std::optional<Ints>(const Ints&)>& from, Num fill);

std::optional<Ints> broadcast_shape(const Ints& a, const Ints& b);
Grid expanded(const Grid& x, const Ints& shape);  // throws std::logic_error if it does not broadcast

// The lines of x along an axis: for each, the flat positions of its elements. Rank 0 is one line of one element.
std::vector<std::vector<size_t>> lines(const Ints& shape, i64 dim);
// Groups of flat positions that a reduction over `dims` joins, in order of the result.
std::vector<std::vector<size_t>> groups(const Ints& shape, const Ints& dims);
Ints reduced_shape(const Ints& shape, const Ints& dims, bool keepdim);

using Line = std::vector<Num>;
Line line_of(const Grid& x, const std::vector<size_t>& where);
Num sum(const Line& x);
Num mean(const Line& x);

}  // namespace waymark::test::graph
