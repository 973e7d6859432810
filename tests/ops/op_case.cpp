#include "tests/ops/op_case.h"

#include <deque>

namespace waymark::test {
namespace {

struct Table {
  std::vector<void (*)()> blocks;
  bool ran = false;
  std::vector<OpCase> cases;
  std::vector<BadInput> bad;
  std::deque<OpCase> pending;  // references handed out by op_case stay valid here
};
Table& table() {
  static Table t;
  return t;
}
void run_blocks() {
  Table& t = table();
  if (t.ran) return;
  t.ran = true;
  for (auto block : t.blocks) block();
  t.cases.assign(t.pending.begin(), t.pending.end());
}

}  // namespace

CaseArg tensor_arg(std::string name, Shape shape) {
  CaseArg a;
  a.name = std::move(name);
  a.sampled = true;
  a.shape = std::move(shape);
  return a;
}
CaseArg list_arg(std::string name, int n, Shape shape) {
  CaseArg a = tensor_arg(std::move(name), std::move(shape));
  a.list = n;
  return a;
}
CaseArg indices(std::string name, Shape shape, i64 bound) {
  CaseArg a = tensor_arg(std::move(name), std::move(shape));
  a.dtype = kI64;
  a.low = 0;
  a.high = static_cast<double>(bound);
  return a;
}
CaseArg mask(std::string name, Shape shape) {
  CaseArg a = tensor_arg(std::move(name), std::move(shape));
  a.dtype = kB8;
  return a;
}
CaseArg arg(std::string name, Argument value) {
  CaseArg a;
  a.name = std::move(name);
  a.fixed = std::move(value);
  return a;
}

OpCase& op_case(std::string op, std::vector<CaseArg> args) {
  OpCase& c = table().pending.emplace_back();
  c.op = std::move(op);
  c.args = std::move(args);
  return c;
}
void bad_input(std::string op, std::string message, std::vector<CaseArg> args) {
  table().bad.push_back({std::move(op), std::move(message), std::move(args)});
}
void add_block(void (*block)()) { table().blocks.push_back(block); }
const std::vector<OpCase>& all_cases() {
  run_blocks();
  return table().cases;
}
const std::vector<BadInput>& all_bad_inputs() {
  run_blocks();
  return table().bad;
}

}  // namespace waymark::test
