#include "tests/graph/interpreter.h"

#include <algorithm>
#include <stdexcept>

namespace waymark::test::graph {

const OpTable& scalar_ops() {
  static const OpTable table = [] {
    OpTable t;
    add_elementwise(t);
    add_activations(t);
    add_reductions(t);
    add_scans(t);
    add_layouts(t);
    add_joins(t);
    add_indexing(t);
    add_products(t);
    add_normalisations(t);
    add_losses(t);
    add_windows(t);
    add_more(t);
    return t;
  }();
  return table;
}

namespace {

constexpr size_t kMostElements = 64;
constexpr i64 kMostAxes = 4;

void check_limits(const Grid& g) {
  if (g.numel() > kMostElements || g.rank() > kMostAxes) throw Unsuitable{};
}
// What an in-place op writes.
Grid written(const Instruction& in, const std::vector<Grid>& slots, const Grid& target) {
  const Call c(in, slots);
  if (in.op == "copy_") return copy(expanded(c.grid("other"), target.shape));
  if (in.op == "fill_") return copy(expanded(fresh_numbers(Kind::real, {}, {c.number("value")}), target.shape));
  return scalar_ops().find(in.op.substr(0, in.op.size() - 1))->eval(c)[0];
}

}  // namespace

Grid leaf_grid(const LeafData& leaf) {
  std::vector<Num> cells;
  for (size_t i = 0; i < leaf.values.size(); ++i)
    cells.push_back(leaf.direction.empty() ? number(leaf.values[i]) : tape().leaf(leaf.values[i], leaf.direction[i]));
  Grid g = fresh(leaf.kind, leaf.shape, std::move(cells));
  g.store->leaf = !leaf.direction.empty();
  g.store->row_major = true;
  return g;
}

std::vector<Grid> evaluate(const Instruction& in, std::vector<Grid>& slots) {
  if (in.op == "leaf") return {leaf_grid(in.leaf)};
  const Tape::Mark mark = tape().mark();
  nearest_kink = 1e9;
  std::vector<Grid> results;
  if (in.in_place()) {
    const Grid target = slots[static_cast<size_t>(std::get<Slot>(*in.find("input")).number)];
    if (target.store->leaf || target.store->frozen || target.one_of_many || target.overlaps()) throw Unsuitable{};
    const Grid values = written(in, slots, target);
    if (values.shape != target.shape) throw Unsuitable{};
    if (nearest_kink < 1e-3 || !tape().moderate_since(mark)) throw Unsuitable{};
    for (size_t i = 0; i < target.numel(); ++i) target.store->cells[target.at[i]] = values[i];
    return {};
  }
  const ScalarOp* op = scalar_ops().find(in.op);
  results = op->eval(Call(in, slots));
  for (Grid& g : results) {
    check_limits(g);
    if (op->maybe_views) g.store->frozen = true;
  }
  if (op->maybe_views)
    for (const int r : reads(in)) slots[static_cast<size_t>(r)].store->frozen = true;
  if (nearest_kink < 1e-3 || !tape().moderate_since(mark)) throw Unsuitable{};
  return results;
}

// Choosing ----------------------------------------------------------------------------------------------------------

Slot Maker::input(i64 low_rank, i64 high_rank) {
  if (target) {
    const Slot s = *target;
    target.reset();
    const i64 r = grid(s).rank();
    need(r >= low_rank && r <= high_rank);
    return s;
  }
  return real(low_rank, high_rank);
}
Slot Maker::real(i64 low_rank, i64 high_rank) {
  const auto n = static_cast<i64>(slots.size());
  for (int tries = 0; tries < 8 && n > 0; ++tries) {
    // Late ones more often: graphs grow deep.
    const i64 back = coin(0.7) ? between(0, std::min<i64>(n, 12) - 1) : between(0, n - 1);
    const Slot s{static_cast<int>(n - 1 - back)};
    const Grid& g = grid(s);
    if (g.kind == Kind::real && g.rank() >= low_rank && g.rank() <= high_rank) return s;
  }
  return leaf(shape(between(low_rank, std::min<i64>(high_rank, std::max<i64>(low_rank, 3)))));
}
Slot Maker::real_of(const Ints& wanted) {
  for (int k = 0; k < 6 && !slots.empty() && coin(0.8); ++k) {
    const Slot s{static_cast<int>(between(0, static_cast<i64>(slots.size()) - 1))};
    if (grid(s).kind == Kind::real && grid(s).shape == wanted) return s;
  }
  if (product(wanted) > static_cast<i64>(kMostElements)) throw Unsuitable{};
  return leaf(wanted);
}
Slot Maker::smaller(const Ints& wanted) {
  Ints s = wanted;
  for (i64& e : s)
    if (coin(0.25) && e > 0) e = 1;
  if (coin(0.3)) s.erase(s.begin(), s.begin() + between(0, static_cast<i64>(s.size())));
  return real_of(s);
}
Slot Maker::partner(const Ints& wanted) {
  for (int k = 0; k < 5 && !slots.empty() && coin(0.8); ++k) {
    const Slot s{static_cast<int>(between(0, static_cast<i64>(slots.size()) - 1))};
    if (grid(s).kind == Kind::real && broadcast_shape(grid(s).shape, wanted)) return s;
  }
  Ints s = wanted;
  for (i64& e : s)
    if (e == 1 && coin(0.3)) e = between(1, 3);
  return coin() ? smaller(s) : real_of(s);
}
Slot Maker::indices(const Ints& wanted, i64 bound) {
  std::vector<double> values;
  for (i64 i = 0; i < product(wanted); ++i) values.push_back(static_cast<double>(between(0, bound - 1)));
  return leaf(Kind::integer, wanted, std::move(values), false);
}
Slot Maker::distinct_indices(i64 count, i64 bound) {
  std::vector<double> all;
  for (i64 i = 0; i < bound; ++i) all.push_back(static_cast<double>(i));
  std::shuffle(all.begin(), all.end(), rng);
  all.resize(static_cast<size_t>(count));
  return leaf(Kind::integer, {count}, std::move(all), false);
}
Slot Maker::mask(const Ints& wanted) {
  for (int k = 0; k < 4 && !slots.empty() && coin(0.7); ++k) {
    const Slot s{static_cast<int>(between(0, static_cast<i64>(slots.size()) - 1))};
    if (grid(s).kind == Kind::boolean && broadcast_shape(grid(s).shape, wanted) == wanted) return s;
  }
  Ints s = wanted;
  for (i64& e : s)
    if (coin(0.2) && e > 0) e = 1;
  if (coin(0.2)) s.erase(s.begin(), s.begin() + between(0, static_cast<i64>(s.size())));
  std::vector<double> values;
  for (i64 i = 0; i < product(s); ++i) values.push_back(coin() ? 1 : 0);
  return leaf(Kind::boolean, s, std::move(values), false);
}
Slot Maker::leaf(Kind kind, const Ints& wanted, std::vector<double> values, bool grad) {
  Instruction in;
  in.op = "leaf";
  in.leaf = {kind, wanted, std::move(values), {}};
  if (grad)
    for (size_t i = 0; i < in.leaf.values.size(); ++i) in.leaf.direction.push_back(uniform(-1, 1));
  // A gradient of nothing is still a gradient: an empty leaf has no direction, and is a constant here.
  in.results = {program.slots++};
  slots.push_back(leaf_grid(in.leaf));
  program.code.push_back(std::move(in));
  return {program.slots - 1};
}
Slot Maker::leaf(const Ints& wanted, double grad) {
  std::vector<double> values;
  for (i64 i = 0; i < product(wanted); ++i) values.push_back(uniform(-2, 2));
  return leaf(Kind::real, wanted, std::move(values), coin(grad));
}
Ints Maker::shape(i64 rank) {
  Ints s;
  for (i64 k = 0; k < rank; ++k) s.push_back(coin(0.02) ? 0 : coin(0.15) ? 1 : between(1, rank > 2 ? 3 : 4));
  return s;
}
i64 Maker::dim(Slot s) {
  const i64 r = std::max<i64>(1, grid(s).rank());
  return between(-r, r - 1);
}
Ints Maker::dims(Slot s) {
  Ints out;
  if (coin(0.25)) return out;
  const i64 r = grid(s).rank();
  for (i64 k = 0; k < r; ++k)
    if (coin(0.45)) out.push_back(coin(0.3) ? k - r : k);
  return out;
}
i64 Maker::extent(Slot s, i64 d) const {
  const Grid& g = grid(s);
  return g.shape.empty() ? 1 : g.shape[static_cast<size_t>(wrap(d, g.rank()))];
}

}  // namespace waymark::test::graph
