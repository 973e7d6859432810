// The scalar interpreter: for each op what it computes, in numbers of the tape, and how random arguments for it are
// chosen. Written from the definitions of the ops, not from their code.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/graph/program.h"

namespace waymark::test::graph {

// Thrown while choosing: there is nothing suitable, or the values are outside of the domain. Another op is tried.
struct Unsuitable {};

// Arguments of an instruction.
class Call {
 public:
  Call(const Instruction& in, const std::vector<Grid>& slots) : in_(in), slots_(slots) {}
  bool has(std::string_view name) const { return in_.find(name) != nullptr; }
  bool is_grid(std::string_view name) const { return has(name) && std::holds_alternative<Slot>(*in_.find(name)); }
  const Grid& grid(std::string_view name) const { return at(std::get<Slot>(value(name))); }
  std::vector<Grid> grids(std::string_view name) const {
    std::vector<Grid> out;
    for (const Slot& s : std::get<std::vector<Slot>>(value(name))) out.push_back(at(s));
    return out;
  }
  i64 integer(std::string_view name, std::optional<i64> fallback = {}) const {
    return has(name) || !fallback ? std::get<i64>(value(name)) : *fallback;
  }
  double number(std::string_view name, std::optional<double> fallback = {}) const {
    if (!has(name) && fallback) return *fallback;
    if (const i64* i = std::get_if<i64>(&value(name))) return static_cast<double>(*i);
    return std::get<double>(value(name));
  }
  bool flag(std::string_view name, bool fallback) const { return has(name) ? std::get<bool>(value(name)) : fallback; }
  std::string word(std::string_view name, const std::string& fallback = "") const {
    return has(name) ? std::get<std::string>(value(name)) : fallback;
  }
  Ints list(std::string_view name, const Ints& fallback = {}) const {
    return has(name) ? std::get<Ints>(value(name)) : fallback;
  }
  const std::vector<IndexPart>& index(std::string_view name) const {
    return std::get<std::vector<IndexPart>>(value(name));
  }
  const Grid& at(Slot s) const { return slots_[static_cast<size_t>(s.number)]; }

 private:
  const Value& value(std::string_view name) const { return *in_.find(name); }
  const Instruction& in_;
  const std::vector<Grid>& slots_;
};

// Chooses arguments. What it needs and does not find it makes: a new leaf.
class Maker {
 public:
  explicit Maker(u64 seed) : rng(seed) {}
  std::mt19937_64 rng;
  Program program;
  std::vector<Grid> slots;
  std::optional<Slot> target;  // of an in-place op: what input() returns, once

  i64 between(i64 low, i64 high) {
    need(low <= high);
    return low + static_cast<i64>(rng() % static_cast<u64>(high - low + 1));
  }
  bool coin(double p = 0.5) { return uniform(0, 1) < p; }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(rng() >> 11) * 0x1p-53;
  }
  const Grid& grid(Slot s) const { return slots[static_cast<size_t>(s.number)]; }

  // The main operand: any real tensor whose rank lies in a range.
  Slot input(i64 low_rank = 0, i64 high_rank = 4);
  Slot real(i64 low_rank = 0, i64 high_rank = 4);
  Slot real_of(const Ints& shape);    // of this shape
  Slot partner(const Ints& shape);    // broadcasts with it
  Slot smaller(const Ints& shape);    // broadcasts to it
  Slot indices(const Ints& shape, i64 bound);
  Slot distinct_indices(i64 count, i64 bound);
  Slot mask(const Ints& shape);       // broadcasts to it
  Slot leaf(Kind kind, const Ints& shape, std::vector<double> values, bool grad);
  Slot leaf(const Ints& shape, double grad = 0.85);  // random reals, with that probability of requiring grad
  Ints shape(i64 rank);
  i64 dim(Slot s);                    // a dim of it, from the front or the back; rank 0: 0 or -1
  Ints dims(Slot s);                  // some dims, maybe none (all)
  i64 extent(Slot s, i64 dim) const;  // rank 0: 1
  // Gives up this op if not.
  void need(bool ok) const {
    if (!ok) throw Unsuitable{};
  }
};

struct ScalarOp {
  std::string name;
  int weight = 1;
  std::function<void(Maker&, Instruction&)> make;
  std::function<std::vector<Grid>(const Call&)> eval;
  bool views = false;        // the results share the store of the input
  bool maybe_views = false;  // whether they do depends on strides and values
};

class OpTable {
 public:
  void add(std::string name, std::function<void(Maker&, Instruction&)> make,
           std::function<std::vector<Grid>(const Call&)> eval, int weight = 1) {
    ops_.push_back({std::move(name), weight, std::move(make), std::move(eval)});
  }
  void add_view(std::string name, std::function<void(Maker&, Instruction&)> make,
                std::function<std::vector<Grid>(const Call&)> eval, bool maybe = false) {
    add(std::move(name), std::move(make), std::move(eval), 2);
    ops_.back().views = !maybe;
    ops_.back().maybe_views = maybe;
  }
  // The last op may return its input, or a view of it.
  void maybe_a_view() { ops_.back().maybe_views = true; }
  const std::vector<ScalarOp>& all() const { return ops_; }
  const ScalarOp* find(std::string_view name) const {
    // The last one: it knows the arguments of all that have this name.
    for (size_t i = ops_.size(); i-- > 0;)
      if (ops_[i].name == name) return &ops_[i];
    return nullptr;
  }

 private:
  std::vector<ScalarOp> ops_;
};
const OpTable& scalar_ops();

void add_elementwise(OpTable& t);
void add_activations(OpTable& t);
void add_reductions(OpTable& t);
void add_scans(OpTable& t);
void add_layouts(OpTable& t);
void add_joins(OpTable& t);
void add_indexing(OpTable& t);
void add_products(OpTable& t);
void add_normalisations(OpTable& t);
void add_losses(OpTable& t);
void add_windows(OpTable& t);
void add_more(OpTable& t);

// The graph does not go elsewhere.
template <class X> X inside(const X& x, double low, double high) {
  if (primal(x) < low || primal(x) > high) throw Unsuitable{};
  return x;
}

// y[i] = f(a[i], b[i], ...), after broadcasting.
template <class F, class... G> Grid elementwise(const F& f, const Grid& first, const G&... rest) {
  Ints shape = first.shape;
  for (const Grid* g : std::initializer_list<const Grid*>{&rest...}) {
    const auto joint = broadcast_shape(shape, g->shape);
    if (!joint) throw Unsuitable{};
    shape = *joint;
  }
  const std::array<Grid, 1 + sizeof...(G)> wide{expanded(first, shape), expanded(rest, shape)...};
  std::vector<Num> out;
  for (size_t i = 0; i < wide[0].numel(); ++i) {
    const auto at = [&](const auto&... g) { return call(f, g[i]...); };
    out.push_back(std::apply(at, wide));
  }
  return fresh(Kind::real, shape, std::move(out));
}

// Runs one instruction: the results, or for an in-place op the writes into its target. Throws Unsuitable where the
// values come too near to a kink, leave the moderate range or the shapes grow too large.
std::vector<Grid> evaluate(const Instruction& in, std::vector<Grid>& slots);
Grid leaf_grid(const LeafData& leaf);

}  // namespace waymark::test::graph
