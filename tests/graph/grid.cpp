#include "tests/graph/grid.h"

#include <algorithm>
#include <stdexcept>

namespace waymark::test::graph {

bool Grid::has_grad() const {
  if (kind != Kind::real) return false;
  for (size_t i = 0; i < at.size(); ++i)
    if (tape().differentiable((*this)[i])) return true;
  return false;
}
bool Grid::overlaps() const {
  std::vector<size_t> sorted = at;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

i64 product(const Ints& shape) {
  i64 n = 1;
  for (const i64 e : shape) n *= e;
  return n;
}
Ints strides_of(const Ints& shape) {
  Ints s(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) s[i - 1] = s[i] * shape[i];
  return s;
}
size_t flat(const Ints& shape, const Ints& index) {
  i64 f = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (index[i] < 0 || index[i] >= shape[i]) throw std::logic_error("index outside of the grid");
    f = f * shape[i] + index[i];
  }
  return static_cast<size_t>(f);
}
void each(const Ints& shape, const std::function<void(const Ints&)>& f) {
  const i64 n = product(shape);
  Ints index(shape.size(), 0);
  for (i64 k = 0; k < n; ++k) {
    f(index);
    for (size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}
std::vector<Ints> indices_of(const Ints& shape) {
  std::vector<Ints> all;
  each(shape, [&](const Ints& i) { all.push_back(i); });
  return all;
}
i64 wrap(i64 dim, i64 rank) { return dim < 0 ? dim + std::max<i64>(rank, 1) : dim; }

Grid fresh(Kind kind, const Ints& shape, std::vector<Num> values) {
  if (static_cast<i64>(values.size()) != product(shape)) throw std::logic_error("wrong number of values");
  Grid g;
  g.kind = kind;
  g.shape = shape;
  g.at.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) g.at[i] = i;
  g.store = std::make_shared<Store>();
  g.store->cells = std::move(values);
  return g;
}
Grid fresh_numbers(Kind kind, const Ints& shape, const std::vector<double>& values) {
  std::vector<Num> cells;
  for (const double v : values) cells.push_back(number(v));
  return fresh(kind, shape, std::move(cells));
}
Grid view(const Grid& x, const Ints& shape, const IndexMap& from) {
  Grid g = x;
  g.shape = shape;
  g.at.clear();
  each(shape, [&](const Ints& i) { g.at.push_back(x.at[flat(x.shape, from(i))]); });
  return g;
}
Grid copy(const Grid& x) { return contents(x, x.shape); }
Grid contents(const Grid& x, const Ints& shape) {
  std::vector<Num> values;
  for (size_t i = 0; i < x.numel(); ++i) values.push_back(x[i]);
  return fresh(x.kind, shape, std::move(values));
}
Grid gathered(const Grid& x, const Ints& shape, const std::function<std::optional<Ints>(const Ints&)>& from, Num fill) {
  std::vector<Num> values;
  each(shape, [&](const Ints& i) {
    const auto source = from(i);
    values.push_back(source ? x[flat(x.shape, *source)] : fill);
  });
  return fresh(x.kind, shape, std::move(values));
}

std::optional<Ints> broadcast_shape(const Ints& a, const Ints& b) {
  Ints out(std::max(a.size(), b.size()), 1);
  for (size_t k = 0; k < out.size(); ++k) {
    const i64 x = k < a.size() ? a[a.size() - 1 - k] : 1, y = k < b.size() ? b[b.size() - 1 - k] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - k] = x == 1 ? y : x;
  }
  return out;
}
Grid expanded(const Grid& x, const Ints& shape) {
  if (broadcast_shape(x.shape, shape) != shape) throw std::logic_error("shapes do not broadcast");
  return view(x, shape, [&](const Ints& i) {
    Ints source(i.end() - static_cast<std::ptrdiff_t>(x.shape.size()), i.end());
    for (size_t k = 0; k < source.size(); ++k)
      if (x.shape[k] == 1) source[k] = 0;
    return source;
  });
}

std::vector<std::vector<size_t>> groups(const Ints& shape, const Ints& dims) {
  std::vector<bool> gone(shape.size(), dims.empty());
  for (const i64 d : dims)
    if (!shape.empty()) gone[static_cast<size_t>(wrap(d, static_cast<i64>(shape.size())))] = true;
  Ints kept;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!gone[i]) kept.push_back(shape[i]);
  std::vector<std::vector<size_t>> out(static_cast<size_t>(product(kept)));
  size_t position = 0;
  each(shape, [&](const Ints& i) {
    Ints left;
    for (size_t k = 0; k < i.size(); ++k)
      if (!gone[k]) left.push_back(i[k]);
    out[flat(kept, left)].push_back(position++);
  });
  return out;
}
std::vector<std::vector<size_t>> lines(const Ints& shape, i64 dim) { return groups(shape, {dim}); }
Ints reduced_shape(const Ints& shape, const Ints& dims, bool keepdim) {
  std::vector<bool> gone(shape.size(), dims.empty());
  for (const i64 d : dims)
    if (!shape.empty()) gone[static_cast<size_t>(wrap(d, static_cast<i64>(shape.size())))] = true;
  Ints out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!gone[i]) out.push_back(shape[i]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

Line line_of(const Grid& x, const std::vector<size_t>& where) {
  Line out;
  for (const size_t i : where) out.push_back(x[i]);
  return out;
}
Num sum(const Line& x) {
  if (x.empty()) return number(0);
  Num s = x[0];
  for (size_t i = 1; i < x.size(); ++i) s = s + x[i];
  return s;
}
Num mean(const Line& x) { return sum(x) * (1 / static_cast<double>(x.size())); }

}  // namespace waymark::test::graph
