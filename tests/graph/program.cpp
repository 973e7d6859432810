#include "tests/graph/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace waymark::test::graph {

std::vector<int> reads(const Instruction& in) {
  std::vector<int> out;
  for (const auto& argument : in.arguments) {
    const Value& v = argument.second;
    if (const Slot* s = std::get_if<Slot>(&v)) out.push_back(s->number);
    if (const auto* list = std::get_if<std::vector<Slot>>(&v))
      for (const Slot& s : *list) out.push_back(s.number);
    if (const auto* list = std::get_if<std::vector<IndexPart>>(&v))
      for (const IndexPart& part : *list)
        if (const Slot* s = std::get_if<Slot>(&part)) out.push_back(s->number);
  }
  return out;
}

namespace {

std::string numbers(const std::vector<double>& v, Kind kind) {
  std::vector<std::string> out;
  for (const double x : v)
    out.push_back(kind == Kind::boolean ? (x != 0 ? "true" : "false") : kind == Kind::integer ? fmt::format("{}", static_cast<i64>(x)) : fmt::format("{:.17g}", x));
  return fmt::format("{}", fmt::join(out, ", "));
}
std::string text_of(const IndexPart& part) {
  if (const i64* i = std::get_if<i64>(&part)) return fmt::format("{}", *i);
  if (const Slot* s = std::get_if<Slot>(&part)) return fmt::format("t{}", s->number);
  if (const Range* r = std::get_if<Range>(&part)) return fmt::format("Slice({}, {}, {})", r->start, r->stop, r->step);
  return std::holds_alternative<NewAxis>(part) ? "None" : "Ellipsis";
}
std::string text_of(const Value& v) {
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const i64* i = std::get_if<i64>(&v)) return fmt::format("{}", *i);
  if (const double* d = std::get_if<double>(&v)) return fmt::format("{:.17g}", *d);
  if (const auto* s = std::get_if<std::string>(&v)) return fmt::format("\"{}\"", *s);
  if (const auto* list = std::get_if<Ints>(&v)) return fmt::format("{{{}}}", fmt::join(*list, ", "));
  if (const Slot* s = std::get_if<Slot>(&v)) return fmt::format("t{}", s->number);
  std::vector<std::string> parts;
  if (const auto* list = std::get_if<std::vector<Slot>>(&v))
    for (const Slot& s : *list) parts.push_back(fmt::format("t{}", s.number));
  if (const auto* list = std::get_if<std::vector<IndexPart>>(&v))
    for (const IndexPart& part : *list) parts.push_back(text_of(part));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

std::string to_cpp(const Program& p) {
  std::string out = fmt::format("// random graph, seed {}\n", p.seed);
  for (const Instruction& in : p.code) {
    if (in.op == "leaf") {
      const char* kinds[] = {"kF64", "kI64", "kB8"};
      const char* types[] = {"double", "i64", "bool"};
      out += fmt::format("const Tensor t{} = make<{}>({{{}}}, {{{}}});  // {}\n", in.results[0],
                         types[static_cast<int>(in.leaf.kind)], fmt::join(in.leaf.shape, ", "),
                         numbers(in.leaf.values, in.leaf.kind), kinds[static_cast<int>(in.leaf.kind)]);
      if (!in.leaf.direction.empty())
        out += fmt::format("t{}.requires_grad_();  // direction {{{}}}\n", in.results[0],
                           numbers(in.leaf.direction, Kind::real));
      continue;
    }
    std::vector<std::string> list;
    for (const auto& argument : in.arguments)
      list.push_back(fmt::format("/*{}*/ {}", argument.first, text_of(argument.second)));
    const std::string call = fmt::format("{}({})", in.op, fmt::join(list, ", "));
    if (in.results.empty()) {
      out += fmt::format("t{}.{}({});\n", std::get<Slot>(*in.find("input")).number, in.op,
                         fmt::join(list.begin() + 1, list.end(), ", "));
    } else if (in.results.size() == 1) {
      out += fmt::format("const Tensor t{} = {};\n", in.results[0], call);
    } else {
      std::vector<std::string> names;
      for (const int r : in.results) names.push_back(fmt::format("t{}", r));
      out += fmt::format("const auto [{}] = {};\n", fmt::join(names, ", "), call);
    }
  }
  for (const Root& r : p.roots)
    out += fmt::format("// root: sum(t{} * {{{}}})\n", r.slot, numbers(r.weights, Kind::real));
  return out;
}

}  // namespace waymark::test::graph
