// The engine's side, and the comparison.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autograd/op_call.h"
#include "core/autograd/op_info.h"
#include "core/engine/backward.h"
#include "core/ops/inplace.h"
#include "core/ops/registry.h"
#include "tests/graph/generate.h"
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

using Tensors = std::vector<Tensor>;

Shape shape_of(const Ints& s) { return Shape(s); }
const Tensor& at(const Tensors& t, Slot s) { return t[static_cast<size_t>(s.number)]; }

std::vector<IndexArgument> index_arguments(const std::vector<IndexPart>& parts, const Tensors& slots) {
  std::vector<IndexArgument> out;
  for (const IndexPart& part : parts) {
    if (const i64* i = std::get_if<i64>(&part)) out.emplace_back(*i);
    else if (const Slot* s = std::get_if<Slot>(&part)) out.emplace_back(at(slots, *s));
    else if (const Range* r = std::get_if<Range>(&part)) out.emplace_back(Slice(r->start, r->stop, r->step));
    else if (std::holds_alternative<NewAxis>(part)) out.emplace_back(NoneIndex{});
    else out.emplace_back(EllipsisIndex{});
  }
  return out;
}
Argument argument(const Value& v, const Tensors& slots) {
  if (const Slot* s = std::get_if<Slot>(&v)) return at(slots, *s);
  if (const auto* list = std::get_if<std::vector<Slot>>(&v)) {
    Tensors out;
    for (const Slot& s : *list) out.push_back(at(slots, s));
    return out;
  }
  if (const auto* list = std::get_if<std::vector<IndexPart>>(&v)) return index_arguments(*list, slots);
  if (const auto* x = std::get_if<bool>(&v)) return *x;
  if (const auto* x = std::get_if<i64>(&v)) return *x;
  if (const auto* x = std::get_if<double>(&v)) return *x;
  if (const auto* x = std::get_if<std::string>(&v)) return *x;
  if (const auto* x = std::get_if<Ints>(&v)) return *x;
  return std::get<std::vector<Ints>>(v);
}

// In-place ops are methods.
void run_in_place(const Instruction& in, const Tensors& slots) {
  const Tensor& x = at(slots, std::get<Slot>(*in.find("input")));
  const auto tensor = [&](const char* name) { return at(slots, std::get<Slot>(*in.find(name))); };
  const auto is_tensor = [&](const char* name) { return std::holds_alternative<Slot>(*in.find(name)); };
  const auto scalar = [&](const char* name, double fallback) -> Scalar {
    const Value* v = in.find(name);
    if (!v) return fallback;
    if (const i64* i = std::get_if<i64>(v)) return *i;
    return std::get<double>(*v);
  };
  const auto bound = [&](const char* name) -> std::optional<Scalar> {
    if (!in.find(name)) return std::nullopt;
    return scalar(name, 0);
  };
  const auto dim = [&] { return std::get<i64>(*in.find("dim")); };
  const std::string& op = in.op;
  if (op == "add_") is_tensor("other") ? x.add_(tensor("other"), scalar("alpha", 1)) : x.add_(scalar("other", 0));
  else if (op == "sub_") is_tensor("other") ? x.sub_(tensor("other"), scalar("alpha", 1)) : x.sub_(scalar("other", 0));
  else if (op == "mul_") is_tensor("other") ? x.mul_(tensor("other")) : x.mul_(scalar("other", 0));
  else if (op == "div_") is_tensor("other") ? x.div_(tensor("other")) : x.div_(scalar("other", 0));
  else if (op == "neg_") x.neg_();
  else if (op == "exp_") x.exp_();
  else if (op == "sqrt_") x.sqrt_();
  else if (op == "relu_") x.relu_();
  else if (op == "tanh_") x.tanh_();
  else if (op == "sigmoid_") x.sigmoid_();
  else if (op == "pow_") x.pow_(scalar("exponent", 1));
  else if (op == "clamp_") x.clamp_(bound("min"), bound("max"));
  else if (op == "lerp_") x.lerp_(tensor("end"), scalar("weight", 0));
  else if (op == "addcmul_") x.addcmul_(tensor("tensor1"), tensor("tensor2"), scalar("value", 1));
  else if (op == "addcdiv_") x.addcdiv_(tensor("tensor1"), tensor("tensor2"), scalar("value", 1));
  else if (op == "masked_fill_") x.masked_fill_(tensor("mask"), scalar("value", 0));
  else if (op == "copy_") x.copy_(tensor("other"));
  else if (op == "fill_") x.fill_(scalar("value", 0));
  else if (op == "scatter_") x.scatter_(dim(), tensor("index"), tensor("src"));
  else if (op == "scatter_add_") x.scatter_add_(dim(), tensor("index"), tensor("src"));
  else if (op == "index_add_") x.index_add_(dim(), tensor("index"), tensor("source"), scalar("alpha", 1));
  else if (op == "index_copy_") x.index_copy_(dim(), tensor("index"), tensor("source"));
  else if (op == "index_fill_") x.index_fill_(dim(), tensor("index"), scalar("value", 0));
  else if (op == "index_put_") {
    std::vector<IndexItem> items;
    for (const IndexArgument& a : index_arguments(std::get<std::vector<IndexPart>>(*in.find("indices")), slots))
      std::visit([&](const auto& item) { items.emplace_back(item); }, a);
    x.index_put_(items, tensor("values"), std::get<bool>(*in.find("accumulate")));
  } else {
    fail("random graph", "{} is not an in-place op", op);
  }
}

struct EngineRun {
  Tensors slots, leaves, directions;
  Tensors roots, seeds;
};
EngineRun run_engine(const Program& p) {
  EngineRun run;
  run.slots.resize(static_cast<size_t>(p.slots));
  for (const Instruction& in : p.code) {
    if (in.op == "leaf") {
      const DType dtypes[] = {kF64, kI64, kB8};
      const Tensor t = make_empty(shape_of(in.leaf.shape), dtypes[static_cast<int>(in.leaf.kind)]);
      for (size_t i = 0; i < in.leaf.values.size(); ++i) {
        const double v = in.leaf.values[i];
        if (in.leaf.kind == Kind::real) t.data<double>()[i] = v;
        else if (in.leaf.kind == Kind::integer) t.data<i64>()[i] = static_cast<i64>(v);
        else t.data<bool>()[i] = v != 0;
      }
      if (!in.leaf.direction.empty()) {
        t.requires_grad_();
        run.leaves.push_back(t);
        const Tensor d = make_empty(t.shape(), kF64);
        std::copy(in.leaf.direction.begin(), in.leaf.direction.end(), d.data<double>());
        run.directions.push_back(d);
      }
      run.slots[static_cast<size_t>(in.results[0])] = t;
    } else if (in.in_place()) {
      run_in_place(in, run.slots);
    } else {
      OpCall call(in.op);
      for (const auto& [name, value] : in.arguments) call.set(name, argument(value, run.slots));
      find_op(in.op)->apply(call);
      if (call.results.size() != in.results.size())
        fail("random graph", "{} has {} results in the engine, {} in the interpreter", in.op, call.results.size(),
             in.results.size());
      for (size_t i = 0; i < in.results.size(); ++i)
        run.slots[static_cast<size_t>(in.results[i])] = call.results[i].second;
    }
  }
  for (const Root& r : p.roots) {
    const Tensor& t = run.slots[static_cast<size_t>(r.slot)];
    const Tensor w = make_empty(t.shape(), kF64);
    if (static_cast<size_t>(w.numel()) != r.weights.size()) fail("random graph", "root t{} has the shape {}", r.slot, t.shape());
    std::copy(r.weights.begin(), r.weights.end(), w.data<double>());
    run.roots.push_back(t);
    run.seeds.push_back(w);
  }
  return run;
}

// What the tape says.
struct TapeRun {
  std::vector<std::vector<double>> values;               // of each slot, at the end
  std::vector<std::vector<double>> gradients, products;  // of each differentiable leaf
  D1 scale;
};
TapeRun run_tape(const Program& p) {
  Tape own;
  current_tape = &own;
  TapeRun out;
  std::vector<Grid> slots(static_cast<size_t>(p.slots));
  std::vector<Grid> leaves;
  for (const Instruction& in : p.code) {
    const auto results = evaluate(in, slots);
    for (size_t i = 0; i < results.size(); ++i) slots[static_cast<size_t>(in.results[i])] = results[i];
    if (in.op == "leaf" && !in.leaf.direction.empty()) leaves.push_back(results[0]);
  }
  for (const Grid& g : slots) {
    out.values.emplace_back();
    for (size_t i = 0; i < g.numel(); ++i) out.values.back().push_back(g.value(i));
  }
  std::vector<std::pair<Num, double>> seeds;
  for (const Root& r : p.roots)
    for (size_t i = 0; i < r.weights.size(); ++i) seeds.emplace_back(slots[static_cast<size_t>(r.slot)][i], r.weights[i]);
  const std::vector<D1> adjoint = own.sweep(seeds, out.scale);
  for (const Grid& g : leaves) {
    out.gradients.emplace_back();
    out.products.emplace_back();
    for (size_t i = 0; i < g.numel(); ++i) {
      out.gradients.back().push_back(adjoint[static_cast<size_t>(g[i].id)].v);
      out.products.back().push_back(adjoint[static_cast<size_t>(g[i].id)].d);
    }
  }
  current_tape = nullptr;
  return out;
}

// Empty if equal to within the tolerance. An undefined tensor is zeros: no gradient arrived.
std::string difference(const std::string& what, const Tensor& t, const std::vector<double>& wanted, double tolerance) {
  const std::vector<double> got = t.defined() ? t.to_vector<double>() : std::vector<double>(wanted.size(), 0);
  if (got.size() != wanted.size()) return fmt::format("{}: {} elements, wanted {}", what, got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - wanted[i]) <= tolerance))
      return fmt::format("{}[{}]: the engine has {:.17g}, the tape {:.17g} (tolerance {:.3g})", what, i, got[i],
                         wanted[i], tolerance);
  return "";
}

std::string compare_runs(const Program& p, const TapeRun& want) {
  const double first = 1e-10 * std::max(1.0, want.scale.v), second = 1e-9 * std::max({1.0, want.scale.v, want.scale.d});
  std::string text;
  const auto check = [&](const std::string& d) { return text.empty() ? void(text = d) : void(); };
  {
    const EngineRun run = run_engine(p);
    for (size_t i = 0; i < run.slots.size(); ++i)
      if (run.slots[i].defined()) check(difference(fmt::format("value of t{}", i), run.slots[i], want.values[i], 1e-10 * 1e3));
    BackwardRun(run.roots, {.seeds = run.seeds}).finish();
    for (size_t i = 0; i < run.leaves.size(); ++i)
      check(difference(fmt::format("gradient of leaf {}", i), run.leaves[i].grad(), want.gradients[i], first));
  }
  const EngineRun run = run_engine(p);
  const GradMap map = grad(run.roots, run.leaves, {.seeds = run.seeds, .create_graph = true, .allow_unused = true});
  Tensors roots, seeds;
  for (size_t i = 0; i < run.leaves.size(); ++i) {
    const Tensor g = map.contains(run.leaves[i]) ? map[run.leaves[i]] : Tensor();
    check(difference(fmt::format("gradient of leaf {} with create_graph", i), g, want.gradients[i], first));
    if (!g.defined() || !g.requires_grad()) continue;
    roots.push_back(g);
    seeds.push_back(run.directions[i]);
  }
  if (roots.empty()) {
    for (size_t i = 0; i < run.leaves.size(); ++i)
      check(difference(fmt::format("second derivative of leaf {}", i), Tensor(), want.products[i], second));
    return text;
  }
  const GradMap products = grad(roots, run.leaves, {.seeds = seeds, .allow_unused = true});
  for (size_t i = 0; i < run.leaves.size(); ++i)
    check(difference(fmt::format("second derivative of leaf {}", i),
                     products.contains(run.leaves[i]) ? products[run.leaves[i]] : Tensor(), want.products[i], second));
  return text;
}

}  // namespace

Comparison compare(const Program& p) {
  if (p.roots.empty()) return {};  // nothing came out that depends on a leaf
  const TapeRun want = run_tape(p);
  try {
    const std::string text = compare_runs(p, want);
    return {text.empty() ? Outcome::equal : Outcome::different, text};
  } catch (const Error& e) {
    const std::string text = e.what();
    // An op needs a value that a later in-place op overwrote: that it says so is right.
    bool overwritten = text.find("as it was at version") != std::string::npos;
    overwritten &= std::any_of(p.code.begin(), p.code.end(), [](const Instruction& in) { return in.in_place(); });
    return {overwritten ? Outcome::refused : Outcome::different, text};
  }
}

}  // namespace waymark::test::graph
