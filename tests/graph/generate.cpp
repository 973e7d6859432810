#include "tests/graph/generate.h"

#include <algorithm>

#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

const std::vector<std::string>& in_place_ops() {
  static const std::vector<std::string> list = {
      "add_",  "sub_",  "mul_",     "div_",       "neg_",       "exp_",       "sqrt_",    "relu_",   "tanh_",  "sigmoid_",
      "pow_",  "clamp_", "lerp_",   "addcmul_",   "addcdiv_",   "masked_fill_", "copy_",  "fill_",   "scatter_",
      "scatter_add_",   "index_add_", "index_copy_", "index_fill_", "index_put_"};
  return list;
}

// Does the op read nothing of the target's memory, or exactly the target? (Other overlaps are refused by design.)
bool operands_are_apart(const Instruction& in, const std::vector<Grid>& slots) {
  const Grid& target = slots[static_cast<size_t>(std::get<Slot>(*in.find("input")).number)];
  for (const int r : reads(in)) {
    const Grid& g = slots[static_cast<size_t>(r)];
    if (g.store == target.store && (g.at != target.at || g.shape != target.shape)) return false;
  }
  return true;
}
// Forms that exist out of place only.
bool has_in_place_form(const Instruction& in) {
  const auto is_slot = [&](const char* name) { return in.find(name) && std::holds_alternative<Slot>(*in.find(name)); };
  if (in.op == "pow_") return !is_slot("exponent");
  if (in.op == "masked_fill_") return !is_slot("value");
  if (in.op == "lerp_") return !is_slot("weight");
  return true;
}

void choose_in_place(Maker& m, Instruction& in) {
  const auto& names = in_place_ops();
  in.op = names[static_cast<size_t>(m.between(0, static_cast<i64>(names.size()) - 1))];
  Slot target = m.real();
  for (int k = 0; k < 4; ++k, target = m.real()) {
    const Grid& g = m.grid(target);
    if (!g.store->leaf && !g.store->frozen && !g.one_of_many && !g.overlaps()) break;
  }
  const Grid& g = m.grid(target);
  m.need(!g.store->leaf && !g.store->frozen && !g.one_of_many && !g.overlaps());
  if (in.op == "copy_") {
    in.set("input", target);
    in.set("other", m.smaller(m.grid(target).shape));
  } else if (in.op == "fill_") {
    in.set("input", target);
    in.set("value", m.uniform(-1, 1));
  } else {
    m.target = target;
    const std::string base = in.op.substr(0, in.op.size() - 1);
    // Any of the ways in which arguments are chosen for the op of this name.
    std::vector<const ScalarOp*> ways;
    for (const ScalarOp& op : scalar_ops().all())
      if (op.name == base) ways.push_back(&op);
    ways[static_cast<size_t>(m.between(0, static_cast<i64>(ways.size()) - 1))]->make(m, in);
    m.target.reset();
  }
  m.need(has_in_place_form(in) && operands_are_apart(in, m.slots));
}

void choose(Maker& m, Instruction& in) {
  if (m.coin(0.08)) return choose_in_place(m, in);
  static const std::vector<const ScalarOp*> urn = [] {
    std::vector<const ScalarOp*> list;
    for (const ScalarOp& op : scalar_ops().all()) list.insert(list.end(), static_cast<size_t>(op.weight), &op);
    return list;
  }();
  const ScalarOp& op = *urn[static_cast<size_t>(m.between(0, static_cast<i64>(urn.size()) - 1))];
  in.op = op.name;
  op.make(m, in);
}

}  // namespace

Program random_program(u64 seed) {
  Tape own;
  current_tape = &own;
  Maker m(seed * 0x9E3779B97F4A7C15ull + 12345);
  m.program.seed = seed;
  const i64 wanted = m.between(5, 60);
  i64 ops = 0;
  m.leaf({m.between(1, 3), m.between(1, 4)}, 1);
  for (int attempts = 0; ops < wanted && attempts < 2000; ++attempts) {
    const size_t code = m.program.code.size(), slots = m.slots.size();
    const int numbers = m.program.slots;
    const Tape::Mark mark = own.mark();
    Instruction in;
    try {
      choose(m, in);
      std::vector<Grid> results = evaluate(in, m.slots);
      for (Grid& g : results) {
        in.results.push_back(m.program.slots++);
        m.slots.push_back(std::move(g));
      }
      m.program.code.push_back(std::move(in));
      ++ops;
    } catch (const Unsuitable&) {
      m.target.reset();
      m.program.code.resize(code);
      m.slots.resize(slots);
      m.program.slots = numbers;
      own.rewind(mark);
    }
  }
  // The last result and up to two others are differentiated.
  std::vector<int> candidates;
  for (int i = m.program.slots - 1; i >= 0; --i)
    if (m.slots[static_cast<size_t>(i)].has_grad()) candidates.push_back(i);
  const size_t roots = std::min<size_t>(candidates.size(), static_cast<size_t>(m.between(1, 3)));
  if (candidates.size() > 1) std::shuffle(candidates.begin() + 1, candidates.end(), m.rng);
  for (size_t k = 0; k < roots; ++k) {
    Root r{candidates[k], {}};
    for (size_t i = 0; i < m.slots[static_cast<size_t>(r.slot)].numel(); ++i) r.weights.push_back(m.uniform(-1, 1));
    m.program.roots.push_back(std::move(r));
  }
  current_tape = nullptr;
  return std::move(m.program);
}

// Shrinking ---------------------------------------------------------------------------------------------------------

namespace {

// What differs, without the numbers: another fault met on the way is not followed.
std::string kind_of(const std::string& message) { return message.substr(0, message.find_first_of(" :")); }

bool fails(const Program& p, const std::string& kind) {
  if (p.roots.empty()) return false;
  try {
    const Comparison c = compare(p);
    return c.outcome == Outcome::different && kind_of(c.message) == kind;
  } catch (const std::exception&) {
    return false;
  } catch (const Unsuitable&) {
    return false;
  }
}
// Does nobody read the results of instruction i?
bool is_dead(const Program& p, size_t i) {
  const auto& results = p.code[i].results;
  const auto among = [&](int slot) { return std::find(results.begin(), results.end(), slot) != results.end(); };
  for (const Instruction& in : p.code)
    for (const int r : reads(in))
      if (among(r)) return false;
  return std::none_of(p.roots.begin(), p.roots.end(), [&](const Root& r) { return among(r.slot); });
}
Program without_dead_code(Program p) {
  for (size_t i = p.code.size(); i-- > 0;)
    if (!p.code[i].results.empty() && is_dead(p, i)) p.code.erase(p.code.begin() + static_cast<std::ptrdiff_t>(i));
  return p;
}
// The results of instruction i as leaves of the same values.
Program with_leaves(const Program& p, size_t i) {
  Tape own;
  current_tape = &own;
  std::vector<Grid> slots(static_cast<size_t>(p.slots));
  std::vector<Instruction> leaves;
  std::mt19937_64 rng(i + 1);
  for (size_t k = 0; k <= i; ++k) {
    const auto results = evaluate(p.code[k], slots);
    for (size_t r = 0; r < results.size(); ++r) slots[static_cast<size_t>(p.code[k].results[r])] = results[r];
  }
  for (const int r : p.code[i].results) {
    const Grid& g = slots[static_cast<size_t>(r)];
    Instruction leaf;
    leaf.op = "leaf";
    leaf.leaf = {g.kind, g.shape, {}, {}};
    for (size_t e = 0; e < g.numel(); ++e) leaf.leaf.values.push_back(g.value(e));
    if (g.has_grad())
      for (size_t e = 0; e < g.numel(); ++e) leaf.leaf.direction.push_back(static_cast<double>(rng() % 1000) / 500 - 1);
    leaf.results = {r};
    leaves.push_back(std::move(leaf));
  }
  current_tape = nullptr;
  Program q = p;
  q.code.erase(q.code.begin() + static_cast<std::ptrdiff_t>(i));
  q.code.insert(q.code.begin() + static_cast<std::ptrdiff_t>(i), leaves.begin(), leaves.end());
  return q;
}

}  // namespace

Program shrink(Program p) {
  const std::string kind = kind_of(compare(p).message);
  const auto keep = [&](Program q) {
    const Program live = without_dead_code(q);
    if (fails(live, kind)) return p = live, true;
    if (!fails(q, kind)) return false;  // the fault is in an op whose result nobody reads
    p = std::move(q);
    return true;
  };
  for (bool again = true; again;) {
    again = false;
    for (size_t r = 0; p.roots.size() > 1 && r < p.roots.size(); ++r) {
      Program q = p;
      q.roots.erase(q.roots.begin() + static_cast<std::ptrdiff_t>(r));
      again |= keep(q);
    }
    for (size_t i = p.code.size(); i-- > 0;) {
      if (i >= p.code.size()) continue;
      if (is_dead(p, i)) {  // also an in-place op, which has no results
        Program q = p;
        q.code.erase(q.code.begin() + static_cast<std::ptrdiff_t>(i));
        again |= keep(q);
        continue;
      }
      if (p.code[i].op == "leaf") continue;
      try {
        again |= keep(with_leaves(p, i));
      } catch (const Unsuitable&) {
        current_tape = nullptr;
      }
    }
    for (Root& r : p.roots)
      for (double& w : r.weights) {
        if (w == 0) continue;
        const double before = std::exchange(w, 0);
        if (fails(p, kind)) again = true;
        else w = before;
      }
  }
  return p;
}

}  // namespace waymark::test::graph
