// A program: a list of ops on numbered slots, run by the engine and by the scalar interpreter, printed as C++.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tests/graph/grid.h"

namespace waymark::test::graph {

struct Slot {
  int number = -1;
};
struct Range {
  i64 start, stop, step;
};
struct NewAxis {};
struct Dots {};
using IndexPart = std::variant<i64, Range, NewAxis, Dots, Slot>;
using Value = std::variant<bool, i64, double, std::string, Ints, std::vector<Ints>, Slot, std::vector<Slot>,
                           std::vector<IndexPart>>;

// The values of a tensor that the program begins with.
struct LeafData {
  Kind kind = Kind::real;
  Ints shape;
  std::vector<double> values;
  std::vector<double> direction;  // along which second derivatives are taken; empty: requires no grad
};

struct Instruction {
  std::string op;  // name in the registry; "leaf": `leaf` says what; in-place forms end in '_' and write to "input"
  std::vector<std::pair<std::string, Value>> arguments;
  LeafData leaf;
  std::vector<int> results;  // slots; empty for in-place ops

  bool in_place() const { return op.back() == '_'; }
  const Value* find(std::string_view name) const {
    for (const auto& [key, value] : arguments)
      if (key == name) return &value;
    return nullptr;
  }
  void set(std::string name, Value value) { arguments.emplace_back(std::move(name), std::move(value)); }
};

struct Root {
  int slot;
  std::vector<double> weights;
};
struct Program {
  u64 seed = 0;
  std::vector<Instruction> code;
  std::vector<Root> roots;  // the scalar that is differentiated: Σ weights ⊙ slot
  int slots = 0;
};

// Slots that an instruction reads.
std::vector<int> reads(const Instruction& in);
// As C++ that a test could hold.
std::string to_cpp(const Program& p);

}  // namespace waymark::test::graph
