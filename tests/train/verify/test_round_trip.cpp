// Every op of the case table as a case file: written by us, read again, verified.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "core/ops/registry.h"
#include "tests/ops/op_case.h"
#include "tests/temporary_folder.h"
#include "tests/test_level.h"
#include "train/verify/verify.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

std::string shape_text(const Shape& s) { return fmt::format("[{}]", fmt::join(s.vec(), ", ")); }

std::string tensor_text(const CaseArg& a) {
  if (a.dtype == kB8) return fmt::format("bool(shape={})", shape_text(a.shape));
  if (a.dtype == kI64)
    return fmt::format("int(shape={}, low={}, high={})", shape_text(a.shape), static_cast<i64>(a.low),
                       std::max(static_cast<i64>(a.low) + 1, static_cast<i64>(a.high)));
  return fmt::format("float(shape={}, low={:#}, high={:#}, grad={})", shape_text(a.shape), a.low, a.high, a.grad);
}
// values(of=[[...]]): the elements of t from `at` on, along the axes from `axis` on.
std::string elements_text(const std::vector<double>& v, const Shape& shape, DType dtype, int axis, size_t& at) {
  if (axis == shape.size()) {
    const double x = v[at++];
    return dtype == kB8 ? (x != 0 ? "true" : "false") : dtype == kI64 ? fmt::format("{}", static_cast<i64>(x)) : fmt::format("{:#}", x);
  }
  std::vector<std::string> parts;
  for (i64 i = 0; i < shape[axis]; ++i) parts.push_back(elements_text(v, shape, dtype, axis + 1, at));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}
std::string given_text(const Tensor& t) {
  size_t at = 0;
  return fmt::format("values(of={})", elements_text(t.to_vector<double>(), t.shape(), t.dtype(), 0, at));
}
std::string index_text(const IndexArgument& index) {
  if (const i64* i = std::get_if<i64>(&index)) return fmt::format("{}", *i);
  if (const Tensor* t = std::get_if<Tensor>(&index)) return given_text(*t);
  if (std::holds_alternative<NoneIndex>(index)) return "none";
  if (std::holds_alternative<EllipsisIndex>(index)) return "\"...\"";
  const Slice& s = std::get<Slice>(index);
  std::vector<std::string> parts;
  if (s.start != kNoBound) parts.push_back(fmt::format("start={}", s.start));
  if (s.stop != kNoBound) parts.push_back(fmt::format("stop={}", s.stop));
  if (s.step != 1) parts.push_back(fmt::format("step={}", s.step));
  return fmt::format("slice({})", fmt::join(parts, ", "));
}
// The argument in the grammar of specs; nothing for a tensor without elements, whose type no list can say.
std::optional<std::string> value_text(const Argument& v) {
  if (const Tensor* t = std::get_if<Tensor>(&v)) return t->numel() ? std::optional(given_text(*t)) : std::nullopt;
  if (const auto* list = std::get_if<std::vector<IndexArgument>>(&v)) {
    std::vector<std::string> parts;
    for (const IndexArgument& index : *list) parts.push_back(index_text(index));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const i64* i = std::get_if<i64>(&v)) return fmt::format("{}", *i);
  if (const double* d = std::get_if<double>(&v)) return fmt::format("{:#}", *d);
  if (const auto* s = std::get_if<std::string>(&v)) return fmt::format("\"{}\"", *s);
  if (const auto* list = std::get_if<std::vector<i64>>(&v)) return fmt::format("[{}]", fmt::join(*list, ", "));
  if (const auto* list = std::get_if<std::vector<std::vector<i64>>>(&v)) {
    std::vector<std::string> rows;
    for (const auto& row : *list) rows.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
    return fmt::format("[{}]", fmt::join(rows, ", "));
  }
  return std::nullopt;
}
std::optional<std::string> spec_of(const OpCase& c, std::string_view schema) {
  std::vector<std::string> parts{"op=" + c.op};
  std::map<std::string, std::vector<std::string>> lists;
  for (const CaseArg& a : c.args) {
    // A tensor where the schema has a number: a call of the op with tensors, which has a name of its own.
    if (a.sampled)
      for (const char* type : {"Scalar ", "Scalar? "})
        if (schema.find(type + a.name) != std::string_view::npos) return std::nullopt;
    if (a.sampled && a.list >= 0) {
      lists[a.name].push_back(tensor_text(a));
    } else if (a.sampled) {
      parts.push_back(a.name + "=" + tensor_text(a));
    } else {
      const auto text = value_text(a.fixed);
      if (!text) return std::nullopt;
      parts.push_back(a.name + "=" + *text);
    }
  }
  for (const auto& [name, list] : lists) parts.push_back(fmt::format("{}=[{}]", name, fmt::join(list, ", ")));
  return fmt::format("op({})", fmt::join(parts, ", "));
}

}  // namespace

TEST_CASE("every op goes through a case file and back") {
  const TemporaryFolder folder;
  const int cases_of_an_op = by_level(1, 1, 100);
  std::map<std::string, int> written;
  std::set<std::string> all;
  for (const OpCase& c : all_cases()) {
    all.insert(c.op);
    const auto spec = spec_of(c, find_op(c.op)->schema);
    if (!spec || written[c.op] >= cases_of_an_op) continue;
    INFO(*spec);
    try {
      const WrittenCase file = write_case(folder.path(), *spec);
      const CaseReport report = verify_file(file.file);
      for (const std::string& p : report.problems) FAIL_CHECK(p);
      for (const TensorCheck& t : report.checks) CHECK_MESSAGE(t.pass, t.name << " at " << t.where);
      CHECK(report.pass());
      ++written[c.op];
    } catch (const Error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
  std::vector<std::string> missing;
  for (const std::string& op : all)
    if (written[op] == 0) missing.push_back(op);
  CHECK_MESSAGE(missing.empty(), fmt::format("{}", fmt::join(missing, " ")));
}
